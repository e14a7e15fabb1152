"""The files of a store: a folder with an LMDB environment, and the lock of the process that uses it.

    data.mdb, lock.mdb   files of LMDB
    broker.lock          locked by the process that uses the folder; has its process id
    checkpoint           the commit that a power loss leaves, while commits are not flushed (store/checkpoint.py)
    data.mdb.compacting  written by `store compact` and `store backup` before it becomes data.mdb

Tables, all with big-endian keys, so that LMDB sorts them by their numbers:

    meta         name                    -> a number: `format`, `next_range`
    definitions  kind and names          -> a field table: exchanges, queues, bindings, users, policies …
    windows      range                   -> `RangeState`: head, next, count, body octets
    messages     range, position         -> a message (store/codec.py)
    chunks       stream, first offset    -> messages of a stream
    garbage      range, start            -> end: discarded positions, deleted in batches

Each record ends with a checksum (store/seal.py), except `format`; format 1 had none. A change of the tables or of
store/codec.py raises FORMAT and adds a step to STEPS, which turns the former format into the new one within the given
transaction. A store of a newer format is refused.

Nothing in a folder is created or changed before it is known to be a store that this broker can use.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import lmdb

from amqp_broker.store import address_space, checkpoint, chunks, lock, pages
from amqp_broker.store.checkpoint import CHECKPOINT_FILE, Checkpoint
from amqp_broker.store.seal import DamagedRecord, seal, unseal

FORMAT: Final = 2
TABLES: Final = ("meta", "definitions", "windows", "messages", "chunks", "garbage")
# Tables that grow with the backlog; they are not read at the start.
LARGE_TABLES: Final = ("messages", "chunks")
NUMBER: Final = struct.Struct(">Q")
POSITION: Final = struct.Struct(">QQ")
FORMAT_KEY: Final = b"format"
DATA_FILE: Final = "data.mdb"
LMDB_LOCK_FILE: Final = "lock.mdb"
# Size for 126 readers at once, LMDB's default.
LMDB_LOCK_BYTES: Final = 8192
LOCK_FILE: Final = "broker.lock"
COMPACTING_FILE: Final = "data.mdb.compacting"

T = TypeVar("T")
Tables: TypeAlias = Mapping[str, Any]
Step: TypeAlias = Callable[[lmdb.Transaction, Tables], object]

logger = logging.getLogger("amqp_broker.store")


def add_checksums(txn: lmdb.Transaction, tables: Tables) -> None:
    """Give each record its checksum: the step from format 1 to 2."""
    for name, table in tables.items():
        with txn.cursor(table) as cursor:
            is_there = cursor.first()
            while is_there:
                key, record = bytes(cursor.key()), bytes(cursor.value())
                if name == "chunks":
                    # A chunk that cannot be read gets a checksum, too.
                    with contextlib.suppress(struct.error, IndexError):
                        record = chunks.renew(POSITION.unpack(key)[1], record)
                if key != FORMAT_KEY or name != "meta":
                    cursor.put(key, seal(key, record))
                is_there = cursor.next()


# Steps to the next format, by the format that they read.
STEPS: Final[dict[int, Step]] = {1: add_checksums}


class StoreError(Exception):
    """The store cannot be used; the text has the reason and the remedy."""


class StoreMissing(StoreError):
    """There is no store to read."""


class StoreInUse(StoreError):
    """Another process uses the folder."""


class StoreUnusable(StoreError):
    """The folder has no store, a damaged one, or one of an unknown format."""


class StoreDamaged(StoreUnusable):
    """The pages of a store are damaged; a repair may save what can be read."""


class StoreInaccessible(StoreError):
    """The folder cannot be created, read or written."""


class Environment:
    """An open folder: `lmdb`, and its `tables` by name."""

    lmdb: lmdb.Environment
    tables: Tables

    def __init__(self, folder: Path, map_bytes: int | None = None, *, is_lazy: bool = False) -> None:
        """Open a store, or create one. Raise StoreError, and change nothing, if the folder cannot be used."""
        self.folder = folder
        # Held while a writing transaction begins or ends, and while the files are opened again.
        self.writing = threading.Lock()
        # Set if commits are lazy: flushed some time later.
        self.checkpoint: Checkpoint | None = None
        self.map_bytes = address_space.map_bytes() if map_bytes is None else map_bytes
        try:
            with contextlib.ExitStack() as undo:
                _make(folder, undo)
                # A folder with a checkpoint has a store, which may be torn until `settle`.
                if not (folder / LOCK_FILE).exists() and not (folder / CHECKPOINT_FILE).exists():
                    check(folder)
                lock_file = _lock(folder)
                undo.callback(os.close, lock_file)
                settle(folder)
                # LMDB ends the process at some damaged pages, so the last one may have met them.
                found = check(folder, is_thorough=lock.is_signed(lock_file))
                if found not in (None, FORMAT):
                    # Its messages are rewritten, too.
                    check(folder, is_thorough=True)
                    logger.info("the store in '%s' is converted from format %d to %d", folder, found, FORMAT)
                lock.sign(lock_file)
                (folder / COMPACTING_FILE).unlink(missing_ok=True)
                if found is not None:
                    checkpoint.rewrite_metas(folder / DATA_FILE)
                self._open()
                undo.callback(lambda: self.lmdb.close())
                self._prepare(found)
                if is_lazy and checkpoint.boot_id():
                    self._become_lazy()
                checkpoint.sync_names(folder)
                # From now on the new files stay.
                undo.pop_all()
        except OSError as error:
            raise _inaccessible(folder, error.strerror) from None
        except lmdb.Error as error:
            raise _inaccessible(folder, str(error).rpartition(": ")[2]) from None
        self._lock_file = lock_file

    def reopen(self) -> None:
        """Open the files again: after a failed write of a meta page LMDB refuses all work (MDB_PANIC).

        Call this on the reading thread, between two reads. Commits are kept; `tables` are replaced. Raise lmdb.Error.
        """
        with self.writing if self.checkpoint is None else self.checkpoint.pause():
            checkpoint.rewrite_metas(self.folder / DATA_FILE)
            self.lmdb.close()
            self._open()
            self._prepare(FORMAT)
            if self.checkpoint is not None:
                self.checkpoint.pin(self.lmdb)

    def _become_lazy(self) -> None:
        self.checkpoint = Checkpoint(self.folder, self.folder / DATA_FILE, self.writing)
        self.checkpoint.pin(self.lmdb)
        self.reopen()

    def _open(self) -> None:
        # A backlog is read from end to end, and may be larger than the page cache.
        options = {"mode": 0o600, "readahead": True, "sync": self.checkpoint is None}
        self.lmdb = _open(self.folder, map_bytes=self.map_bytes, **options)

    def _prepare(self, found: int | None) -> None:
        """Create the tables of a new store, or convert those of an older format."""
        if found == FORMAT:
            self.tables = {name: self.lmdb.open_db(name.encode()) for name in TABLES}
            return
        with self.lmdb.begin(write=True) as txn:
            # In one commit: tables without a format would be no store.
            self.tables = {name: self.lmdb.open_db(name.encode(), txn) for name in TABLES}
            migrate(txn, self.tables, FORMAT if found is None else found, FORMAT, STEPS)

    def used_bytes(self) -> int:
        """Return the octets of the pages in use; the file may have free ones, which are used again."""
        pages = 0
        with self.lmdb.begin() as txn:
            for table in self.tables.values():
                found = txn.stat(table)
                pages += found["branch_pages"] + found["leaf_pages"] + found["overflow_pages"]
        return pages * int(found["psize"])

    def enlarge(self) -> None:
        """Enlarge the full map. Call this only while there is no transaction but the checkpoint's. Raise OSError."""
        with self.writing if self.checkpoint is None else self.checkpoint.pause():
            self.map_bytes *= 2
            # This ends all transactions.
            self.lmdb.set_mapsize(self.map_bytes)
            if self.checkpoint is not None:
                self.checkpoint.pin(self.lmdb)

    def close(self, *, is_orderly: bool = True) -> None:
        """Release the folder; if that is not orderly, the next process checks all pages."""
        self.lmdb.close()
        if self.checkpoint is not None:
            self.checkpoint.close()
        if is_orderly:
            lock.unsign(self._lock_file)
        os.close(self._lock_file)


