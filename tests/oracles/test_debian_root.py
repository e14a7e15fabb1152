"""Root folders of Debian releases are built once, and whole: compat/oracles/debian_root.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat.oracles import debian_root
from compat.oracles.debian_root import Unavailable, create, error_in, mirror
from compat.waiting import wait_until
from tests.environments.__main__ import ROOT

# Records its arguments, and makes a root in its fifth one.
MMDEBSTRAP = """
echo "$@" >> {folder}/built
mkdir -p "$5/usr"
{then}
"""
APT = """
echo " main bookworm http://mirror.example/other"
echo "Debian main bookworm-security http://mirror.example/security/"
echo "Debian contrib bookworm http://mirror.example/contrib/"
echo "Debian main bookworm http://mirror.example/debian/"
"""
# Runs what debian_root.py runs alone, without the right to.
SETPRIV = 'while [ "$1" != mmdebstrap ]; do shift; done; exec "$@"'


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide programs in the place of Debian's, for a user who seems to be root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    install(folder, "apt-get", APT)
    install(folder, "setpriv", SETPRIV)
    install(folder, "mmdebstrap", MMDEBSTRAP.format(folder=folder, then=""))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def install(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    (folder / name).chmod(0o755)


def test_a_root_has_the_packages(programs: Path, tmp_path: Path) -> None:
    root = tmp_path / "cache" / "trixie"
    create("trixie", root, ("git", "make"))
    built = (programs / "built").read_text("utf-8")
    assert built.endswith(f" --include=git,make trixie {root}.new http://mirror.example/debian\n")
    assert [path.name for path in root.iterdir()] == ["usr"]
    assert sorted(path.name for path in root.parent.iterdir()) == ["trixie", "trixie.lock"]


def test_a_complete_root_is_used_again(programs: Path, tmp_path: Path) -> None:
    for _ in range(2):
        create("trixie", tmp_path / "trixie", ("git",))
    assert len((programs / "built").read_text("utf-8").splitlines()) == 1


def test_a_half_built_root_is_built_anew(programs: Path, tmp_path: Path) -> None:
    left = tmp_path / "trixie.new" / "etc"
    left.mkdir(parents=True)
    create("trixie", tmp_path / "trixie", ("git",))
    assert not (tmp_path / "trixie" / "etc").exists()


def test_a_failed_build_leaves_nothing_and_says_why(programs: Path, tmp_path: Path) -> None:
    install(programs, "mmdebstrap", MMDEBSTRAP.format(folder=programs, then="echo E: no such release >&2; exit 1"))
    with pytest.raises(Unavailable, match=r"^no such release$"):
        create("nonsense", tmp_path / "nonsense", ("git",))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "nonsense.lock"]


def test_a_process_waits_for_another_that_builds_the_same_root(programs: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    install(programs, "mmdebstrap", MMDEBSTRAP.format(folder=programs, then=f"cat {gate}"))
    first, second = building(tmp_path / "trixie"), building(tmp_path / "trixie")
    locks = Path("/proc/locks")
    wait_until(lambda: re.search(rf"-> FLOCK .* ({first.pid}|{second.pid}) ", locks.read_text("utf-8")))
    gate.write_text("", "utf-8")
    assert [first.wait(), second.wait()] == [0, 0]
    assert len((programs / "built").read_text("utf-8").splitlines()) == 1


def building(root: Path) -> subprocess.Popen[bytes]:
    """Start another process that creates the root."""
    as_root = f"import os, sys, {debian_root.__name__} as it; os.geteuid = lambda: 0; sys.exit(it.main(sys.argv[1:]))"
    return subprocess.Popen([sys.executable, "-c", as_root, "trixie", str(root), "git"], cwd=ROOT)


def test_only_root_can_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unavailable, match="only root can install another release of Debian"):
        create("trixie", tmp_path / "trixie", ("git",))
    assert list(tmp_path.iterdir()) == []


def test_the_mirror_is_that_of_debians_own_packages(programs: Path) -> None:
    assert mirror() == "http://mirror.example/debian"


def test_another_system_has_no_mirror_of_debian(programs: Path) -> None:
    install(programs, "apt-get", 'echo "Ubuntu main noble http://mirror.example/ubuntu"')
    with pytest.raises(Unavailable, match="apt has no mirror of Debian"):
        mirror()


def test_a_system_without_apt_cannot_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="cannot run apt-get: No such file or directory"):
        mirror()


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("W: no keyring\nE: Invalid Release file\n", "Invalid Release file"),
        ("Reading lists...\nE: Couldn't download\nW: rest\nE: mmdebstrap failed to run\n", "Couldn't download"),
        ("unshare: unshare failed: Operation not permitted\n\n", "unshare: unshare failed: Operation not permitted"),
        ("", ""),
    ],
)
def test_the_first_error_is_the_reason(output: str, error: str) -> None:
    assert error_in(output) == error
