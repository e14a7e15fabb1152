"""The messages of a stream as chunks: the open one, and those that are safe.

Offsets are dense from 0. The messages between two batches of the journal are a chunk, or several if they are many.
Readers see committed messages. Without a durable journal all messages are in memory and seen at once.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Self, TypeVar

from mypy_extensions import mypyc_attr

from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.durability.chunk import FILTERS_MAX, Chunk, ChunkHead, as_delivered, filter_value
from amqp_broker.broker.durability.journal import END, RangeState

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal
    from amqp_broker.broker.queues.stream import StreamQueue

T = TypeVar("T")

# Limits of a chunk; a larger message is a chunk of its own.
CHUNK_BYTES_MAX: Final = 256 * 1024
CHUNK_MESSAGES_MAX: Final = 4096


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class StreamLog:
    """The log of a stream in memory, from offset `first` to before `committed`.

    `content_bytes` are the octets of the contents of all messages.
    """

    def __init__(self) -> None:
        self.first = 0
        self.next = 0
        self.committed = 0
        self.content_bytes = 0
        self.chunk_bytes_max = CHUNK_BYTES_MAX
        self._chunks: list[Chunk] = []
        self._firsts: list[int] = []
        self._open: list[Message] = []
        self._open_bytes = 0
        self._timestamp_ms = 0
        self._filters: set[str] = set()
        self._has_unfiltered = False

    @property
    def count(self) -> int:
        """Number of messages that readers can see."""
        return self.committed - self.first

    def append(self, message: Message, now: int) -> None:
        """Add a message at the end."""
        if self._open and now != self._timestamp_ms:
            self.seal()
        self._add(message, now)
        self.committed = self.next

    def _add(self, message: Message, now: int) -> None:
        size = len(message.content)
        if self._open_bytes + size > self.chunk_bytes_max or len(self._open) >= CHUNK_MESSAGES_MAX:
            self.seal()
        self._open.append(message)
        self._open_bytes += size
        self.content_bytes += size
        self._timestamp_ms = now
        self.next += 1
        value = filter_value(message)
        if value is None:
            self._has_unfiltered = True
        else:
            self._filters.add(value)

    def _open_head(self) -> ChunkHead:
        count = len(self._open)
        filters = frozenset(self._filters) if len(self._filters) <= FILTERS_MAX else None
        return ChunkHead(self.next - count, count, self._timestamp_ms, self._open_bytes, filters, self._has_unfiltered)

    def seal(self) -> None:
        """Close the open chunk; the next message begins another."""
        if self._open:
            self._keep(Chunk(self._open_head(), self._open))
            self._open, self._open_bytes, self._filters, self._has_unfiltered = [], 0, set(), False

    def _keep(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)
        self._firsts.append(chunk.head.first)

    def _chunk_at(self, offset: int) -> Chunk:
        index = bisect_right(self._firsts, offset) - 1
        if index >= 0 and offset < self._chunks[index].head.end:
            return self._chunks[index]
        return Chunk(self._open_head(), self._open)

    def head_at(self, offset: int) -> ChunkHead:
        """Return the head of the chunk that has an offset from `first` to before `committed`."""
        return self._chunk_at(offset).head

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks that readers can see, as they were published."""
        offset = self.first
        while offset < self.committed:
            chunk = self._chunk_at(offset)
            yield chunk
            offset = chunk.head.end

    def frozen(self, journal: Journal) -> Self:
        """Return a copy whose `chunks` stay; `journal` is frozen, too."""
        frozen = copy.copy(self)
        frozen._chunks, frozen._firsts = self._chunks.copy(), self._firsts.copy()
        frozen._open = self._open.copy()
        return frozen

    def begin_at(self, offset: int) -> None:
        """Have a new log begin at this offset."""
        self.first = self.next = self.committed = offset

    def read(self, offset: int, *, is_shared: bool = True) -> list[Message]:
        """Return the messages from an offset to the end of its chunk, as readers get them.

        With `is_shared`, others will soon read the same chunk, and it is kept for them.
        """
        chunk = self._chunk_at(offset)
        return as_delivered(chunk, offset - chunk.head.first)

    def offset_of_last_chunk(self) -> int:
        return self.head_at(self.committed - 1).first if self.count else self.committed

    def offset_since(self, timestamp_ms: int) -> int:
        """Return the first offset of the first chunk that is not older; `committed` if all are."""
        low, high = self.first, self.committed
        while low < high:
            head = self.head_at((low + high) // 2)
            if head.timestamp_ms < timestamp_ms:
                low = head.end
            else:
                high = head.first
        return low

    def first_head(self) -> ChunkHead | None:
        """Return the head of the first chunk; None if it is also the newest, which is never dropped."""
        head = self.head_at(self.first) if self.count else None
        return head if head is not None and head.end < self.committed else None

    def drop_first(self, head: ChunkHead) -> None:
        """Drop the first chunk, which has this head."""
        self.first = head.end
        self.content_bytes -= head.content_bytes

    def forget(self, start: int) -> None:
        """Free the chunks from offset `start` to before `first`, which were dropped."""
        index = bisect_right(self._firsts, self.first - 1)
        del self._chunks[:index], self._firsts[:index]

    def drop(self) -> None:
        """Remove all messages; the stream is deleted."""
        self.first = self.committed = self.next
        self._chunks, self._firsts, self._open = [], [], []


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class JournaledLog(StreamLog):
    """The log of a stream whose chunks are in the journal, under the id of its range."""

    def __init__(self, journal: Journal, range_id: int, readers: StreamQueue) -> None:
        """Open a range that is new or that a restart found."""
        super().__init__()
        state = journal.state_of(range_id)
        self.readers = readers
        self.journal = journal
        self.id = range_id
        self.first, self.next, self.committed = state.head, state.next, state.next
        self.content_bytes = state.body_bytes
        self._sealed: list[Chunk] = []
        self.writing: list[Chunk] = []
        self._first_head: ChunkHead | None = None
        self.is_dirty = False
        self.is_dropped = False

    @property
    def state(self) -> RangeState:
        """The state of the range when a batch has taken all chunks."""
        return RangeState(self.first, self.next, self.next - self.first, self.content_bytes)

    def frozen(self, journal: Journal) -> Self:
        frozen = super().frozen(journal)
        frozen.journal = journal
        return frozen

    def append(self, message: Message, now: int) -> None:
        self._add(message, now)
        self.journal.journal_bytes += len(message.content) + ENTRY_BYTES
        if not self.is_dirty:
            self._mark()

    def _keep(self, chunk: Chunk) -> None:
        self._sealed.append(chunk)

    def _mark(self) -> None:
        if not self.is_dirty:
            self.is_dirty = True
            self.journal.dirty_logs.append(self)

    def _chunk_at(self, offset: int) -> Chunk:
        return self._found(offset, self.journal.chunk_at(self.id, offset))

    def head_at(self, offset: int) -> ChunkHead:
        return self._found(offset, self.journal.chunk_head_at(self.id, offset))

    def _found(self, offset: int, what: T | None) -> T:
        """Return what the journal has found at an offset. Raise JournalBroken for nothing."""
        if what is None:
            raise self.journal.broken(f"offset {offset} of range {self.id} is missing")
        return what

    def read(self, offset: int, *, is_shared: bool = True) -> list[Message]:
        # A chunk that is not kept is freed while it is in the processor's caches, and its memory is used again.
        cache = self.journal.chunk_cache
        # Readers are at the start of a chunk, except sometimes at their first offset.
        messages = cache.get(self.id, offset) if is_shared else cache.take(self.id, offset)
        if messages is not None:
            return messages
        chunk = self._found(offset, self.journal.delivered_chunk_at(self.id, offset))
        if is_shared:
            cache.put(self.id, chunk.head, chunk.messages)
        return chunk.messages[offset - chunk.head.first :]

    def first_head(self) -> ChunkHead | None:
        if self._first_head is None or self._first_head.first != self.first:
            self._first_head = self.head_at(self.first) if self.count else None
        head = self._first_head
        return head if head is not None and head.end < self.committed else None

    def forget(self, start: int) -> None:
        self.journal.discard(self.id, start, self.first)
        self._mark()

    def drop(self) -> None:
        self._sealed, self._open = [], []
        self.is_dropped = True
        self.journal.chunk_cache.forget(self.id)
        self.journal.discard(self.id, 0, END)
        self._mark()

    # For the journal

    def take(self) -> list[Chunk]:
        """Hand the collected chunks to a batch."""
        self.is_dirty = False
        self.seal()
        self.writing, self._sealed = self._sealed, []
        return self.writing

    def take_back(self) -> None:
        """Collect the chunks of a batch that was not written once more."""
        self._sealed = self.writing + self._sealed
        self.writing = []
        self._mark()

    def on_committed(self) -> None:
        """Let readers see the chunks that were taken."""
        if self.writing:
            self.committed = self.writing[-1].head.end
            if self.readers.ready_consumers:
                for chunk in self.writing:
                    self.journal.chunk_cache.put(self.id, chunk.head, as_delivered(chunk))
            self.writing = []
