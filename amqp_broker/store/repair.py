"""The repair of a store: what is damaged leaves it, with a copy in a file beside it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import lmdb

from amqp_broker.amqp import fields
from amqp_broker.broker import journal_entries
from amqp_broker.broker.durability.journal import END, RangeState
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.store import chunks, verify
from amqp_broker.store.contents import Contents, describe
from amqp_broker.store.environment import (
    FORMAT_KEY,
    LARGE_TABLES,
    NUMBER,
    POSITION,
    TABLES,
    ReadOnlyEnvironment,
    StoreDamaged,
    StoreInaccessible,
)
from amqp_broker.store.journal import NAMES, NEXT_RANGE, STATE, encode_key
from amqp_broker.store.rebuild import rebuild
from amqp_broker.store.seal import DamagedRecord, mended, seal, unseal


@dataclass
class Repair:
    """The result of a repair: a sentence for each loss and change.

    `copy` is the file with what was dropped or changed, `replaced` the former file of a store with damaged pages.
    """

    changes: list[str] = field(default_factory=list)
    copy: Path | None = None
    replaced: Path | None = None


def repair(folder: Path) -> Repair:
    """Remove damaged records from a store that no broker uses, and correct its counts. Raise StoreError.

    If pages are damaged, a new store gets what can be read, and the damaged file is kept.
    """
    try:
        return _repair_records(folder)
    except StoreDamaged:
        changes, kept = rebuild(folder)
    result = _repair_records(folder)
    return Repair(changes + result.changes, result.copy, kept)


def _repair_records(folder: Path) -> Repair:
    with contextlib.closing(ReadOnlyEnvironment(folder, is_alone=True)) as environment:
        try:
            environment.make_writable()
            return _Repairing(environment).run()
        except (OSError, lmdb.Error) as error:
            raise StoreInaccessible(f"'{folder}' cannot be repaired: {error}") from None


class _Repairing:
    def __init__(self, environment: ReadOnlyEnvironment) -> None:
        self._environment = environment
        self._result = Repair()

    def run(self) -> Repair:
        self._mend_or_drop()
        self._fill_gaps()
        self._restore_vhosts()
        while undeclared := Contents(self._environment).undeclared:
            self._result.changes += [f"{describe(key)} is dropped: what it belongs to is lost." for key in undeclared]
            self._drop([("definitions", encode_key(key)) for key in undeclared])
        self._correct()
        return self._result

    def _restore_vhosts(self) -> None:
        """Declare lost vhosts again. A queue without its vhost would be dropped with its messages."""
        contents = Contents(self._environment)
        named = {key[1] for key in contents.undeclared if key[0] in IN_VHOSTS}
        for user in contents.broker.users.values():
            named |= {*user.permissions, *(vhost for vhost, _ in user.topic_permissions)}
        with self._environment.lmdb.begin(write=True) as txn:
            for name in sorted(named - contents.broker.vhosts.keys()):
                self._result.changes.append(f"vhost '{name}' is lost, and declared again.")
                vhost = contents.broker.add_vhost(name)
                key, value = journal_entries.of_vhost(name, vhost.limits, vhost.metadata)
                stored_key = encode_key(key)
                sealed = seal(stored_key, fields.encode_table({**value, NAMES: list(key)}))
                txn.put(stored_key, sealed, db=self._environment.tables["definitions"])

    def _mend_or_drop(self) -> None:
        """Restore the damaged records of small tables in which one bit has changed, and drop all others."""
        environment, dropped = self._environment, []
        # Table, key, and the key and the record that replace it.
        mending: list[tuple[str, bytes, tuple[bytes, bytes]]] = []
        owners = Contents(environment).ranges
        for table in TABLES:
            for key, sealed in verify.rows(environment, table):
                if key == FORMAT_KEY and table == "meta":
                    continue
                try:
                    unseal(key, sealed)
                except DamagedRecord:
                    whole = mended(key, sealed) if table not in LARGE_TABLES else None
                    name = _name(table, key, owners)
                    if whole is None:
                        dropped.append((table, key))
                        self._result.changes.append(f"{name} cannot be read and is dropped.")
                    else:
                        mending.append((table, key, whole))
                        self._result.changes.append(f"{name} was damaged; the changed bit is restored.")
        lost = self._lost_chunks([key for table, key in dropped if table == "chunks"])
        dropped = [one for one in dropped if one[1] not in lost]
        mending += [("chunks", key, (key, record)) for key, record in lost.items()]
        self._keep([(table, key) for table, key, _ in mending])
        with environment.lmdb.begin(write=True) as txn:
            for table, key, (true_key, sealed) in mending:
                txn.delete(key, db=environment.tables[table])
                txn.put(true_key, sealed, db=environment.tables[table])
        self._drop(dropped)

    def _lost_chunks(self, damaged: list[bytes]) -> dict[bytes, bytes]:
        """Return records in place of damaged chunks, by key: the offsets of a stream have no gaps."""
        states, _ = verify.states_of(self._environment)
        lost: dict[bytes, bytes] = {}
        with self._environment.lmdb.begin() as txn, txn.cursor(self._environment.tables["chunks"]) as cursor:
            for key in damaged if damaged and len(damaged[0]) == POSITION.size else ():
                range_id, first = POSITION.unpack(key)
                cursor.set_key(key)
                following = POSITION.unpack(cursor.key()) if cursor.next() else (0, 0)
                end = following[1] if following[0] == range_id else states.get(range_id, RangeState()).next
                if end > first:
                    lost[key] = seal(key, chunks.lost(first, end - first, _timestamp_before(cursor, key)))
        return lost

    def _fill_gaps(self) -> None:
        """Have the offsets of streams without gaps: chunks without messages take those of lost chunks."""
        states, _ = verify.states_of(self._environment)
        garbage, _ = verify.garbage_of(self._environment)
        # The offset that comes next, and the time of the last chunk, by stream.
        owners = {
            range_id: queue
            for vhost in Contents(self._environment).broker.vhosts.values()
            for queue in vhost.queues.values()
            for range_id in (queue.ranges if isinstance(queue, StreamQueue) else ())
        }
        # Where the state is lost, the stream begins with the first chunk that is found.
        streams = {range_id: (states[range_id].head, 0) for range_id in owners if range_id in states}
        fillers: list[tuple[bytes, bytes]] = []

        def fill(range_id: int, end: int) -> None:
            start, timestamp_ms = streams[range_id]
            if start < end:
                key = POSITION.pack(range_id, start)
                fillers.append((key, seal(key, chunks.lost(start, end - start, timestamp_ms))))
                self._result.changes.append(f"{owners[range_id]} has lost the offsets {start} to {end - 1}.")

        for key, record in verify.rows(self._environment, "chunks"):
            range_id, first = POSITION.unpack(key)
            if range_id in owners and not verify.is_garbage(garbage.get(range_id, []), first):
                head, _ = chunks.decode_head(first, record)
                streams.setdefault(range_id, (first, 0))
                fill(range_id, first)
                streams[range_id] = head.end, head.timestamp_ms
        for range_id in streams.keys() & states.keys():
            fill(range_id, states[range_id].next)
        with self._environment.lmdb.begin(write=True) as txn:
            for key, sealed in fillers:
                txn.put(key, sealed, db=self._environment.tables["chunks"])

    def _drop(self, keys: list[tuple[str, bytes]]) -> None:
        self._keep(keys)
        with self._environment.lmdb.begin(write=True) as txn:
            for table, key in keys:
                txn.delete(key, db=self._environment.tables[table])

    def _keep(self, keys: list[tuple[str, bytes]]) -> None:
        """Write copies of records to the file beside the store, and to the disk."""
        if not keys:
            return
        if self._result.copy is None:
            name = f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.jsonl"
            self._result.copy = self._environment.folder / name
        descriptor = os.open(self._result.copy, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file, self._environment.lmdb.begin() as txn:
            for table, key in keys:
                record = txn.get(key, db=self._environment.tables[table]) or b""
                file.write(json.dumps({"table": table, "key": key.hex(), "record": record.hex()}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _correct(self) -> None:
        """Have the states count what is there, and discard messages that belong to nothing."""
        environment = self._environment
        contents = Contents(environment)
        garbage, _ = verify.garbage_of(environment)
        found = verify.read_messages(environment, contents, garbage)
        verify.read_chunks(environment, garbage, found)
        states, _ = verify.states_of(environment)
        strays = {
            range_id
            for range_id in (states.keys() | found.keys()) - contents.ranges.keys()
            if not verify.is_transient(states.get(range_id, RangeState()))
        }
        self._keep([(table, key) for table in LARGE_TABLES for key in self._keys_of(table, strays)])
        with environment.lmdb.begin(write=True) as txn:
            for stray in sorted(strays):
                self._result.changes.append(f"the messages of range {stray}, which belongs to nothing, are dropped.")
                txn.delete(NUMBER.pack(stray), db=environment.tables["windows"])
                key = POSITION.pack(stray, 0)
                txn.put(key, seal(key, NUMBER.pack(END)), db=environment.tables["garbage"])
            for range_id, (owner, _) in contents.ranges.items():
                former = states.get(range_id)
                # Positions that are still to be deleted are not given to new messages.
                used = max((end for _, end in garbage.get(range_id, ())), default=0)
                state = _counted(former, found.get(range_id, verify.Found()), used)
                if state != (former or RangeState()):
                    self._result.changes.append(f"{owner} has {_shown_count(former, state)} messages.")
                    key = NUMBER.pack(range_id)
                    txn.put(key, seal(key, STATE.pack(*state)), db=environment.tables["windows"])
            last = max((*states, *found, *contents.ranges, *garbage), default=0)
            if contents.next_range <= last or contents.next_range == END:
                txn.put(NEXT_RANGE, seal(NEXT_RANGE, NUMBER.pack(last + 1)), db=environment.tables["meta"])

    def _keys_of(self, table: str, ranges: Set[int]) -> list[bytes]:
        return [
            key
            for key, _ in (verify.rows(self._environment, table) if ranges else ())
            if POSITION.unpack(key)[0] in ranges
        ]


def _counted(former: RangeState | None, found: verify.Found, used: int) -> RangeState:
    """Return a state with the messages that were found, whose next position is not below `used`.

    Where the former state is lost, all of them count as delivered before.
    """
    following = max(found.position_max + 1, used)
    if former is None:
        head = found.position_min if found.is_stream else following
        return RangeState(head, following, found.message_count, found.body_bytes)
    following = max(former.next, following)
    return RangeState(min(former.head, following), following, found.message_count, found.body_bytes)


def _shown_count(former: RangeState | None, state: RangeState) -> str:
    if former is None or former.message_count <= state.message_count:
        return str(state.message_count)
    return f"{state.message_count} of {former.message_count}"


def _timestamp_before(cursor: lmdb.Cursor, key: bytes) -> int:
    """Return the time of the chunk before one, in ms since the epoch; 0 if there is none."""
    cursor.set_key(key)
    if cursor.prev() and cursor.key()[: NUMBER.size] == key[: NUMBER.size]:
        with contextlib.suppress(DamagedRecord):
            return chunks.decode_head(POSITION.unpack(cursor.key())[1], cursor.value())[0].timestamp_ms
    return 0


# Definitions that have the name of their vhost behind their kind.
IN_VHOSTS: Final = ("exchange", "queue", "deletion", "binding", "policy", "operator_policy", "parameter")
WORDS: Final = {
    "windows": "the state",
    "garbage": "a deleted part",
    "messages": "the message",
    "chunks": "the chunk of messages",
}


def _name(table: str, key: bytes, owners: Mapping[int, tuple[str, object]]) -> str:
    """Return the name of a damaged record for people."""
    if table == "definitions":
        return f"a definition ({key.partition(b':')[0].decode(errors='replace')})"
    if table == "meta":
        return f"'{key.decode(errors='replace')}'"
    if len(key) not in (NUMBER.size, POSITION.size):
        return f"a record of table {table} with a damaged key"
    range_id, position = NUMBER.unpack(key[: NUMBER.size])[0], key[NUMBER.size :]
    owner = owners[range_id][0] if range_id in owners else f"range {range_id}"
    at = f" at position {NUMBER.unpack(position)[0]}" if position else ""
    return f"{WORDS[table]}{at} of {owner}"
