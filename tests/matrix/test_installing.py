"""Installation of clients, with Python scripts as commands and an apt that only records its calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from compat.matrix import installing
from compat.matrix.installing import Build, Installed, InstallError, install_all
from compat.matrix.rows import Client
from tests.matrix.rehearsal import client


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def install(player: Client, cache: Path) -> Path:
    return Build(player.folder, cache).install(player)


def all_installed(clients: Sequence[Client], cache: Path) -> list[Installed]:
    told: list[Installed] = []
    install_all(clients, cache, told.append)
    return told


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the calls of apt, a line each; the package `nothing` does not exist."""
    calls, apt = tmp_path / "asked", tmp_path / "apt"
    apt.write_text(
        f'#!/bin/sh\necho "$*" >> {calls}\ncase "$*" in *nothing*) echo no such package; exit 1;; esac\n', "utf-8"
    )
    apt.chmod(0o755)
    monkeypatch.setattr(installing, "APT", str(apt))
    return calls


def test_a_client_is_built_in_a_copy_of_its_folder(tmp_path: Path) -> None:
    build = python("open('built', 'w').write(open('source').read())")
    one = client(tmp_path / "one", install=(build,))
    (tmp_path / "one" / "source").write_text("1", "utf-8")
    copy = install(one, tmp_path / "cache")
    assert copy == tmp_path / "cache" / "one"
    assert (copy / "built").read_text("utf-8") == "1"
    assert not (tmp_path / "one" / "built").exists()


def test_removed_files_leave_the_copy_and_builds_stay(tmp_path: Path) -> None:
    one = client(tmp_path / "one")
    (tmp_path / "one" / "source").write_text("1", "utf-8")
    copy = install(one, tmp_path / "cache")
    (copy / "built").write_text("1", "utf-8")
    (tmp_path / "one" / "source").rename(tmp_path / "one" / "renamed")
    install(one, tmp_path / "cache")
    assert not (copy / "source").exists()
    assert (copy / "renamed").exists()
    assert (copy / "built").exists()


def test_only_changed_files_are_replaced(tmp_path: Path) -> None:
    one = client(tmp_path / "one")
    (tmp_path / "one" / "source").write_text("1", "utf-8")
    copy = install(one, tmp_path / "cache")
    unchanged = (copy / "play.py").stat().st_ino
    with (copy / "source").open() as old:
        (tmp_path / "one" / "source").write_text("2", "utf-8")
        install(one, tmp_path / "cache")
        assert old.read() == "1"
    assert (copy / "play.py").stat().st_ino == unchanged
    assert (copy / "source").read_text("utf-8") == "2"
    assert sorted(path.name for path in copy.iterdir()) == ["copied.txt", "install.log", "play.py", "source"]


def test_a_failed_command_is_the_reason_of_a_missing_client(tmp_path: Path) -> None:
    build = python("import sys; sys.exit('no such package')")
    with pytest.raises(InstallError, match=r"-c import sys; .*: no such package$"):
        install(client(tmp_path / "one", install=(build,)), tmp_path / "cache")


def test_a_missing_tool_is_the_reason_of_a_missing_client(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="no-such-tool"):
        install(client(tmp_path / "one", install=(("no-such-tool",),)), tmp_path / "cache")


def test_an_unavailable_client_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="there is no package of it"):
        install(client(tmp_path / "none", absent="there is no package of it"), tmp_path / "cache")


def test_a_command_shared_by_clients_of_a_folder_is_run_once(tmp_path: Path) -> None:
    build = python("open('built', 'a').write('x')")
    told = all_installed([client(tmp_path / "one", name, (build,)) for name in ("a", "b")], tmp_path / "cache")
    assert [(installed.client.row.name, installed.absent) for installed in told] == [("a", ""), ("b", "")]
    assert (told[0].folder / "built").read_text("utf-8") == "x"


