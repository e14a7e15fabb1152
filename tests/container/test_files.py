"""The container's files are valid. tests/docs checks the snippets of docs/container.md."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.container.image import CONTAINER, PROJECT


def check(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)


def test_the_compose_file_is_one() -> None:
    done = check("compose-spec", PROJECT / "docker-compose.yml")
    assert done.returncode == 0, done.stdout


def test_a_wrong_compose_file_is_found(tmp_path: Path) -> None:
    text = (PROJECT / "docker-compose.yml").read_text("utf-8")
    (tmp_path / "docker-compose.yml").write_text(text.replace("interval:", "intervall:"), "utf-8")
    assert check("compose-spec", tmp_path / "docker-compose.yml").returncode == 1


def test_the_shell_scripts_are_clean() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("there is no shellcheck")
    done = subprocess.run(["shellcheck", *CONTAINER.glob("*.sh")], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout


def test_the_folders_that_the_dockerfile_copies_are_not_ignored() -> None:
    kept = {line[1:] for line in (PROJECT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    copied = {"amqp_broker", "amqp_minibroker.py", "container", "constraints.txt"}
    assert copied | {"pyproject.toml", "setup.py", "README.md", "LICENSE"} <= kept


def test_the_dockerfile_has_no_option_that_older_engines_refuse() -> None:
    """buildah 1.28 of Debian 12 does not know it."""
    assert "--start-interval" not in [
        word.partition("=")[0]
        for line in (PROJECT / "Dockerfile").read_text("utf-8").splitlines()
        if not line.startswith("#")
        for word in line.split()
    ]
