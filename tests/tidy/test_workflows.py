"""Workflows, hooks and the package's metadata name the versions that the project is tested with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXTS = {path.name: path.read_text("utf-8") for path in WORKFLOWS}
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
ACTIONLINT = ROOT / ".venv/bin/actionlint"

# Modules of the standard library, and of others, that Windows lacks.
UNIX = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty", "uvloop")


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def pythons() -> list[str]:
    """Return the versions of Python that the job for Linux runs."""
    row = re.search(r"python: \[(.*)\]", TEXTS["test.yml"])
    assert row
    return re.findall(r"\d+\.\d+", row[1])


def portable_folders() -> list[str]:
    """Return the folders that are tested on macOS and Windows."""
    job = TEXTS["test.yml"].partition("\n  portable:")[2].partition("\n  image:")[0]
    return re.findall(r"\btests/\w+(?=[\s\n])", job.partition("python -m pytest")[2])


def constraint(name: str) -> str:
    found = re.search(rf"^{name}==(.+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert found
    return found[1]


def hook_version(repository: str) -> str:
    found = re.search(rf"{repository}\n +rev: v(\S+)", HOOKS)
    assert found
    return found[1]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_the_shape_that_github_reads(path: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.verify
def test_actionlint_finds_nothing() -> None:
    subprocess.run([ROOT / ".ci/tools", "lint"], timeout=600, check=True)
    if not ACTIONLINT.exists():
        pytest.skip("there is no Go that builds actionlint")
    done = subprocess.run([ACTIONLINT, *WORKFLOWS], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_actions_are_pinned_by_commit_and_agree() -> None:
    lines = [line for text in TEXTS.values() for line in re.findall(r"uses: (.*)", text)]
    pins: dict[str, set[str]] = {}
    for line in lines:
        pinned = re.fullmatch(r"([\w./-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)", line)
        assert pinned, line
        pins.setdefault(pinned[1], set()).add(pinned[2])
    assert {action: sorted(versions) for action, versions in pins.items() if len(versions) > 1} == {}


@pytest.mark.parametrize("name", TEXTS)
def test_a_workflow_may_only_read_and_ends(name: str) -> None:
    text = TEXTS[name]
    assert "\npermissions:\n  contents: read\n" in text
    assert "secrets." not in text
    assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_the_classifiers_name_the_versions_that_are_tested() -> None:
    prefix = "Programming Language :: Python :: 3."
    named = [classifier.rpartition(" ")[2] for classifier in project()["classifiers"] if classifier.startswith(prefix)]
    assert named == pythons()
    assert project()["requires-python"] == f">={pythons()[0]}"


def test_the_classifiers_name_the_system_that_the_server_was_run_on() -> None:
    systems = [classifier for classifier in project()["classifiers"] if classifier.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]


def test_hooks_have_the_versions_of_the_constraints() -> None:
    assert hook_version("ruff-pre-commit") == constraint("ruff")
    assert f"ACTIONLINT=v{hook_version('actionlint')}\n" in (ROOT / ".ci/tools").read_text("utf-8")


def test_hooks_without_a_repository_run_what_make_check_runs() -> None:
    rules = (ROOT / "Makefile").read_text("utf-8").replace("$(VENV)", ".venv").replace("$(PY)", ".venv/bin/python")
    targets = re.search(r"^check: ([a-z ]+)", rules, re.MULTILINE)
    assert targets
    check = "".join(rules.partition(f"\n{target}:")[2].partition("\n\n")[0] for target in targets[1].split())
    entries = re.findall(r"entry: (.*)", HOOKS)
    assert len(entries) == 2
    assert [entry for entry in entries if entry not in check] == []


# It collects half of all tests.
@pytest.mark.verify
def test_portable_tests_import_nothing_that_windows_lacks(tmp_path: Path) -> None:
    assert len(portable_folders()) > 5
    (tmp_path / "without_unix.py").write_text(
        f"import sys\ndef pytest_sessionstart(session):\n    sys.modules.update(dict.fromkeys({UNIX!r}))\n", "utf-8"
    )
    options = ("-q", "--collect-only", "-p", "without_unix", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *portable_folders()],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_all_addresses_of_the_repository_agree() -> None:
    addresses = project()["urls"].values()
    base = project()["urls"]["Repository"]
    assert [address for address in addresses if not address.startswith(base)] == []


def test_ci_installs_nothing_into_the_environment_while_tests_run() -> None:
    steps = re.findall(r"^step (-j.*?)(?: DAY=.*)?$", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE)
    assert len(steps) == 3
    for step in steps:
        # As if nothing had been installed yet.
        command = ["make", "--dry-run", "--what-if", "pyproject.toml", *step.split()]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=60, check=True)
        installs = [line for line in done.stdout.splitlines() if "pip install" in line and " -e " in line]
        assert [line.rpartition(" ")[2] for line in installs] == ["'.[dev]'"], step
