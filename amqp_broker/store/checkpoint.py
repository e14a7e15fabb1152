"""The commit that a power loss leaves, in a store that flushes its commits later (`store_sync` os).

Without a flush per commit the system writes pages in any order, and LMDB alone could not be opened after a power loss:

- It overwrites pages that the commit before last has given up, and alternates between two meta pages. After a power
  loss the newer meta page may be on the disk and its tree not, or the tree of the older one may be overwritten.
- MDB_NOMETASYNC avoids that, and still flushes once per commit. MDB_WRITEMAP and MDB_MAPASYNC change how pages reach
  the page cache, not the order in which they leave it.

So one commit, the checkpoint, is whole on the disk at any time:

1. A read transaction pins it: LMDB overwrites none of its pages.
2. `Checkpoint.sync` pins the newest commit as well, flushes data.mdb, then writes both meta pages to a slot of the file
   `checkpoint` and flushes that. Only then the former pin ends. Two slots take turns; each has a checksum.
3. If the machine has started again since, `settle` writes the meta pages of the checkpoint back, whatever the disk has
   of later commits. If only the process was killed, the page cache has everything, and the newest commit is valid.

The kernel's boot id tells the two apart. It is Linux's; other systems flush each commit.

A flush of data.mdb that fails is final: the system drops what it could not write, and reports success the next time. So
the checkpoint is written once more as that of another start (`FAILED`), and the next process goes back to it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import struct
import sys
import threading
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple

import lmdb

from amqp_broker.store.pages import META_BYTES, read_meta
from amqp_broker.store.seal import SEAL_BYTES, DamagedRecord, seal, unseal

CHECKPOINT_FILE: Final = "checkpoint"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
# Number of the checkpoint, octets of a page, boot id, both meta pages.
SLOT: Final = struct.Struct(f">QQ36s{META_BYTES}s{META_BYTES}s")
# Each slot has a page of its own: a torn write of one leaves the other.
SLOT_STEP: Final = 4096
KEY: Final = b"checkpoint"
# In place of the boot id, after a flush has failed.
FAILED: Final = b"a flush has failed"

logger = logging.getLogger("amqp_broker.store")


class Slot(NamedTuple):
    """A slot of the file; `metas` has the first octets of both meta pages."""

    number: int
    page_bytes: int
    boot: bytes
    metas: tuple[bytes, bytes]

    @property
    def has_failed(self) -> bool:
        """A flush of later commits has failed."""
        return self.boot.rstrip(b"\0") == FAILED


class FlushFailed(Exception):
    """Commits since the checkpoint may not be on the disk, and no later flush can bring them there."""


def boot_id() -> bytes:
    """Return the id of the machine's last start; nothing on systems that have none."""
    try:
        return BOOT_ID.read_bytes().strip()
    except OSError:
        return b""


