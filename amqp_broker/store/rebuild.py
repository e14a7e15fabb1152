"""A new store in place of one with damaged pages. The damaged file is kept."""

from __future__ import annotations

import contextlib
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import lmdb

from amqp_broker.store import address_space
from amqp_broker.store.checkpoint import sync_folder
from amqp_broker.store.environment import (
    DATA_FILE,
    FORMAT,
    FORMAT_KEY,
    LMDB_LOCK_FILE,
    NUMBER,
    TABLES,
    StoreInaccessible,
    StoreUnusable,
    hold,
    locked,
    usable,
)
from amqp_broker.store.salvage import Salvage, salvage

# Where the new store is written.
NEW_FOLDER: Final = "rebuilding"
# Records per transaction.
BATCH_RECORDS: Final = 10_000
# Damaged pages that are listed.
LISTED_MAX: Final = 20


def rebuild(folder: Path) -> tuple[list[str], Path]:
    """Replace the file of a store by a new one with all records that can be read.

    Return sentences about losses, and the name that the damaged file now has. Raise StoreError; the store is then as it
    was.
    """
    data, new = folder / DATA_FILE, folder / NEW_FOLDER
    kept = folder / f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.mdb"
    with contextlib.ExitStack() as held:
        held.enter_context(locked(folder))
        held.callback(os.close, hold(data, is_shared=False))
        try:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(mode=0o700)
            held.callback(shutil.rmtree, new, ignore_errors=True)
            counts: dict[str, int] = dict.fromkeys(TABLES, 0)
            found = _write(data, new, counts)
            # The store has a data file at every moment: without one, a broker would begin anew.
            _copy(data, kept)
            (new / DATA_FILE).replace(data)
            (folder / LMDB_LOCK_FILE).unlink(missing_ok=True)
            sync_folder(folder)
        except (OSError, lmdb.Error) as error:
            raise StoreInaccessible(f"'{folder}' cannot be repaired: {error}") from None
    return _losses(found, counts), kept


def _write(data: Path, new: Path, counts: dict[str, int]) -> Salvage:
    """Write a store with the records of a damaged file; count them by table. Raise StoreUnusable."""
    with lmdb.open(str(new), map_size=address_space.map_bytes(), max_dbs=len(TABLES), mode=0o600) as store:
        tables = {name: store.open_db(name.encode()) for name in TABLES}
        writing = _Writing(store, tables, counts)
        found = usable(data, lambda: salvage(data, TABLES, writing.put))
        if found.format not in (None, FORMAT):
            raise StoreUnusable(
                f"'{data}' has format {found.format}, whose records have no checksums; put a backup in its place"
            )
        if not any(counts.values()):
            raise StoreUnusable(
                f"'{data}' has nothing that can be read; put a backup in its place, or move it away to start without it"
            )
        writing.txn.put(FORMAT_KEY, NUMBER.pack(FORMAT), db=tables["meta"])
        writing.txn.commit()
        return found


class _Writing:
    """Puts records into tables, many in one transaction."""

    def __init__(self, store: lmdb.Environment, tables: dict[str, Any], counts: dict[str, int]) -> None:
        self._store = store
        self._tables = tables
        self._counts = counts
        self._left = BATCH_RECORDS
        self.txn = store.begin(write=True)

    def put(self, table: str, key: bytes, sealed: bytes) -> None:
        if self.txn.put(key, sealed, db=self._tables[table], overwrite=False):
            self._counts[table] += 1
        self._left -= 1
        if not self._left:
            self.txn.commit()
            self.txn, self._left = self._store.begin(write=True), BATCH_RECORDS


def _copy(data: Path, kept: Path) -> None:
    try:
        os.link(data, kept)
    except OSError:
        # The file system has no second names for a file.
        shutil.copyfile(data, kept)


def _losses(found: Salvage, counts: dict[str, int]) -> list[str]:
    numbers = sorted(found.damaged)
    listed = ", ".join(map(str, numbers[:LISTED_MAX])) + (", …" if len(numbers) > LISTED_MAX else "")
    sentences = [f"{len(numbers)} of {found.page_count} pages are damaged: {listed}."] if numbers else []
    if not found.is_newest:
        sentences.append("a meta page is damaged: the changes of the last commit may be lost.")
    for table, words in (("definitions", "definitions"), ("garbage", "deleted parts")):
        entries = found.entries.get(table)
        if entries is None:
            sentences.append(f"{counts[table]} {words} are found; it is not known how many there were.")
        elif counts[table] < entries:
            sentences.append(f"{entries - counts[table]} of {entries} {words} cannot be read and are dropped.")
    return sentences or ["its pages contradict each other, and are written anew."]