class ReadOnlyEnvironment(Environment):
    """A store that is read and copied, but not changed. All pages are checked unless it `is_quick`.

    `survey` has the numbers of pages and tables of the file.
    """

    def __init__(
        self, folder: Path, *, is_alone: bool, is_quick: bool = False, on_page: pages.OnPage | None = None
    ) -> None:
        """Open a store, for this process only (`is_alone`) or beside a broker. Raise StoreError."""
        self.folder = folder
        data = folder / DATA_FILE
        if not data.is_file() or not data.stat().st_size:
            raise StoreMissing(f"there is no store in '{folder}'; name the folder of one with --data-dir")
        self._tables_skipped = LARGE_TABLES if is_quick else ()
        self._on_page = on_page
        try:
            with contextlib.ExitStack() as files:
                if is_alone:
                    self._open_alone(data, files)
                else:
                    self._open_beside(data, files)
                if _check_format(folder, _format_in(self.lmdb)) != FORMAT:
                    raise StoreUnusable(f"'{folder}' has an older format; start a broker on it once, which renews it")
                self.tables = {name: self.lmdb.open_db(name.encode(), create=False) for name in TABLES}
                self._files = files.pop_all()
        except OSError as error:
            raise _unreadable(folder, error.strerror) from None
        except lmdb.Error as error:
            raise _unreadable(folder, str(error).rpartition(": ")[2]) from None

    def _open_alone(self, data: Path, files: contextlib.ExitStack) -> None:
        if not os.path.lexists(self.folder / LOCK_FILE):
            files.callback((self.folder / LOCK_FILE).unlink, missing_ok=True)
        lock_file = _lock(self.folder)
        files.callback(os.close, lock_file)
        settle(self.folder)
        self.survey = self._survey(data)
        lock.sign(lock_file)
        files.callback(lock.unsign, lock_file)
        self.lmdb = _open(self.folder, readonly=True, lock=False)
        files.callback(self.lmdb.close)

    def _open_beside(self, data: Path, files: contextlib.ExitStack) -> None:
        """Open a store that a broker may use, and keep its present pages from being overwritten."""
        files.callback(os.close, hold(data, is_shared=True))
        if checkpoint.is_behind(self.folder):
            raise StoreUnusable(f"the machine of '{self.folder}' has lost power; start a broker on it once")
        # A folder that no broker ever used gets no file of LMDB before it is known to be a store.
        is_unused = not (self.folder / LMDB_LOCK_FILE).exists()
        if is_unused:
            self._survey(data)
        else:
            usable(data, lambda: _read_meta(data))
        self.lmdb = _open(self.folder, readonly=True)
        files.callback(self.lmdb.close)
        self._pin = self.lmdb.begin()
        files.callback(self._pin.abort)
        self.survey = self._survey(data)

    def _survey(self, data: Path) -> pages.Survey:
        survey = usable(data, lambda: pages.survey(data, TABLES, self._tables_skipped, self._on_page))
        missing = [name for name in TABLES if name not in survey.tables]
        if survey.tables and missing:
            raise StoreDamaged(f"'{data}' is damaged: table {missing[0]} is missing; run `store repair`")
        return survey

    def make_writable(self) -> None:
        """Open the files for changes, in a store that no broker uses. Raise lmdb.Error."""
        self.lmdb.close()
        self.lmdb = _open(self.folder, mode=0o600)
        self._files.callback(self.lmdb.close)
        self.tables = {name: self.lmdb.open_db(name.encode(), create=False) for name in TABLES}

    def close(self, *, is_orderly: bool = True) -> None:
        self._files.close()

    def unpin(self) -> None:
        """Allow the pinned pages to be overwritten."""
        self._pin.abort()


