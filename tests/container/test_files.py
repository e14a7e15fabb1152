"""The files of the container, and what the documentation shows, are what their readers take."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.container.image import CONTAINER, PROJECT

SNIPPETS = re.findall(r"```yaml\n(.*?)```", (PROJECT / "docs/container.md").read_text(), re.DOTALL)


def check(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_compose_file_is_one() -> None:
    done = check("compose-spec", PROJECT / "docker-compose.yml")
    assert done.returncode == 0, done.stdout


def test_a_wrong_compose_file_is_found(tmp_path: Path) -> None:
    text = (PROJECT / "docker-compose.yml").read_text()
    (tmp_path / "docker-compose.yml").write_text(text.replace("interval:", "intervall:"))
    assert check("compose-spec", tmp_path / "docker-compose.yml").returncode == 1


@pytest.mark.parametrize(("number", "schema"), [(0, "github-workflows"), (1, "github-workflows"), (2, "gitlab-ci")])
def test_snippets_of_the_documentation_are_valid(number: int, schema: str, tmp_path: Path) -> None:
    assert len(SNIPPETS) == 3
    (tmp_path / "snippet.yml").write_text(SNIPPETS[number])
    done = check(schema, tmp_path / "snippet.yml")
    assert done.returncode == 0, done.stdout


def test_the_shell_scripts_are_clean() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("there is no shellcheck")
    done = subprocess.run(["shellcheck", *CONTAINER.glob("*.sh")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_folders_that_the_dockerfile_copies_are_not_ignored() -> None:
    kept = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"amqp_broker", "container", "constraints.txt", "pyproject.toml", "README.md", "LICENSE"} <= kept