class Checkpoint:
    """The checkpoint of an open store, on Linux. `error` is set when a flush has failed; it stays.

    `writing` is held while a transaction is committed. Methods raise FlushFailed, OSError and lmdb.Error.
    """

    # The transaction that keeps the pages of the checkpoint.
    _pinning: lmdb.Transaction

    def __init__(self, folder: Path, data: Path, writing: threading.Lock) -> None:
        """Create the file; the first `pause` makes a checkpoint."""
        self._path, self._writing, self._number = folder / CHECKPOINT_FILE, writing, 0
        # Held while a checkpoint is made, before `writing`.
        self._advancing = threading.Lock()
        self.error: FlushFailed | OSError | None = None
        # The meta pages of the checkpoint.
        self._metas = (b"", b"")
        self._store_file = data.open("rb", buffering=0)
        try:
            self._slots_file = open(self._path, "xb", buffering=0, opener=_open_for_owner)  # noqa: SIM115
        except OSError:
            self._store_file.close()
            raise

    def pin(self, environment: lmdb.Environment) -> None:
        """Keep the pages of the newest commit of an environment that was just opened; it is the checkpoint."""
        self._environment = environment
        self._pinning = environment.begin()

    def sync(self) -> None:
        """Flush what is committed, and make the newest commit the checkpoint. Commits go on meanwhile."""
        with self._advancing:
            with self._writing:
                pinning = self._environment.begin()
                metas = self._read_metas()
            if pinning.id() == self._pinning.id() and self.error is None:
                pinning.abort()
                return
            try:
                self._advance(metas)
            except (FlushFailed, OSError):
                pinning.abort()
                raise
            self._pinning.abort()
            self._pinning = pinning

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Make the newest commit the checkpoint, and no commit until the end of the block, which calls `pin`."""
        with self._advancing, self._writing:
            self._advance(self._read_metas())
            yield

    def _read_metas(self) -> tuple[bytes, bytes]:
        page_bytes = self._environment.stat()["psize"]
        return self._read_meta(0), self._read_meta(page_bytes)

    def _read_meta(self, at: int) -> bytes:
        self._store_file.seek(at)
        return self._store_file.read(META_BYTES)

    def _advance(self, metas: tuple[bytes, bytes]) -> None:
        """Flush the store, then make the commit of these meta pages the checkpoint."""
        if isinstance(self.error, FlushFailed):
            raise self.error
        try:
            self._flush_store()
            self._write_slot(metas, boot_id())
        except (FlushFailed, OSError) as error:
            self.error = error
            raise
        self._metas, self.error = metas, None

    def _flush_store(self) -> None:
        try:
            _flush(self._store_file)
        except OSError as error:
            if self._number:
                # Where this fails, too, the disk has nothing newer.
                with contextlib.suppress(OSError):
                    self._write_slot(self._metas, FAILED)
            raise FlushFailed(error.strerror or str(error)) from None

    def _write_slot(self, metas: tuple[bytes, bytes], boot: bytes) -> None:
        slot = SLOT.pack(self._number, self._environment.stat()["psize"], boot, *metas)
        self._slots_file.seek(self._number % 2 * SLOT_STEP)
        self._slots_file.write(seal(KEY, slot))
        _flush(self._slots_file)
        if not self._number:
            sync_folder(self._path.parent)
        self._number += 1

    def close(self) -> None:
        """Flush the store, whose environment is closed, and remove the file if that succeeds."""
        try:
            if isinstance(self.error, FlushFailed):
                raise self.error
            _flush(self._store_file)
            self._path.unlink()
            sync_folder(self._path.parent)
        except (FlushFailed, OSError) as error:
            logger.error("the last changes may not be on the disk: %s", error)
        self._store_file.close()
        self._slots_file.close()


def is_behind(folder: Path) -> bool:
    """Return whether the machine has started again since a process left the store without a proper end."""
    return _lost_slot(folder) is not None


def rewrite_metas(data: Path) -> None:
    """Write the meta pages to the disk as this machine sees them.

    After a failed write of a meta page the disk may have another commit, whose pages the next one overwrites. Raise
    OSError.
    """
    if not data.exists() or not data.stat().st_size:
        return
    with data.open("r+b", buffering=0) as file:
        for at in (0, read_meta(file).page_bytes):
            file.seek(at)
            meta = file.read(META_BYTES)
            file.seek(at)
            file.write(meta)
        _flush(file)


def settle(folder: Path, data: Path, lmdb_lock: Path) -> Slot | None:
    """Repair a store whose last process had no proper end.

    Return the checkpoint if its later commits are given up.

    Call this with the lock of the store. Raise OSError.
    """
    if not (folder / CHECKPOINT_FILE).exists():
        return None
    lost = _lost_slot(folder)
    if data.exists():
        with data.open("r+b", buffering=0) as file:
            if lost is not None:
                for at, meta in zip((0, lost.page_bytes), lost.metas, strict=True):
                    file.seek(at)
                    file.write(meta)
                # It names a commit that is given up.
                lmdb_lock.unlink(missing_ok=True)
            os.fsync(file.fileno())
    (folder / CHECKPOINT_FILE).unlink()
    # Pages of the checkpoint are overwritten from now on: it must not come back.
    sync_folder(folder)
    return lost


def _lost_slot(folder: Path) -> Slot | None:
    """Return the checkpoint to go back to; None if the newest commit is valid."""
    try:
        octets = (folder / CHECKPOINT_FILE).read_bytes()
    except FileNotFoundError:
        return None
    slots = [slot for at in (0, SLOT_STEP) if (slot := _slot_in(octets[at : at + SLOT.size + SEAL_BYTES]))]
    # Without a slot, nothing was committed that was not flushed.
    newest = max(slots, default=None)
    return newest if newest is not None and newest.boot != boot_id() else None


def _slot_in(octets: bytes) -> Slot | None:
    if len(octets) != SLOT.size + SEAL_BYTES:
        return None
    try:
        number, page_bytes, boot, first, second = SLOT.unpack(unseal(KEY, octets))
    except DamagedRecord:
        return None
    return Slot(number, page_bytes, boot, (first, second))


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _flush(file: FileIO) -> None:
    """Write a file's content to the disk. Raise OSError."""
    if sys.platform == "linux":
        os.fdatasync(file.fileno())
    else:
        os.fsync(file.fileno())


def sync_names(folder: Path) -> None:
    """Write the names in a folder, and its own, to the disk: after a power loss a new store is there. Raise OSError."""
    sync_folder(folder)
    # A folder that others own may be unreadable; they have made this one.
    with contextlib.suppress(PermissionError):
        sync_folder(folder.resolve().parent)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk. Windows does so by itself. Raise OSError."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            # Some network file systems flush no folders; they keep names in another way.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(descriptor)