def _open(folder: Path, *, map_bytes: int | None = None, **options: Any) -> lmdb.Environment:
    map_bytes = address_space.map_bytes() if map_bytes is None else map_bytes
    if options.get("lock", True):
        # Reading works in a folder that cannot be written.
        with contextlib.suppress(*((OSError,) if options.get("readonly") else ())):
            _allocate(folder / LMDB_LOCK_FILE)
    options.setdefault("readahead", False)
    return lmdb.open(str(folder), map_size=map_bytes, max_dbs=len(TABLES), **options)


def _allocate(path: Path) -> None:
    """Allocate LMDB's lock file on the disk; on a full disk a missing block ends the process (SIGBUS)."""
    if not hasattr(os, "posix_fallocate"):
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        is_new = not os.fstat(descriptor).st_size
        os.posix_fallocate(descriptor, 0, LMDB_LOCK_BYTES)
    except OSError:
        if is_new:
            raise
    finally:
        os.close(descriptor)


def _make(folder: Path, undo: contextlib.ExitStack) -> None:
    """Create the folder if it is missing; `undo` removes what was created, now or later."""
    if not folder.exists():
        if not folder.parent.is_dir():
            raise StoreInaccessible(
                f"'{folder.parent}' is no folder; make it one, or give another folder with --data-dir"
            )
        folder.mkdir(mode=0o700)
        undo.callback(folder.rmdir)
    elif not folder.is_dir():
        raise StoreInaccessible(f"'{folder}' is not a folder; give one with --data-dir")
    for name in (DATA_FILE, LMDB_LOCK_FILE, LOCK_FILE):
        if not os.path.lexists(folder / name):
            undo.callback((folder / name).unlink, missing_ok=True)


