"""Backups of a store, also while a broker uses it, and compaction."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import lmdb

from amqp_broker.store.checkpoint import sync_folder, sync_names
from amqp_broker.store.environment import (
    COMPACTING_FILE,
    DATA_FILE,
    LMDB_LOCK_FILE,
    ReadOnlyEnvironment,
    StoreInaccessible,
    hold,
)
from amqp_broker.store.pages import OnPage

# Reserve for what a running broker writes during a copy (octets).
SPARE_BYTES = 1024 * 1024


def back_up(folder: Path, to: Path, on_page: OnPage | None = None) -> int:
    """Copy a store to an empty or new folder; return the octets of the copy.

    A broker may use the store meanwhile. The copy has everything that was committed before. Raise StoreError; then
    nothing is left of the copy.
    """
    with contextlib.closing(ReadOnlyEnvironment(folder, is_alone=False, on_page=on_page)) as environment:
        environment.unpin()
        with contextlib.ExitStack() as undo:
            try:
                _make_empty(to, undo)
                # Under another name until it is whole: no broker starts on a part.
                new = to / COMPACTING_FILE
                new.unlink(missing_ok=True)
                size = _copy(environment, to, new, undo)
                new.replace(to / DATA_FILE)
                undo.callback((to / DATA_FILE).unlink, missing_ok=True)
                sync_names(to)
            except (OSError, lmdb.Error) as error:
                raise StoreInaccessible(f"cannot write the backup to '{to}': {_reason(error)}") from None
            undo.pop_all()
            return size


def compact(folder: Path, on_page: OnPage | None = None) -> tuple[int, int]:
    """Rewrite a store without its free pages; return the octets of the file before and after.

    The new file replaces the old one when it is complete and on the disk. Raise StoreError.
    """
    data, new = folder / DATA_FILE, folder / COMPACTING_FILE
    with (
        contextlib.closing(ReadOnlyEnvironment(folder, is_alone=True, on_page=on_page)) as environment,
        contextlib.ExitStack() as undo,
        contextlib.ExitStack() as held,
    ):
        # No backup may have the old file open: LMDB's lock file has its commit numbers, which do not fit the new one.
        held.callback(os.close, hold(data, is_shared=False))
        before = data.stat().st_size
        try:
            new.unlink(missing_ok=True)
            after = _copy(environment, folder, new, undo)
            held.callback(os.close, hold(new, is_shared=False))
            new.replace(data)
            (folder / LMDB_LOCK_FILE).unlink(missing_ok=True)
            sync_folder(folder)
        except (OSError, lmdb.Error) as error:
            raise StoreInaccessible(f"cannot compact '{folder}', which is as it was: {_reason(error)}") from None
        undo.pop_all()
    return before, after


def _make_empty(folder: Path, undo: contextlib.ExitStack) -> None:
    if folder.is_dir():
        # A backup that was killed left a part of its copy.
        if any(path.name != COMPACTING_FILE for path in folder.iterdir()):
            raise StoreInaccessible(f"'{folder}' is not empty; name a new folder for the backup with --to")
    elif folder.exists():
        raise StoreInaccessible(f"'{folder}' is not a folder; name a new one for the backup with --to")
    else:
        if not folder.parent.is_dir():
            raise StoreInaccessible(f"'{folder.parent}' is no folder; make it one, or name another with --to")
        folder.mkdir(mode=0o700)
        undo.callback(folder.rmdir)


def _copy(environment: ReadOnlyEnvironment, folder: Path, path: Path, undo: contextlib.ExitStack) -> int:
    """Write a compact copy to a new file and to the disk; return its octets. Raise OSError and lmdb.Error."""
    survey = environment.survey
    needed = (survey.page_count - survey.free_pages) * survey.page_bytes + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(f"it takes {needed} octets, and {free} are free")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    undo.callback(path.unlink, missing_ok=True)
    try:
        environment.lmdb.copyfd(descriptor, compact=True)
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error).rpartition(": ")[2]
