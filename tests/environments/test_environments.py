from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.environments.__main__ import HERE, ROOT, play
from tests.environments.environments_table import ENVIRONMENTS, Environment

ROW = re.compile(r"^\| `([\w.-]+)` \| ([^|]+?) \|", re.MULTILINE)
# Environments that need no download.
PROBED = [one.name for one in ENVIRONMENTS if not (one.python or one.is_offline or "mmdebstrap" in one.programs)]


def played(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.environments", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_the_page_lists_each_environment_and_its_change() -> None:
    text = (ROOT / "docs" / "development" / "environments.md").read_text("utf-8")
    rows = ROW.findall(text)
    assert rows == [(environment.name, environment.changes) for environment in ENVIRONMENTS]


def test_list_names_each_environment() -> None:
    assert [line.split()[0] for line in played("--list").stdout.splitlines()] == [e.name for e in ENVIRONMENTS]


def test_a_make_target_runs_in_a_clone_and_its_last_line_is_printed(tmp_path: Path) -> None:
    done = played("ascii", "--make", "help", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ascii: \d+\.\d minutes: make \w+", done.stdout, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_target_fails_the_environment_and_leaves_its_log(tmp_path: Path) -> None:
    done = played("ascii", "--make", "nonsense", TMPDIR=str(tmp_path))
    assert done.returncode == 1
    assert "ascii: make nonsense ended with 2" in done.stdout
    assert [log.name for log in tmp_path.glob("env-*/*.log")] == ["clone0.log"]


def test_an_unavailable_environment_fails_only_in_ci(tmp_path: Path) -> None:
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    nothing = {"PATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    for ci, code in (("", 0), ("true", 1)):
        done = played("one-core", CI=ci, **nothing)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (
            code,
            "one-core: not available on this machine: there is no taskset",
        )


def test_a_failed_preparation_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    done = played("ascii", PATH="/nonexistent", TMPDIR=str(tmp_path))
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert done.stdout.splitlines()[-1] == "ascii: cannot be prepared: cannot run git: No such file or directory"
    assert "Traceback" not in done.stderr


def test_an_environment_without_effect_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = Environment("moon", "No air", "echo 'there is air' >&2; exit 1")
    assert not play(environment, ["help"], 0)
    assert capsys.readouterr().out == "moon: cannot be prepared: it has no effect on this machine: there is air\n"
    assert list(tmp_path.iterdir()) == []


def test_each_environment_has_a_probe() -> None:
    # `interpreter` checks the version of Python.
    assert [environment.name for environment in ENVIRONMENTS if not (environment.probe or environment.python)] == []


@pytest.mark.verify
@pytest.mark.parametrize("name", PROBED)
def test_each_environment_has_its_effect(name: str, tmp_path: Path) -> None:
    done = played(name, "--make", "help", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout


def test_an_unknown_name_is_refused() -> None:
    assert "there is no environment moon; see --list" in played("moon").stderr


@pytest.mark.verify
def test_the_slow_disk_takes_20_ms_more(tmp_path: Path) -> None:
    library = tmp_path / "slow_fsync.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "slow_fsync.c"], check=True)
    slow = ctypes.CDLL(str(library))
    with (tmp_path / "file").open("wb") as file:
        for flush in (slow.fsync, slow.fdatasync):
            started = time.monotonic()
            assert flush(file.fileno()) == 0
            assert time.monotonic() - started >= 0.02