def _lock(folder: Path) -> int:
    try:
        return lock.acquire(folder / LOCK_FILE)
    except lock.Held as held:
        raise StoreInUse(
            f"'{folder}' is in use by process {held.holder or '(unknown)'}; "
            "end that, or give another folder with --data-dir"
        ) from None
    except lock.CannotLock as error:
        raise _unlockable(folder, error) from None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep all other processes from using a store. Raise StoreInUse and OSError."""
    lock_file = _lock(folder)
    try:
        yield
    finally:
        os.close(lock_file)


def hold(data: Path, *, is_shared: bool) -> int:
    """Keep the file from being replaced, alone or with others; return its descriptor. Raise StoreInUse and OSError."""
    try:
        return lock.hold(data, is_shared=is_shared)
    except lock.Held:
        other = "compacted" if is_shared else "backed up"
        raise StoreInUse(f"'{data.parent}' is being {other}; try again when that is done") from None
    except lock.CannotLock as error:
        raise _unlockable(data.parent, error) from None


def settle(folder: Path) -> None:
    """Undo the commits that a power loss has torn, in a locked folder. Raise OSError."""
    lost = checkpoint.settle(folder, folder / DATA_FILE, folder / LMDB_LOCK_FILE)
    if lost is not None:
        reason = "could not write all commits of '%s' to its disk"
        if not lost.has_failed:
            reason = "of '%s' started again while commits were not flushed"
        logger.warning(f"the machine {reason} (store_sync is os): the last moments before are lost", folder)


def check(folder: Path, *, is_thorough: bool = False) -> int | None:
    """Return the format of the store in a folder; None if there is none yet. Raise StoreError if it is unusable.

    The pages of messages are checked if it `is_thorough`.
    """
    data = folder / DATA_FILE
    # LMDB leaves an empty file if it is interrupted before its first write.
    if not data.exists() or (data.is_file() and not data.stat().st_size):
        return None
    survey = usable(data, lambda: pages.survey(data, TABLES, () if is_thorough else LARGE_TABLES))
    if not survey.tables:
        return None
    with contextlib.closing(_open(folder, readonly=True, lock=False)) as reading:
        found = _check_format(folder, _format_in(reading))
        if found == FORMAT:
            _check_records(data, reading, survey.tables)
        return found


def _check_records(data: Path, reading: lmdb.Environment, tables: Collection[str]) -> None:
    """Check the records that a broker reads at its start. Raise StoreUnusable."""
    damaged = [f"table {name} is missing" for name in TABLES if name not in tables]
    for name in TABLES if not damaged else ():
        if name in LARGE_TABLES:
            continue
        table = reading.open_db(name.encode(), create=False)
        with reading.begin() as txn, txn.cursor(table) as cursor:
            for key, sealed in cursor:
                try:
                    if key != FORMAT_KEY or name != "meta":
                        unseal(key, sealed)
                except DamagedRecord:
                    damaged.append(described(name, key))
    if damaged:
        more = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        raise StoreUnusable(
            f"'{data}' is damaged: {damaged[0]}{more}; run `store verify` to list everything, "
            "and `store repair` to go on without it, or put a backup in its place"
        )


def described(table: str, key: bytes) -> str:
    """Return a sentence's words for a damaged record of a small table."""
    if table == "definitions":
        kind = key.partition(b":")[0].decode(errors="replace").replace("_", " ")
        return f"the checksum of a definition ({kind}) is wrong"
    return {
        "windows": "the checksum of the state of a queue is wrong",
        "garbage": "the checksum of a part that is to be deleted is wrong",
    }.get(table, f"the checksum of '{key.decode(errors='replace')}' in table {table} is wrong")


