"""The journal on LMDB: each batch becomes a transaction, which another thread commits.

LMDB is crash-proof by construction: a transaction is there as a whole or not at all, and no log is replayed. The event
loop's thread, which has the data, fills the open transaction; only the commit waits for the disk (`store/writer.py`).
"""

from __future__ import annotations

import copy
import hashlib
import logging
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

import lmdb
from mypy_extensions import mypyc_attr

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.durability.chunk import Chunk, ChunkHead
from amqp_broker.broker.durability.damaged import DamagedMessage
from amqp_broker.broker.durability.journal import (
    END,
    Batch,
    DefinitionKey,
    Journal,
    RangeState,
    Stored,
)
from amqp_broker.store import chunks, codec
from amqp_broker.store.environment import NUMBER, POSITION, Environment
from amqp_broker.store.seal import DamagedRecord, seal, unseal

if TYPE_CHECKING:
    from amqp_broker.broker.durability.paged_buffer import PagedBuffer
    from amqp_broker.broker.durability.stream_log import JournaledLog


T = TypeVar("T")

logger = logging.getLogger("amqp_broker.store")

STATE: Final = struct.Struct(">QQQQ")
NEXT_RANGE: Final = b"next_range"
# Octets that are put without a pause, plus RECORD_BYTES per record: below 2 ms of work.
SLICE_BYTES: Final = 768 * 1024
RECORD_BYTES: Final = 1024
# Changes of objects that are written without a pause.
DEFINITIONS_MAX: Final = 25
# Discarded positions that are deleted per batch. Not Final, because tests lower it (paged_buffer.py).
GARBAGE_BATCH = SLICE_BYTES // RECORD_BYTES
# LMDB's errors at damaged pages, and that at a key of another size.
PAGE_ERRORS: Final = (
    *(lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.CursorFullError, lmdb.BadValsizeError),
    *(lmdb.InvalidError, struct.error),
)
# Key of a definition's names in its table.
NAMES: Final = "names"


