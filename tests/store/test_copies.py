from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from functools import partial
from pathlib import Path

import pytest

from amqp_broker.store import copies
from amqp_broker.store.environment import (
    COMPACTING_FILE,
    DATA_FILE,
    LMDB_LOCK_FILE,
    Environment,
    StoreInaccessible,
    StoreInUse,
    StoreUnusable,
    hold,
)
from amqp_broker.store.verify import verify
from tests.store.stores import PAGE_BYTES, digest, fill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    fill(folder, messages=100)
    return folder


def test_a_backup_has_what_the_store_has(folder: Path, tmp_path: Path) -> None:
    before = digest(folder)[str(folder / DATA_FILE)]
    size = copies.back_up(folder, tmp_path / "backup")
    assert [path.name for path in (tmp_path / "backup").iterdir()] == [DATA_FILE]
    assert (tmp_path / "backup" / DATA_FILE).stat().st_size == size < (folder / DATA_FILE).stat().st_size
    assert digest(folder)[str(folder / DATA_FILE)] == before
    original, copy = verify(folder), verify(tmp_path / "backup")
    assert (copy.queues, copy.messages, copy.problems) == (original.queues, original.messages, [])


def test_a_backup_goes_to_an_empty_folder_or_a_new_one_only(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    copies.back_up(folder, tmp_path / "empty")
    (tmp_path / "file").touch()
    before = digest(tmp_path / "empty")
    for to, reason in (
        (tmp_path / "empty", "is not empty; name a new folder"),
        (tmp_path / "file", "is not a folder"),
        (tmp_path / "missing" / "backup", "is no folder; make it one"),
        (folder, "is not empty"),
    ):
        with pytest.raises(StoreInaccessible, match=reason):
            copies.back_up(folder, to)
    assert digest(tmp_path / "empty") == before


def test_a_damaged_store_is_neither_backed_up_nor_compacted(folder: Path, tmp_path: Path) -> None:
    octets = bytearray((folder / DATA_FILE).read_bytes())
    for page in range(2, len(octets) // PAGE_BYTES):
        octets[page * PAGE_BYTES + 10] ^= 0x40
    (folder / DATA_FILE).write_bytes(octets)
    before = digest(folder)
    with pytest.raises(StoreUnusable):
        copies.back_up(folder, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
    with pytest.raises(StoreUnusable):
        copies.compact(folder)
    assert digest(folder)[str(folder / DATA_FILE)] == before[str(folder / DATA_FILE)]


def test_compaction_gives_free_pages_back_and_keeps_everything(folder: Path) -> None:
    original = verify(folder)
    before, after = copies.compact(folder)
    assert (folder / DATA_FILE).stat().st_size == after < before
    compacted = verify(folder)
    assert (compacted.messages, compacted.problems) == (original.messages, [])
    Environment(folder).close()
    assert copies.compact(folder) == (after, after)


def test_a_store_in_use_is_not_compacted(folder: Path) -> None:
    environment = Environment(folder)
    with pytest.raises(StoreInUse):
        copies.compact(folder)
    environment.close()


@pytest.mark.skipif(sys.platform == "win32", reason="the system keeps open files in their place by itself")
def test_a_store_that_is_being_backed_up_is_not_compacted_and_the_other_way_round(folder: Path, tmp_path: Path) -> None:
    backup = hold(folder / DATA_FILE, is_shared=True)
    with pytest.raises(StoreInUse, match="is being backed up; try again when that is done"):
        copies.compact(folder)
    os.close(backup)
    compaction = hold(folder / DATA_FILE, is_shared=False)
    with pytest.raises(StoreInUse, match="is being compacted; try again when that is done"):
        copies.back_up(folder, tmp_path / "backup")
    os.close(compaction)


def test_lmdbs_lock_file_does_not_outlive_the_file_that_it_is_for(folder: Path) -> None:
    """It has the number of the last commit, and a compacted file counts from the beginning."""
    Environment(folder).close()
    assert (folder / LMDB_LOCK_FILE).exists()
    copies.compact(folder)
    assert not (folder / LMDB_LOCK_FILE).exists()


@pytest.mark.parametrize("action", ["compact", "back_up"])
def test_without_room_for_the_copy_nothing_is_changed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, 100_000))
    before = digest(folder)
    act = (
        partial(copies.compact, folder) if action == "compact" else partial(copies.back_up, folder, tmp_path / "backup")
    )
    with pytest.raises(StoreInaccessible, match=r"it takes \d+ octets, and 100000 are free"):
        act()
    assert digest(folder)[str(folder / DATA_FILE)] == before[str(folder / DATA_FILE)]
    assert not (folder / COMPACTING_FILE).exists()
    assert not (tmp_path / "backup").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
@pytest.mark.parametrize("action", ["compact", "back_up"])
def test_a_copy_that_fails_half_way_leaves_nothing(folder: Path, tmp_path: Path, action: str) -> None:
    """The system lets no file become larger than 64 KiB, which is less than the copy has."""
    program = (
        "import resource, sys; from pathlib import Path; from amqp_broker.store import copies\n"
        "folder, to = map(Path, sys.argv[1:3])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "try: copies.compact(folder) if sys.argv[3] == 'compact' else copies.back_up(folder, to)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    before = digest(folder)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), str(tmp_path / "backup"), action],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.stdout.startswith("StoreInaccessible cannot "), done
    assert "File too large" in done.stdout
    assert digest(folder)[str(folder / DATA_FILE)] == before[str(folder / DATA_FILE)]
    assert not (folder / COMPACTING_FILE).exists()
    assert not (tmp_path / "backup").exists()


def kill_at_fsync(call: str, *folders: Path) -> None:
    """Call a function of `copies` in a process that is killed before it flushes the copy to the disk."""
    program = (
        "import os, signal, sys; from pathlib import Path; from amqp_broker.store import copies\n"
        "os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"copies.{call}(*map(Path, sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", program, *map(str, folders)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_compaction_that_is_killed_leaves_the_old_file_whole(folder: Path) -> None:
    original, before = verify(folder), digest(folder)
    kill_at_fsync("compact", folder)
    assert (folder / COMPACTING_FILE).exists()
    assert digest(folder)[str(folder / DATA_FILE)] == before[str(folder / DATA_FILE)]
    assert verify(folder) == original
    copies.compact(folder)
    assert not (folder / COMPACTING_FILE).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_backup_that_is_killed_leaves_no_store_and_may_be_made_again(folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "backup"
    kill_at_fsync("back_up", folder, to)
    assert [path.name for path in to.iterdir()] == [COMPACTING_FILE]
    copies.back_up(folder, to)
    assert [path.name for path in to.iterdir()] == [DATA_FILE]
    assert verify(to).problems == []