def usable(data: Path, look: Callable[[], T]) -> T:
    """Return the result of `look`, which reads pages of a file. Raise StoreUnusable."""
    try:
        return look()
    except pages.ForeignFile as error:
        raise StoreUnusable(
            f"'{data}' is not the store of a broker: {error}; give another folder with --data-dir"
        ) from None
    except pages.DamagedFile as error:
        raise StoreDamaged(
            f"'{data}' is damaged: {error}; put a backup in its place, or run `store repair` to save what can be read"
        ) from None


def _read_meta(data: Path) -> pages.Meta:
    with data.open("rb", buffering=0) as file:
        return pages.read_meta(file)


def _format_in(environment: lmdb.Environment) -> int:
    try:
        table = environment.open_db(b"meta", create=False)
    except lmdb.NotFoundError:
        return 0
    with environment.begin() as txn:
        value = txn.get(b"format", db=table) or b""
    return int(NUMBER.unpack(value)[0]) if len(value) == NUMBER.size else 0


def _check_format(folder: Path, found: int) -> int:
    if found > FORMAT:
        raise StoreUnusable(
            f"'{folder}' has format {found}, which is newer than {FORMAT}, the format of this broker; "
            "start the broker that wrote it, or give another folder with --data-dir"
        )
    if any(number not in STEPS for number in range(found, FORMAT)):
        raise StoreUnusable(
            f"'{folder}' has format {found}, which this broker does not read any more; "
            "start a broker on it that does, or give another folder with --data-dir"
        )
    return found


def migrate(txn: lmdb.Transaction, tables: Tables, found: int, wanted: int, steps: Mapping[int, Step]) -> None:
    """Convert a store from format `found` to format `wanted`, step by step."""
    for number in range(found, wanted):
        steps[number](txn, tables)
    txn.put(b"format", NUMBER.pack(wanted), db=tables["meta"])


def _inaccessible(folder: Path, reason: str | None) -> StoreInaccessible:
    return StoreInaccessible(
        f"'{folder}' cannot be written: {reason}; change that, or give another folder with --data-dir"
    )


def _unlockable(folder: Path, error: lock.CannotLock) -> StoreInaccessible:
    return StoreInaccessible(
        f"'{folder}' cannot be locked: {error}; another process could use it as well; "
        "give a folder of a file system that has locks with --data-dir"
    )


def _unreadable(folder: Path, reason: str | None) -> StoreInaccessible:
    return StoreInaccessible(f"'{folder}' cannot be read: {reason}; run this as the user who runs the broker")