@mypyc_attr(allow_interpreted_subclasses=True)
class LmdbJournal(Journal):
    """A journal on LMDB. `write` puts a batch into a transaction; `on_committed` or `take_back` ends it."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self._environment = environment
        self._find_tables()
        self._run = os.urandom(codec.RUN_BYTES)
        self._decoder = codec.Decoder(self._run)
        # Octets that are left of the current slice.
        self._slice_bytes = SLICE_BYTES
        # The transaction of all reads of a frozen journal.
        self._frozen_at: lmdb.Transaction | None = None
        with environment.lmdb.begin() as txn:
            found = txn.get(NEXT_RANGE, db=self._meta)
            self._next_range: int = 1 if found is None else self._number_of(NEXT_RANGE, found)
            # The next range as committed, and as in the current transaction.
            self._safe_range = self._writing_range = 0
            # True if there are discarded positions to delete, as committed and as in the current transaction.
            self._has_garbage = self._leaves_garbage = txn.stat(self._garbage)["entries"] > 0

    def _number_of(self, key: bytes, sealed: bytes) -> int:
        return int(NUMBER.unpack(unseal(key, sealed))[0])

    def _find_tables(self) -> None:
        tables = self._environment.tables
        self._meta, self._definitions, self._buffers = tables["meta"], tables["definitions"], tables["windows"]
        self._messages, self._garbage = tables["messages"], tables["garbage"]
        self._chunks = tables["chunks"]

    def report_damage(self, what: str) -> None:
        logger.error("%s", what)

    def reopen(self) -> None:
        """Open the files again and go on. Raise lmdb.Error."""
        self._environment.reopen()
        self._find_tables()

    def new_ranges(self, count: int) -> int:
        first = self._next_range
        self._next_range += count
        return first

    def read(self, range_id: int, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        return self._found(lambda: self._read(range_id, start, bytes_max))

    @contextmanager
    def frozen(self) -> Iterator[Journal]:
        # LMDB keeps the pages of a transaction that reads, and opens no other files before it ends.
        with self._environment.lmdb.begin(buffers=True) as txn:
            frozen = copy.copy(self)
            frozen._frozen_at = txn
            yield frozen

    def _reading(self) -> AbstractContextManager[lmdb.Transaction]:
        if self._frozen_at is not None:
            return nullcontext(self._frozen_at)
        return self._environment.lmdb.begin(buffers=True)

    def _read(self, range_id: int, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        found: list[tuple[int, Stored]] = []
        decode = self._decoder.decode
        with self._reading() as txn, txn.cursor(self._messages) as cursor:
            garbage = self._garbage_of(txn, range_id) if self._has_garbage else []
            is_there = cursor.set_range(POSITION.pack(range_id, start))
            while is_there and bytes_max > 0:
                found_range, position = POSITION.unpack(cursor.key())
                if found_range != range_id:
                    break
                if position < start:
                    raise lmdb.CorruptedError(f"position {position} of range {range_id} is behind {start - 1}")
                start = position + 1
                while garbage and garbage[0][1] <= position:
                    garbage.pop(0)
                if garbage and garbage[0][0] <= position:
                    is_there = cursor.set_range(POSITION.pack(range_id, garbage[0][1]))
                    continue
                key, record = cursor.item()
                bytes_max -= len(record) + ENTRY_BYTES
                try:
                    stored = decode(unseal(key, record))
                except DamagedRecord:
                    stored = Stored(DamagedMessage.of(codec.likely_body_bytes(record)))
                found.append((position, stored))
                is_there = cursor.next()
        return found

    def _found(self, look: Callable[[], T]) -> T:
        """Return what `look` reads. Raise JournalBroken at damaged pages."""
        try:
            return look()
        except lmdb.PanicError:
            if self._frozen_at is not None:
                raise
            # The failed commit will be reported soon; readers go on meanwhile.
            self.reopen()
            return look()
        except PAGE_ERRORS as error:
            raise self.broken(str(error)) from None

    def chunk_at(self, range_id: int, offset: int) -> Chunk | None:
        return self._found(lambda: self._chunk_at(range_id, offset, as_delivered=False))

    def delivered_chunk_at(self, range_id: int, offset: int) -> Chunk | None:
        return self._found(lambda: self._chunk_at(range_id, offset, as_delivered=True))

    def _chunk_at(self, range_id: int, offset: int, *, as_delivered: bool) -> Chunk | None:
        with self._reading() as txn, txn.cursor(self._chunks) as cursor:
            head = self._find_chunk(cursor, range_id, offset)
            if head is None:
                return None
            try:
                return chunks.decode(head.first, unseal(cursor.key(), cursor.value()), as_delivered=as_delivered)
            except DamagedRecord:
                return Chunk(head, [])

    def chunk_head_at(self, range_id: int, offset: int) -> ChunkHead | None:
        return self._found(lambda: self._chunk_head_at(range_id, offset))

    def _chunk_head_at(self, range_id: int, offset: int) -> ChunkHead | None:
        with self._reading() as txn, txn.cursor(self._chunks) as cursor:
            return self._find_chunk(cursor, range_id, offset)

    def _find_chunk(self, cursor: lmdb.Cursor, range_id: int, offset: int) -> ChunkHead | None:
        """Move a cursor to the chunk that has an offset, and return its head; None if there is none."""
        # The first greater key is that of the next chunk; the one before may have the offset.
        is_there = cursor.prev() if cursor.set_range(POSITION.pack(range_id, offset + 1)) else cursor.last()
        if not is_there:
            return None
        found_range, first = POSITION.unpack(cursor.key())
        if found_range != range_id:
            return None
        try:
            head, _ = chunks.decode_head(first, cursor.value())
        except DamagedRecord:
            head = ChunkHead(first, self._end_of_chunk(cursor, range_id) - first, 0, 0, None, True)
        return head if offset < head.end else None

    def _end_of_chunk(self, cursor: lmdb.Cursor, range_id: int) -> int:
        """Return where the chunk at a cursor ends, from the next one."""
        following = range_id + 1, 0
        if cursor.next():
            following = POSITION.unpack(cursor.key())
            cursor.prev()
        elif not cursor.key():
            cursor.last()
        return following[1] if following[0] == range_id else self.state_of(range_id).next

    def _garbage_of(self, txn: lmdb.Transaction, range_id: int) -> list[tuple[int, int]]:
        """Return the discarded positions of a range, from and to, that are not deleted yet."""
        found: list[tuple[int, int]] = []
        with txn.cursor(self._garbage) as cursor:
            is_there = cursor.set_range(POSITION.pack(range_id, 0))
            while is_there:
                found_range, start = POSITION.unpack(cursor.key())
                if found_range != range_id:
                    break
                found.append((start, NUMBER.unpack(unseal(cursor.key(), cursor.value()))[0]))
                is_there = cursor.next()
        return found

    # Calls of the writer

    @property
    def has_work(self) -> bool:
        return (self._has_garbage or self.has_changes) and not self.open_works

    def write(self, txn: lmdb.Transaction) -> Iterator[None]:
        """Put the collected batch into a transaction; yield after each slice. Raise lmdb.Error.

        The first slice takes the whole batch, so that the next one can be collected in between.
        """
        batch = self.take_batch()
        if self._next_range != self._safe_range:
            _put(txn, NEXT_RANGE, NUMBER.pack(self._next_range), self._meta)
            self._writing_range = self._next_range
        # In the first slice, because their states change afterwards.
        for log, taken in batch.logs:
            self._write_log(txn, log, taken)
        yield from self._write_definitions(txn, batch.definitions)
        self._slice_bytes = SLICE_BYTES
        for buffer, removes in batch.buffers:
            yield from self._write_buffer(txn, buffer, removes)
        for range_id, start, end in batch.discards:
            _put(txn, POSITION.pack(range_id, start), NUMBER.pack(end), self._garbage)
            self._has_garbage = True
            if self._ends_slice():
                yield
        if self._has_garbage:
            yield
            self._collect_garbage(txn)

    def _write_definitions(
        self, txn: lmdb.Transaction, definitions: dict[DefinitionKey, dict[str, Any] | None]
    ) -> Iterator[None]:
        """Write changes of objects; yield after each slice."""
        for count, (key, value) in enumerate(definitions.items(), 1):
            if value is None:
                txn.delete(encode_key(key), db=self._definitions)
            else:
                table = fields.encode_table({**value, NAMES: list(key)})
                _put(txn, encode_key(key), table, self._definitions)
            if count % DEFINITIONS_MAX == 0:
                yield

    def _ends_slice(self) -> bool:
        """Count a record to the current slice; return whether it is the last one. Then the next slice begins."""
        self._slice_bytes -= RECORD_BYTES
        if self._slice_bytes >= 0:
            return False
        self._slice_bytes = SLICE_BYTES
        return True

    def on_committed(self) -> Batch:
        batch = super().on_committed()
        self._safe_range = self._writing_range
        # Until now reads find what the transaction has deleted.
        self._has_garbage = self._leaves_garbage
        return batch

    def _write_buffer(self, txn: lmdb.Transaction, buffer: PagedBuffer, removes: list[int]) -> Iterator[None]:
        """Write the changes of a range; yield at the end of each slice."""
        if self._ends_slice():
            yield
        range_id, encode, pack, state = buffer.id, codec.encode, POSITION.pack, buffer.writing_state
        run = self._run
        if state is None:
            txn.delete(NUMBER.pack(range_id), db=self._buffers)
            return
        left = self._slice_bytes
        _put(txn, NUMBER.pack(range_id), STATE.pack(*state), self._buffers)
        with txn.cursor(self._messages) as cursor:
            # Appended records fill their pages; LMDB would leave them half empty otherwise.
            last = bytes(cursor.key()) if cursor.last() else b""
            for position, stored in buffer.writing.items():
                key = pack(range_id, position)
                record = seal(key, encode(stored, run))
                is_last = key > last
                cursor.put(key, record, append=is_last)
                if is_last:
                    last = key
                left -= len(record) + RECORD_BYTES
                if left < 0:
                    yield
                    left = SLICE_BYTES
        for position in removes:
            txn.delete(pack(range_id, position), db=self._messages)
            left -= RECORD_BYTES
            if left < 0:
                yield
                left = SLICE_BYTES
        self._slice_bytes = left

    def _write_log(self, txn: lmdb.Transaction, log: JournaledLog, taken: list[Chunk]) -> None:
        if log.is_dropped:
            txn.delete(NUMBER.pack(log.id), db=self._buffers)
            return
        for chunk in taken:
            _put(txn, POSITION.pack(log.id, chunk.head.first), chunks.encode(chunk), self._chunks)
        _put(txn, NUMBER.pack(log.id), STATE.pack(*log.state), self._buffers)

    def _collect_garbage(self, txn: lmdb.Transaction) -> None:
        """Delete a batch of discarded positions, and of ranges that have none left."""
        left = GARBAGE_BATCH
        with (
            txn.cursor(self._garbage) as ranges,
            txn.cursor(self._messages) as messages,
            txn.cursor(self._chunks) as stream_chunks,
        ):
            while left and ranges.first():
                key = bytes(ranges.key())
                (end,) = NUMBER.unpack(unseal(key, ranges.value()))
                range_id, _ = POSITION.unpack(key)
                end_key = POSITION.pack(range_id, end)
                # A range belongs to a queue or to a stream.
                for cursor in (messages, stream_chunks):
                    is_there = cursor.set_range(key)
                    while is_there and left and bytes(cursor.key()) < end_key:
                        is_there = cursor.delete()
                        left -= 1
                if left:
                    ranges.delete()
                    left -= 1
            self._leaves_garbage = ranges.first()

    # Recovery

    def discard_strays(self, known: Iterable[int]) -> int:
        """Discard ranges without an owner, of transient queues of an earlier process; return their number.

        Raise lmdb.Error.
        """
        with self._environment.lmdb.begin() as txn, txn.cursor(self._buffers) as cursor:
            strays = {NUMBER.unpack(key)[0] for key in cursor.iternext(values=False)}.difference(known)
        if not strays:
            return 0
        with self._environment.lmdb.begin(write=True) as txn:
            for range_id in strays:
                txn.delete(NUMBER.pack(range_id), db=self._buffers)
                _put(txn, POSITION.pack(range_id, 0), NUMBER.pack(END), self._garbage)
        self._has_garbage = True
        return len(strays)

    def definitions_of(self, kind: str) -> Iterator[tuple[DefinitionKey, dict[str, Any]]]:
        """Yield keys and values of all definitions of a kind."""
        prefix = kind.encode() + b":"
        with self._environment.lmdb.begin() as txn, txn.cursor(self._definitions) as cursor:
            is_there = cursor.set_range(prefix)
            while is_there and cursor.key().startswith(prefix):
                value, _ = fields.decode_table(bytes(unseal(cursor.key(), cursor.value())))
                yield tuple(value.pop(NAMES)), value
                is_there = cursor.next()

    def state_of(self, range_id: int) -> RangeState:
        with self._environment.lmdb.begin() as txn:
            key = NUMBER.pack(range_id)
            found = txn.get(key, db=self._buffers)
            return RangeState() if found is None else RangeState(*STATE.unpack(unseal(key, found)))


def _put(txn: lmdb.Transaction, key: bytes, record: bytes, table: Any) -> None:
    """Put a record with its checksum into a table."""
    txn.put(key, seal(key, record), db=table)


def encode_key(key: DefinitionKey) -> bytes:
    """Return the kind and a digest of the names, which may be too long for a key of LMDB."""
    names = fields.encode_table({NAMES: list(key)})
    return key[0].encode() + b":" + hashlib.blake2b(names, digest_size=32).digest()
