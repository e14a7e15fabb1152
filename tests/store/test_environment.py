from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from amqp_broker.store import environment as environment_module
from amqp_broker.store.environment import (
    COMPACTING_FILE,
    DATA_FILE,
    FORMAT,
    LOCK_FILE,
    NUMBER,
    STEPS,
    TABLES,
    Environment,
    ReadOnlyEnvironment,
    StoreError,
    StoreInaccessible,
    StoreInUse,
    StoreMissing,
    StoreUnusable,
    migrate,
)
from amqp_broker.store.pages import read_meta
from tests.present import present
from tests.store.stores import PAGE_BYTES, digest, fill, put, record_at

needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may do this")


def refusal(folder: Path, kind: type[StoreError]) -> str:
    """Why a folder is refused, twice in the same words; nothing in it is changed by that."""
    before = digest(folder), digest(folder.parent)
    texts = set()
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            Environment(folder)
        assert issubclass(caught.type, kind)
        texts.add(str(caught.value))
    assert (digest(folder), digest(folder.parent)) == before
    (text,) = texts
    return text.replace(str(folder), "FOLDER")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store that is not in use."""
    folder = tmp_path / "store"
    fill(folder)
    return folder


# Folders that can be opened


def test_a_new_store_is_for_its_user_only(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    Environment(folder).close()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / DATA_FILE).stat().st_mode & 0o777 == 0o600


def test_a_store_that_is_opened_again_has_what_was_written(tmp_path: Path) -> None:
    first = Environment(tmp_path / "store")
    with first.lmdb.begin(write=True) as txn:
        put(txn, b"k", b"v", first.tables["definitions"])
    first.close()
    second = Environment(tmp_path / "store")
    with second.lmdb.begin() as txn:
        assert record_at(txn, b"k", second.tables["definitions"]) == b"v"
        assert NUMBER.unpack(present(txn.get(b"format", db=second.tables["meta"]))) == (FORMAT,)
    second.close()


def test_an_empty_file_is_what_an_interrupted_first_start_leaves_and_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / DATA_FILE).touch()
    Environment(tmp_path).close()
    ReadOnlyEnvironment(tmp_path, is_alone=True).close()


def test_a_database_without_tables_is_begun_anew(tmp_path: Path) -> None:
    lmdb.open(str(tmp_path)).close()
    Environment(tmp_path).close()
    ReadOnlyEnvironment(tmp_path, is_alone=True).close()


def test_a_store_is_created_in_one_commit(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "store")
    assert environment.lmdb.info()["last_txnid"] == 1
    environment.close()


@pytest.mark.skipif(os.name != "posix", reason="Windows flushes names by itself")
def test_the_names_of_a_new_store_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[os.stat_result] = []
    monkeypatch.setattr("os.fsync", lambda descriptor: flushed.append(os.fstat(descriptor)))
    Environment(tmp_path / "store").close()
    for folder in (tmp_path, tmp_path / "store"):
        assert any(os.path.samestat(folder.stat(), found) for found in flushed)


def test_the_file_of_an_interrupted_compaction_is_removed(folder: Path) -> None:
    (folder / COMPACTING_FILE).write_bytes(b"half")
    Environment(folder).close()
    assert not (folder / COMPACTING_FILE).exists()


def test_a_closed_store_can_be_opened_by_others(folder: Path) -> None:
    Environment(folder).close()
    Environment(folder).close()


# Folders that are refused and stay as they are


def test_a_folder_in_use_is_refused_with_the_process_that_uses_it(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from amqp_broker.store.environment import Environment\n"
        "store = Environment(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        assert refusal(folder, StoreInUse) == (
            f"'FOLDER' is in use by process {other.pid}; end that, or give another folder with --data-dir"
        )
        other.kill()
    # The system lets go of a lock whose process is gone.
    Environment(folder).close()


def set_format(folder: Path, number: int) -> None:
    store = Environment(folder)
    with store.lmdb.begin(write=True) as txn:
        txn.put(b"format", NUMBER.pack(number), db=store.tables["meta"])
    store.close()


def test_a_newer_format_is_refused(folder: Path) -> None:
    set_format(folder, FORMAT + 1)
    assert refusal(folder, StoreUnusable) == (
        f"'FOLDER' has format {FORMAT + 1}, which is newer than {FORMAT}, the format of this broker; "
        "start the broker that wrote it, or give another folder with --data-dir"
    )


def test_an_older_format_that_nothing_reads_is_refused(folder: Path) -> None:
    set_format(folder, 0)
    assert refusal(folder, StoreUnusable) == (
        "'FOLDER' has format 0, which this broker does not read any more; "
        "start a broker on it that does, or give another folder with --data-dir"
    )


def test_there_is_a_step_from_each_format_that_is_read() -> None:
    assert set(STEPS) == set(range(min(STEPS, default=FORMAT), FORMAT))


def test_steps_make_an_older_store_one_of_today_at_once_or_not_at_all(folder: Path) -> None:
    def rename(txn: lmdb.Transaction, tables: environment_module.Tables) -> None:
        txn.put(b"new", bytes(present(txn.pop(b"old", db=tables["meta"]))), db=tables["meta"])

    def fail(txn: lmdb.Transaction, tables: environment_module.Tables) -> None:
        raise lmdb.DiskError("no space")

    store = Environment(folder)
    with store.lmdb.begin(write=True) as txn:
        txn.put(b"old", b"1", db=store.tables["meta"])
    with pytest.raises(lmdb.DiskError), store.lmdb.begin(write=True) as txn:
        migrate(txn, store.tables, FORMAT, FORMAT + 2, {FORMAT: rename, FORMAT + 1: fail})
    with store.lmdb.begin(write=True) as txn:
        assert txn.get(b"old", db=store.tables["meta"]) == b"1"
        migrate(txn, store.tables, FORMAT, FORMAT + 1, {FORMAT: rename})
    with store.lmdb.begin() as txn:
        assert txn.get(b"new", db=store.tables["meta"]) == b"1"
        assert txn.get(b"format", db=store.tables["meta"]) == NUMBER.pack(FORMAT + 1)
    store.close()


def write_text(data: Path) -> None:
    data.write_text("This is not a database. " * 500, "utf-8")


def write_short_text(data: Path) -> None:
    data.write_text("short", "utf-8")


def write_sqlite(data: Path) -> None:
    with sqlite3.connect(data) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()


def write_zeros(data: Path) -> None:
    data.write_bytes(bytes(100_000))


def write_other_tables(data: Path) -> None:
    other = lmdb.open(str(data), subdir=False, max_dbs=2, lock=False)
    other.open_db(b"theirs")
    other.close()


def write_other_records(data: Path) -> None:
    other = lmdb.open(str(data), subdir=False, lock=False)
    with other.begin(write=True) as txn:
        txn.put(b"theirs", b"1")
    other.close()


@pytest.mark.parametrize(
    "write", [write_text, write_short_text, write_sqlite, write_zeros, write_other_tables, write_other_records]
)
def test_a_file_of_another_program_is_refused(tmp_path: Path, write: Callable[[Path], None]) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    write(folder / DATA_FILE)
    text = refusal(folder, StoreUnusable)
    assert re.fullmatch(
        r"'FOLDER/data.mdb' is (not the store of a broker|damaged): .*; "
        r"(give another folder with --data-dir|put a backup in its place, or run `store repair` .*)",
        text,
    )
    assert [path.name for path in folder.iterdir()] == [DATA_FILE]


def test_a_file_that_was_cut_is_refused(folder: Path) -> None:
    octets = (folder / DATA_FILE).read_bytes()
    with (folder / DATA_FILE).open("rb") as file:
        last_page = read_meta(file).last_page
    assert len(octets) >= (last_page + 1) * PAGE_BYTES
    for pages in (1, 2, 3, last_page // 2):
        (folder / DATA_FILE).write_bytes(octets[: pages * PAGE_BYTES])
        assert refusal(folder, StoreUnusable).startswith("'FOLDER/data.mdb' is damaged: ")
    (folder / DATA_FILE).write_bytes(octets)
    Environment(folder).close()


def test_a_file_without_pages_at_its_end_that_nothing_uses_is_whole(folder: Path) -> None:
    """LMDB leaves the last pages unwritten where a transaction gave them up again."""
    store = ReadOnlyEnvironment(folder, is_alone=True)
    store.close()
    octets = bytearray((folder / DATA_FILE).read_bytes())
    # Both metas count some pages more than there are, as if these had been taken and given up.
    with (folder / DATA_FILE).open("rb") as file:
        last_page = read_meta(file).last_page
    for page in (0, 1):
        at = page * PAGE_BYTES + 16 + 24 + 2 * 48
        octets[at : at + 8] = (last_page + 3).to_bytes(8, sys.byteorder)
    (folder / DATA_FILE).write_bytes(octets)
    Environment(folder).close()
    ReadOnlyEnvironment(folder, is_alone=True).close()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    assert refusal(tmp_path / "file", StoreInaccessible) == "'FOLDER' is not a folder; give one with --data-dir"
    assert "is no folder" in refusal(tmp_path / "file" / "store", StoreInaccessible)


def test_a_folder_without_a_parent_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "missing" / "store", StoreInaccessible) == (
        f"'{tmp_path / 'missing'}' is no folder; make it one, or give another folder with --data-dir"
    )


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store" / DATA_FILE).mkdir(parents=True)
    assert "cannot be written: Is a directory" in refusal(tmp_path / "store", StoreInaccessible)


def run_limited(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; from pathlib import Path; from amqp_broker.store.environment import Environment, StoreError\n"
        "try: Environment(Path(sys.argv[1])).close()\n"
        "except StoreError as error: print(type(error).__name__, error)"
    )
    return subprocess.run(
        [*command, sys.executable, "-c", program, str(folder)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


@needs_root
@pytest.mark.parametrize("is_new", [True, False])
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, is_new: bool) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv here, to be root without root's rights")
    folder = tmp_path / "store"
    if is_new:
        tmp_path.chmod(0o500)
    else:
        fill(folder)
        for path in (*folder.iterdir(), folder):
            path.chmod(path.stat().st_mode & 0o555)
    before = digest(tmp_path)
    done = run_limited(folder, setpriv, "--bounding-set=-dac_override,-dac_read_search,-fowner")
    assert done.stderr == ""
    assert done.stdout.startswith(f"StoreInaccessible '{folder}' cannot be written: Permission denied; ")
    assert digest(tmp_path) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@needs_root
def test_a_full_disk_is_refused_and_left_as_it_was(small_disk: Path) -> None:
    (small_disk / "other").write_bytes(bytes(60 * 1024))
    folder = small_disk / "store"
    assert "cannot be written: No space left on device" in refusal(folder, StoreInaccessible)
    assert [path.name for path in small_disk.iterdir()] == ["other"]


# Reading


@pytest.mark.parametrize("is_alone", [True, False])
def test_there_must_be_a_store_to_read(tmp_path: Path, is_alone: bool) -> None:
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(StoreMissing, match="there is no store in"):
            ReadOnlyEnvironment(folder, is_alone=is_alone)
    assert list(tmp_path.iterdir()) == []


def test_reading_beside_a_broker_is_possible_and_alone_it_is_not(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from amqp_broker.store.environment import ReadOnlyEnvironment, StoreError\n"
        "try: ReadOnlyEnvironment(Path(sys.argv[1]), is_alone=sys.argv[2] == 'alone').close(); print('read')\n"
        "except StoreError as error: print(type(error).__name__)"
    )
    store = Environment(folder)
    for mode, expected in (("beside", "read"), ("alone", "StoreInUse")):
        done = subprocess.run(
            [sys.executable, "-c", program, str(folder), mode],
            capture_output=True,
            encoding="utf-8",
            check=True,
            timeout=60,
        )
        assert done.stdout == f"{expected}\n"
    store.close()


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_damaged_store_is_not_read_and_nothing_is_left_in_its_folder(tmp_path: Path, is_alone: bool) -> None:
    fill(tmp_path / "store")
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / DATA_FILE).write_bytes((tmp_path / "store" / DATA_FILE).read_bytes()[: 5 * PAGE_BYTES])
    before = digest(folder)
    with pytest.raises(StoreUnusable, match="is damaged"):
        ReadOnlyEnvironment(folder, is_alone=is_alone)
    assert digest(folder) == before


def test_reading_leaves_the_store_as_it_was(folder: Path) -> None:
    (folder / LOCK_FILE).unlink()
    before = digest(folder)
    ReadOnlyEnvironment(folder, is_alone=True).close()
    assert digest(folder) == before
    reading = ReadOnlyEnvironment(folder, is_alone=False, is_quick=True)
    assert reading.tables.keys() == set(TABLES)
    reading.close()
    assert digest(folder)[str(folder / DATA_FILE)] == before[str(folder / DATA_FILE)]


def test_the_memory_of_the_process_is_not_written_to_the_store(tmp_path: Path) -> None:
    """A copy of a store may leave the machine, and old memory may hold a password."""
    secret = b"a secret that the process had in its memory. "
    script = f"""
import sys
from pathlib import Path
from tests.store.stores import fill
kept = [bytearray({secret!r} * {PAGE_BYTES // len(secret)}) for _ in range(4000)]
del kept
fill(Path(sys.argv[1]))
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "store")], check=True, timeout=60)
    assert secret not in (tmp_path / "store" / DATA_FILE).read_bytes()