def test_a_failed_shared_command_drops_only_the_clients_that_need_it(tmp_path: Path) -> None:
    build = python("import sys; open('built', 'a').write('x'); sys.exit('broken')")
    clients = [client(tmp_path / "one", "a", (build,)), client(tmp_path / "one", "b", (build,))]
    told = all_installed([*clients, client(tmp_path / "one", "c")], tmp_path / "cache")
    assert [installed.absent.rpartition(" ")[2] for installed in told] == ["broken", "broken", ""]
    assert (told[0].folder / "built").read_text("utf-8") == "x"


def test_folders_are_built_in_parallel(tmp_path: Path) -> None:
    (tmp_path / "meeting").mkdir()
    meet = 'touch {0}/$$; until [ "$(ls {0} | wc -l)" = 2 ]; do sleep 0.01; done'.format(tmp_path / "meeting")
    # Different programs, since one program would wait for itself.
    clients = [client(tmp_path / shell, shell, ((shell, "-c", meet),)) for shell in ("sh", "bash")]
    assert [installed.absent for installed in all_installed(clients, tmp_path / "cache")] == ["", ""]


def test_a_package_manager_runs_once_at_a_time(tmp_path: Path) -> None:
    alone = python("import os, time; os.mkdir('../x'); time.sleep(0.1); os.rmdir('../x')")
    clients = [client(tmp_path / name, name, (alone,)) for name in ("one", "two")]
    assert [installed.absent for installed in all_installed(clients, tmp_path / "cache")] == ["", ""]


def test_clients_that_may_play_longest_are_ready_first(tmp_path: Path) -> None:
    clients = [client(tmp_path / "one", str(timeout_s), timeout_s=timeout_s) for timeout_s in (60, 120, 90)]
    told = all_installed(clients, tmp_path / "cache")
    assert [installed.client.row.name for installed in told] == ["120", "90", "60"]


def test_clients_that_take_longest_to_build_are_built_first(tmp_path: Path) -> None:
    slow = client(tmp_path / "one", "slow", build_s=200)
    told = all_installed([client(tmp_path / "one", "quick", timeout_s=120), slow], tmp_path / "cache")
    assert [installed.client.row.name for installed in told] == ["slow", "quick"]


def test_missing_debian_packages_are_installed_at_once(tmp_path: Path, asked: Path) -> None:
    lacking = [("no-such-tool", "tool"), ("sh", "dash"), ("no-such-library", "library")]
    clients = [client(tmp_path / package, package, programs=[(program, package)]) for program, package in lacking]
    assert {installed.absent for installed in all_installed(clients, tmp_path / "cache")} == {""}
    assert asked.read_text("utf-8").splitlines()[0] == "library tool"


def test_a_client_without_debian_packages_does_not_wait(tmp_path: Path, asked: Path) -> None:
    apt = tmp_path / "apt"
    # It ends only when the client that needs none of them is built.
    apt.write_text(f"#!/bin/sh\nuntil [ -e {tmp_path / 'cache' / 'here' / 'built'} ]; do sleep 0.01; done\n", "utf-8")
    here = client(tmp_path / "here", "here", (python("open('built', 'w')"),))
    lacking = client(tmp_path / "lacking", "lacking", programs=[("no-such-tool", "tool")], timeout_s=120)
    assert {installed.absent for installed in all_installed([lacking, here], tmp_path / "cache")} == {""}


def test_a_missing_package_drops_only_the_clients_that_need_it(tmp_path: Path, asked: Path) -> None:
    clients = [client(tmp_path / name, name, programs=[(f"no-{name}", name)]) for name in ("tool", "nothing")]
    told = {installed.client.row.name: installed.absent for installed in all_installed(clients, tmp_path / "cache")}
    assert told["tool"] == ""
    assert told["nothing"].endswith("apt nothing: no such package")


def test_an_error_of_the_harness_ends_the_run(tmp_path: Path) -> None:
    def fail(installed: Installed) -> None:
        raise RuntimeError(f"{installed.client.row.name} is not awaited")

    with pytest.raises(RuntimeError, match="one is not awaited"):
        install_all([client(tmp_path / "one", "one")], tmp_path / "cache", fail)
