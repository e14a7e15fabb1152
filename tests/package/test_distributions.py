"""Sdist and wheel: what is in them, what the package index shows of them, and that they run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
MODULES = ("amqp_broker", "pyspark_amqp", "amqp_minibroker.py")
# Files beside the modules that build them.
BUILDING = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "constraints.txt", "pyproject.toml", "setup.py"}
MADE_BY_SETUPTOOLS = {"PKG-INFO", "amqp_minibroker.egg-info", "setup.cfg"}


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Run a command and return its output."""
    # Settings of the caller must not change a build, nor add modules to a path.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked(*names: str) -> set[str]:
    """Return the paths of the repository's files, as far as they exist."""
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *names], PROJECT).splitlines()
    return {path for path in listed if (PROJECT / path).is_file()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and the wheel that was built from it."""
    source = tmp_path_factory.mktemp("source")
    for path in tracked():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / path, source / path)
    run([sys.executable, "-m", "build", "."], source)
    return source / "dist"


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


def test_the_sdist_has_the_modules_and_what_builds_them(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name.partition("/")[0] for name in names} - {""} == {*MODULES, *BUILDING, *MADE_BY_SETUPTOOLS}
    assert tracked(*MODULES) <= names


def test_the_wheel_has_all_files_of_the_modules_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == tracked(*MODULES)


def test_the_package_index_accepts_both(dist: Path) -> None:
    run([sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir()], dist)


def test_each_link_of_the_description_leads_to_a_file_or_another_site(wheel: Path) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        description = str(message_from_bytes(archive.read(name)).get_payload())
    links = re.findall(r"\]\((.*?)\)", description)
    start = f"{project['urls']['Repository']}/blob/main/"
    # Pictures are files, not the pages about them.
    links = [link.replace("/raw/", "/blob/") if link.endswith(".svg") else link for link in links]
    files = [link.removeprefix(start).partition("#")[0] for link in links if link.startswith(start)]
    assert len(files) > 5
    assert [file for file in files if not (PROJECT / file).exists()] == []
    assert [link for link in links if not link.startswith(("https://", "http://", "#"))] == []


def find_python(version: str) -> Path | None:
    found = shutil.which(f"python{version}")
    by_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for path in (*by_pyenv, *([Path(found)] if found else [])):
        if subprocess.run([path, "-c", "import venv"], check=False, capture_output=True).returncode == 0:
            return path
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_runs_with_each_python_of_this_machine(version: str, wheel: Path, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version}")
    programs = tmp_path / "venv/bin"
    run([python, "-m", "venv", "--without-pip", "venv"], tmp_path)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", programs / "python", "--quiet"]
    run([*pip, "install", "-c", PROJECT / "constraints.txt", wheel], tmp_path)
    run([*pip, "check"], tmp_path)
    assert "amqp-broker, version " in run([programs / "amqp-minibroker", "--version"], tmp_path)
    ping: list[str | Path] = [programs / "amqp-broker", "diagnostics", "ping"]
    assert "Ping succeeded" in run([programs / "amqp-broker", "run", "--", *ping], tmp_path)
    run([programs / "amqp-minibroker", "demo", "confirms", "--messages", "20"], tmp_path)
