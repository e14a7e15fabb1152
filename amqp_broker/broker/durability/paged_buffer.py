"""A range of positions in the journal, of which only the first messages are in memory.

Messages that must outlive the process go to the journal as soon as they arrive. Messages that arrive while the memory
is used up are only in the journal. So neither memory nor the time to restart grows with the backlog.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Self

from mypy_extensions import mypyc_attr

from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.durability.journal import END, RangeState, Stored

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal

# Three limits that tests lower. They are not Final: the compiler would copy them to where they are used.
# Octets that are read at once, and that each buffer may have in memory however much the others have.
PAGE_BYTES = 256 * 1024
# Octets that one buffer may have in memory, and that all buffers together may have beyond a page each.
BUFFER_BYTES_MAX = 32 * 1024 * 1024
BUFFERS_BYTES_MAX = 96 * 1024 * 1024
# Messages in memory that are removed from the journal as one range when all are removed. Tests lower it, too.
DISCARDED_MIN = 1000


def position_of(item: tuple[int, Message]) -> int:
    return item[0]


def place_of(memory: deque[tuple[int, Message]], position: int) -> int:
    """Return the index of a position among messages in their order; -1 if it is not there."""
    index = bisect_left(memory, position, key=position_of)
    return index if index < len(memory) and memory[index][0] == position else -1


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class PagedBuffer:
    """Ready messages in the order of their positions.

    A message is *put* at its position, *taken* when it is delivered or given up, and *removed* when it is settled.
    A message that was taken and is returned is kept by the caller; the journal still has it.
    """

    __slots__ = (
        "_deadlines",
        "_memory_bytes",
        "_on_recovered",
        "_read_from",
        "_restored_before",
        "head",
        "id",
        "is_dirty",
        "is_dropped",
        "journal",
        "keeps_all",
        "memory",
        "next",
        "paged_count",
        "puts",
        "read_count",
        "ready_bytes",
        "redelivered_before",
        "removes",
        "stored_bytes",
        "stored_count",
        "taken_bytes",
        "taken_count",
        "writing",
        "writing_state",
        "written_count",
    )

    def __init__(
        self,
        journal: Journal,
        range_id: int,
        *,
        keeps_all: bool,
        deadlines: dict[int, int] | None = None,
        on_recovered: Callable[[int, Stored], bool] | None = None,
    ) -> None:
        """Open a range that is new or that a restart found.

        `keeps_all` keeps transient messages over a restart, as quorum queues do. `deadlines` gets the time at which
        each message in memory expires, by position. `on_recovered` is called with a message that was taken before a
        restart; it is ready again unless that returns True: then it stays taken.
        """
        state = journal.state_of(range_id)
        self._deadlines = {} if deadlines is None else deadlines
        self._on_recovered = on_recovered
        self.journal = journal
        self.id = range_id
        self.keeps_all = keeps_all
        self.head = self.redelivered_before = state.head
        self.next = self._restored_before = state.next
        # Messages and octets of bodies that a restart would find, and those of them that are taken.
        self.stored_count, self.stored_bytes = state.message_count, state.body_bytes
        self.taken_count = self.taken_bytes = 0
        # Octets of the bodies of all ready messages.
        self.ready_bytes = state.body_bytes
        # The first ready messages; `paged_count` more are only in the journal, from position `_read_from` on.
        self.memory: deque[tuple[int, Message]] = deque()
        self._memory_bytes = 0
        self.paged_count = state.message_count
        self._read_from = 0
        # Messages written to the journal and read from it since the process started.
        self.written_count = self.read_count = 0
        # Changes for the next batch of the journal, and the puts of the batch that is being committed.
        self.puts: dict[int, Stored] = {}
        self.removes: list[int] = []
        self.writing: dict[int, Stored] = {}
        # The state that is written with them; None for a dropped buffer.
        self.writing_state: RangeState | None = None
        self.is_dirty = False
        self.is_dropped = False

    def __len__(self) -> int:
        return len(self.memory) + self.paged_count

    def __iter__(self) -> Iterator[Message]:
        """Yield the ready messages in order."""
        for _, message in self.items():
            yield message

    def items(self, taken: dict[int, Stored] | None = None) -> Iterator[tuple[int, Message]]:
        """Yield positions and ready messages in order, without damaged ones.

        Messages read from the journal are not kept in memory. `taken` gets those that were taken before a restart.
        """
        for item in self.memory:
            if not item[1].is_damaged:
                yield item
        left, position = self.paged_count, self._read_from
        while left and (found := self._read(position, PAGE_BYTES)):
            for position, stored in found:
                if not self._is_leftover(position, stored.message):
                    left -= 1
                    if not stored.message.is_damaged:
                        if taken is not None and self._was_taken(position, stored):
                            taken[position] = stored
                        yield position, stored.message
            position += 1

    def frozen(self, journal: Journal) -> Self:
        """Return a copy whose `items` stay; `journal` is frozen, too."""
        frozen = copy.copy(self)
        frozen.journal, frozen.memory = journal, self.memory.copy()
        frozen.puts, frozen.writing = self.puts.copy(), self.writing.copy()
        return frozen

    @property
    def state(self) -> RangeState:
        return RangeState(self.head, self.next, self.stored_count, self.stored_bytes)

    def keeps(self, message: Message) -> bool:
        """Return whether a restart must find the message."""
        return message.is_persistent or self.keeps_all

    def append(self, position: int, message: Message, deadline_ms: int | None) -> None:
        """Put a new message at the end; its position is the highest so far."""
        self.next = position + 1
        body_bytes = message.body_bytes
        self.ready_bytes += body_bytes
        is_kept = message.is_persistent or self.keeps_all
        is_paged = self.paged_count > 0 or (self._memory_bytes >= PAGE_BYTES and self._is_full())
        if is_paged:
            if not self.paged_count:
                self._read_from = position
            self.paged_count += 1
        else:
            self._remember(position, message, deadline_ms)
        if is_kept:
            self.stored_count += 1
            self.stored_bytes += body_bytes
        if is_kept or is_paged:
            self.puts[position] = Stored(message, deadline_ms)
            self.journal.journal_bytes += len(message.content) + ENTRY_BYTES
        if not self.is_dirty:
            self.mark()

    def _is_full(self) -> bool:
        return self._memory_bytes >= BUFFER_BYTES_MAX or self.journal.buffered_bytes >= BUFFERS_BYTES_MAX

    def deliver_through(self, position: int, message: Message, deadline_ms: int | None) -> None:
        """Put a new message and take it at once; nothing is ready."""
        self.next = self.head = position + 1
        if message.is_persistent or self.keeps_all:
            body_bytes = message.body_bytes
            self.stored_count += 1
            self.stored_bytes += body_bytes
            self.taken_count += 1
            self.taken_bytes += body_bytes
            self.puts[position] = Stored(message, deadline_ms)
            self.journal.journal_bytes += len(message.content) + ENTRY_BYTES
            if not self.is_dirty:
                self.mark()

    def _remember(self, position: int, message: Message, deadline_ms: int | None) -> None:
        self.memory.append((position, message))
        size = len(message.content) + ENTRY_BYTES
        self._memory_bytes += size
        self.journal.buffered_bytes += size
        if deadline_ms is not None:
            self._deadlines[position] = deadline_ms

    def _forget_memory(self, message: Message) -> None:
        size = len(message.content) + ENTRY_BYTES
        self._memory_bytes -= size
        self.journal.buffered_bytes -= size

    def head_position(self) -> int:
        """Return the position of the first ready message."""
        if not self.memory:
            self.fill()
        return self.memory[0][0]

    def pop_head(self) -> tuple[int, Message]:
        """Take the first ready message; return its position and the message."""
        if not self.memory:
            self.fill()
        position, message = taken = self.memory.popleft()
        self._forget_memory(message)
        if position >= self.head:
            self.head = position + 1
        body_bytes = message.body_bytes
        self.ready_bytes -= body_bytes
        if message.is_persistent or self.keeps_all:
            self.taken_count += 1
            self.taken_bytes += body_bytes
        if not self.is_dirty:
            self.mark()
        if not self.memory and self.paged_count:
            # Without delay, so that the deadline of the next message is known.
            self.fill()
        return taken

    def reach(self, position: int) -> bool:
        """Read the next page up to a position into memory; return False if there may be more.

        There is none beyond the octets that one buffer may have in memory.
        """
        if not self.paged_count or position < self._read_from or self._memory_bytes >= BUFFER_BYTES_MAX:
            return True
        self._fill(PAGE_BYTES)
        return False

    def take_at(self, position: int) -> Message | None:
        """Take the ready message at a position if it is in memory."""
        index = place_of(self.memory, position)
        if index < 0 or self.memory[index][1].is_damaged:
            return None
        _, message = self.memory[index]
        del self.memory[index]
        self._forget_memory(message)
        self._count_taken(message, 1)
        if not self.memory and self.paged_count:
            # Without delay, so that the deadline of the next message is known.
            self.fill()
        return message

    def put_at(self, position: int, message: Message) -> None:
        """Return a message that `take_at` has taken to its place."""
        self.memory.insert(bisect_left(self.memory, position, key=position_of), (position, message))
        size = len(message.content) + ENTRY_BYTES
        self._memory_bytes += size
        self.journal.buffered_bytes += size
        self._count_taken(message, -1)

    def _count_taken(self, message: Message, count: int) -> None:
        """Count a message as taken, or with -1 as ready again."""
        body_bytes = message.body_bytes
        self.ready_bytes -= count * body_bytes
        if self.keeps(message):
            self.taken_count += count
            self.taken_bytes += count * body_bytes
        self.mark()

    def remove(self, position: int, message: Message) -> None:
        """Remove a taken message for good."""
        if self.is_dropped or not self.keeps(message):
            return
        body_bytes = message.body_bytes
        self.stored_count -= 1
        self.stored_bytes -= body_bytes
        self.taken_count -= 1
        self.taken_bytes -= body_bytes
        self._erase(position)

    def rewrite(self, position: int, stored: Stored) -> None:
        """Update the journal's copy of a taken message, which was returned."""
        if not self.is_dropped and self.keeps(stored.message):
            self.puts[position] = stored
            self.mark()

    def clear(self) -> None:
        """Remove all ready messages; taken ones stay."""
        if not self.next:
            return  # nothing was ever here, and the journal does not know the range
        memory = self.memory
        if len(memory) >= DISCARDED_MIN and not self._deadlines and memory[-1][0] - memory[0][0] == len(memory) - 1:
            # No taken message is among them.
            self._discard(memory[0][0], memory[-1][0] + 1)
        else:
            for position, message in memory:
                self._deadlines.pop(position, None)
                if self.keeps(message):
                    self._erase(position)
        memory.clear()
        self.journal.buffered_bytes -= self._memory_bytes
        self._memory_bytes = 0
        if self.paged_count:
            self._discard(self._read_from, self.next)
        self.paged_count = self.ready_bytes = 0
        self.head = self.next
        self.stored_count, self.stored_bytes = self.taken_count, self.taken_bytes
        self.mark()

    def _discard(self, start: int, end: int) -> None:
        """Remove the messages from position `start` to before `end` from the journal."""
        for position in [position for position in self.puts if start <= position < end]:
            del self.puts[position]
        self.journal.discard(self.id, start, end)

    def drop(self) -> None:
        """Remove everything, with the range itself."""
        self.clear()
        self.puts.clear()
        self.removes.clear()
        self.is_dropped = True
        # It refers to the backlog, which refers to this buffer.
        self._on_recovered = None
        if self.next:
            self.journal.discard(self.id, 0, END)

    def take_all(self) -> list[tuple[int, Stored]]:
        """Take and return everything that a restart found."""
        taken: list[tuple[int, Stored]] = []
        while found := self._read(self._read_from, PAGE_BYTES):
            taken += found
            self._read_from = found[-1][0] + 1
        self.paged_count = self.ready_bytes = 0
        self.taken_count, self.taken_bytes = self.stored_count, self.stored_bytes
        return taken

    def fill(self, bytes_max: int = 0) -> None:
        """Read the next messages into memory if it is empty: about `bytes_max` octets, or a page for 0."""
        while self.paged_count and not self.memory:
            self._fill(bytes_max or PAGE_BYTES)

    def fill_taken(self) -> None:
        """Read all messages into memory that were taken before a restart."""
        while self.paged_count and self._read_from < self.redelivered_before:
            self._fill(PAGE_BYTES)

    def _fill(self, bytes_max: int) -> None:
        found = self._read(self._read_from, bytes_max)
        if not found:
            raise self.journal.broken(f"{self.paged_count} messages of range {self.id} are missing")
        self.read_count += len(found)
        for position, stored in found:
            self._read_from = position + 1
            message = stored.message
            is_leftover = self._is_leftover(position, message)
            if not self.keeps(message):
                self._erase(position)
            if is_leftover:
                continue
            self.paged_count -= 1
            if self._was_taken(position, stored) and self._on_recovered is not None:
                stays_taken = self._on_recovered(position, stored)
                if stays_taken:
                    self.ready_bytes -= message.body_bytes
                    self.taken_count += 1
                    self.taken_bytes += message.body_bytes
                    continue
            # A damaged message is due at once: its queue gives it up before it would be delivered.
            self._remember(position, message, 0 if message.is_damaged else stored.deadline_ms)

    def _was_taken(self, position: int, stored: Stored) -> bool:
        """Return whether the message was taken before a restart."""
        return position < self._restored_before and (position < self.redelivered_before or stored.returns > 0)

    def _is_leftover(self, position: int, message: Message) -> bool:
        """Return whether an earlier process paged out this transient message."""
        return position < self._restored_before and not self.keeps(message)

    def _read(self, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        """Return messages that are only in the journal, from `start` on: committed ones, else those to be committed."""
        found = self.journal.read(self.id, start, bytes_max)
        if not found:
            for pending in (self.writing, self.puts):
                found += [(position, stored) for position, stored in pending.items() if position >= start]
        return found

    def _erase(self, position: int) -> None:
        stored = self.puts.pop(position, None)
        if stored is None or stored.is_rewritten:
            self.removes.append(position)
        if not self.is_dirty:
            self.mark()

    def mark(self) -> None:
        """Have the next batch of the journal write the changes."""
        if not self.is_dirty:
            self.is_dirty = True
            self.journal.dirty.append(self)

    # For the journal

    def take(self) -> list[int]:
        """Hand the changes to a batch: return the positions to remove, and leave the puts in `writing`."""
        self.is_dirty = False
        self.writing_state = None if self.is_dropped else self.state
        self.writing, self.puts = self.puts, {}
        self.written_count += len(self.writing)
        removes, self.removes = self.removes, []
        return removes

    def take_back(self, removes: list[int]) -> None:
        """Collect the changes of a batch that was not written once more."""
        written, self.writing = self.writing, {}
        self.written_count -= len(written)
        for position in self.removes:
            written.pop(position, None)
        self.puts = {**written, **self.puts}
        self.removes = removes + self.removes
        self.mark()
