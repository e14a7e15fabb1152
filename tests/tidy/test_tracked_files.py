"""The repository holds sources: no output of a build, and no large file."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
FILE_BYTES_MAX = 400_000

# Folders and endings of files that compilers, package managers and test runners write.
BUILD_FOLDERS = {"__pycache__", "build", "dist", "node_modules", "target", "venv", ".venv", ".cache"}
BUILD_ENDINGS = {".a", ".class", ".d", ".dll", ".egg", ".jar", ".o", ".pyc", ".rlib", ".rmeta", ".so", ".whl", ".zip"}


def is_built(path: str) -> bool:
    """Tell a file that a build wrote by its path."""
    parts = PurePosixPath(path)
    return parts.suffix in BUILD_ENDINGS or not BUILD_FOLDERS.isdisjoint(parts.parts[:-1])


def tracked_files() -> list[str]:
    """Return the paths that git tracks."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    return [path for path in listed.split("\0") if path and (ROOT / path).is_file()]


def test_no_output_of_a_build_is_tracked() -> None:
    files = tracked_files()
    assert "README.md" in files
    assert [path for path in files if is_built(path)] == []


def test_no_tracked_file_is_larger_than_the_largest_recording() -> None:
    assert [path for path in tracked_files() if (ROOT / path).stat().st_size > FILE_BYTES_MAX] == []


@pytest.mark.parametrize(
    "path", ["compat/rust/target/debug/deps/tokio.d", "compat/rust/target/CACHEDIR.TAG", "amqp_broker/wire/reader.so"]
)
def test_the_output_of_a_build_is_found(path: str) -> None:
    assert is_built(path)


@pytest.mark.parametrize("path", ["docs/images/flow.png", "compat/rust/src/main.rs", "tests/package/build.py"])
def test_a_source_is_passed_over(path: str) -> None:
    assert not is_built(path)
