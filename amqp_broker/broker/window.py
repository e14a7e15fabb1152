"""A window over a range of the journal: the messages of a queue by position, of which only the first are in memory.

What must outlive the process is told to the journal as soon as it is here; what comes when the window is full is
only there. So neither memory nor the time to start again grows with the backlog.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.journal import Stored, WindowState

if TYPE_CHECKING:
    from amqp_broker.broker.journal import Journal
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message

# What a window reads when its memory is used up, and may have in memory whatever others have (octets).
PORTION_BYTES: Final = 256 * 1024
# What a window may have in memory as long as all of them together do not have more than that.
WINDOW_BYTES_MAX: Final = 32 * 1024 * 1024
WINDOWS_BYTES_MAX: Final = 96 * 1024 * 1024
# What an entry costs beside its content.
ENTRY_BYTES: Final = 256
# Behind every position that there will ever be.
END: Final = (1 << 63) - 1


class Window:
    """Ready messages in the order of their positions; `len` tells how many.

    A message is *put* at its position, *taken* when it is delivered or given up, and *removed* when it is done with.
    A message that was taken and comes back is kept by its queue, not here, but the journal still has it.
    """

    __slots__ = (
        "_memory_bytes",
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
        "queue",
        "ready_bytes",
        "redelivered_before",
        "removes",
        "stored_bytes",
        "stored_count",
        "taken_bytes",
        "taken_count",
        "writing",
        "writing_state",
    )

    def __init__(self, queue: Queue | None, journal: Journal, range_id: int, keeps_all: bool) -> None:
        """Open a range of positions that is new, or that a restart found.

        Without a queue nothing may be ready here: messages are handed on, or all taken.
        """
        state = journal.state_of(range_id)
        self.queue: Queue = queue  # type: ignore[assignment] # nobody asks for it then
        self.journal = journal
        self.id = range_id
        # Whether transient messages are kept like persistent ones (quorum queues do so).
        self.keeps_all = keeps_all
        self.head = self.redelivered_before = state.head
        self.next = self._restored_before = state.next
        # What a restart would find, and what of that is taken: number, and octets of the bodies.
        self.stored_count, self.stored_bytes = state.message_count, state.body_bytes
        self.taken_count = self.taken_bytes = 0
        # Octets of the bodies of all that is ready.
        self.ready_bytes = state.body_bytes
        # The first ready messages; `paged_count` more are only in the journal, from position `_read_from` on.
        self.memory: deque[tuple[int, Message]] = deque()
        self._memory_bytes = 0
        self.paged_count = state.message_count
        self._read_from = 0
        # What the batch that is being collected has of this range, and the puts of the one that is being committed.
        self.puts: dict[int, Stored] = {}
        self.removes: list[int] = []
        self.writing: dict[int, Stored] = {}
        # The state that goes with these; None for a window that is dropped.
        self.writing_state: WindowState | None = None
        self.is_dirty = False
        self.is_dropped = False

    def __len__(self) -> int:
        return len(self.memory) + self.paged_count

    def __iter__(self) -> Iterator[Message]:
        """What is ready, in order."""
        return (message for _, message in self.items())

    def items(self) -> Iterator[tuple[int, Message]]:
        """Positions and messages of what is ready, in order; what is not in memory is read and not kept."""
        yield from self.memory
        left, position = self.paged_count, self._read_from
        while left and (found := self._read(position, PORTION_BYTES)):
            for position, stored in found:
                if not self._is_leftover(position, stored.message):
                    left -= 1
                    yield position, stored.message
            position += 1

    @property
    def state(self) -> WindowState:
        return WindowState(self.head, self.next, self.stored_count, self.stored_bytes)

    def keeps(self, message: Message) -> bool:
        """Whether a restart must find the message."""
        return message.is_persistent or self.keeps_all

    def append(self, position: int, message: Message, deadline_ms: int | None) -> None:
        """Put a new message behind the others; its position is the highest so far."""
        self.next = position + 1
        body_bytes = message.body_bytes
        self.ready_bytes += body_bytes
        is_kept = message.is_persistent or self.keeps_all
        is_paged = self.paged_count > 0 or (self._memory_bytes >= PORTION_BYTES and self._is_full())
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
            self.journal.told += len(message.content) + ENTRY_BYTES
        if not self.is_dirty:
            self.mark()

    def _is_full(self) -> bool:
        return self._memory_bytes >= WINDOW_BYTES_MAX or self.journal.window_bytes >= WINDOWS_BYTES_MAX

    def hand_on(self, position: int, message: Message, deadline_ms: int | None) -> None:
        """Put a new message and take it at once, where nothing is ready before it."""
        self.next = self.head = position + 1
        if message.is_persistent or self.keeps_all:
            body_bytes = message.body_bytes
            self.stored_count += 1
            self.stored_bytes += body_bytes
            self.taken_count += 1
            self.taken_bytes += body_bytes
            self.puts[position] = Stored(message, deadline_ms)
            self.journal.told += len(message.content) + ENTRY_BYTES
            if not self.is_dirty:
                self.mark()

    def _remember(self, position: int, message: Message, deadline_ms: int | None) -> None:
        self.memory.append((position, message))
        size = len(message.content) + ENTRY_BYTES
        self._memory_bytes += size
        self.journal.window_bytes += size
        if deadline_ms is not None:
            self.queue.deadlines[position] = deadline_ms

    def _forget_memory(self, message: Message) -> None:
        size = len(message.content) + ENTRY_BYTES
        self._memory_bytes -= size
        self.journal.window_bytes -= size

    def head_position(self) -> int:
        """The position of the first ready message."""
        if not self.memory:
            self.fill()
        return self.memory[0][0]

    def popleft(self) -> tuple[int, Message]:
        """Take the first ready message out."""
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
            # At once, so that its queue knows when the next one expires.
            self.fill()
        return taken

    def remove(self, position: int, message: Message) -> None:
        """A message that was taken is done with."""
        if self.is_dropped or not self.keeps(message):
            return
        body_bytes = message.body_bytes
        self.stored_count -= 1
        self.stored_bytes -= body_bytes
        self.taken_count -= 1
        self.taken_bytes -= body_bytes
        self._erase(position)

    def rewrite(self, position: int, stored: Stored) -> None:
        """A message that was taken came back, and the journal must know how often."""
        if not self.is_dropped and self.keeps(stored.message):
            self.puts[position] = stored
            self.mark()

    def clear(self) -> None:
        """Remove all that is ready; what is taken stays."""
        for position, message in self.memory:
            self.queue.deadlines.pop(position, None)
            if self.keeps(message):
                self._erase(position)
        self.memory.clear()
        self.journal.window_bytes -= self._memory_bytes
        self._memory_bytes = 0
        if self.paged_count:
            for position in [position for position in self.puts if position >= self._read_from]:
                del self.puts[position]
            self.journal.discard(self.id, self._read_from, self.next)
        self.paged_count = self.ready_bytes = 0
        self.head = self.next
        self.stored_count, self.stored_bytes = self.taken_count, self.taken_bytes
        self.mark()

    def drop(self) -> None:
        """Remove everything, for good."""
        self.clear()
        self.puts.clear()
        self.removes.clear()
        self.is_dropped = True
        self.journal.discard(self.id, 0, END)

    def take_all(self) -> list[tuple[int, Stored]]:
        """Take out all that a restart found."""
        taken: list[tuple[int, Stored]] = []
        while found := self._read(self._read_from, PORTION_BYTES):
            taken += found
            self._read_from = found[-1][0] + 1
        self.paged_count = self.ready_bytes = 0
        self.taken_count, self.taken_bytes = self.stored_count, self.stored_bytes
        return taken

    def fill(self, bytes_max: int = 0) -> None:
        """Take the next of what is only in the journal into memory: about so many octets; 0 is a portion."""
        while self.paged_count and not self.memory:
            found = self._read(self._read_from, bytes_max or PORTION_BYTES)
            assert found, f"the journal has lost {self.paged_count} messages of {self.queue}"
            for position, stored in found:
                self._read_from = position + 1
                message = stored.message
                is_leftover = self._is_leftover(position, message)
                if not self.keeps(message):
                    self._erase(position)
                if not is_leftover:
                    self.paged_count -= 1
                    self._remember(position, message, stored.deadline_ms)
                    if position < self._restored_before and (stored.returns or position < self.redelivered_before):
                        self.queue.on_recovered(position, stored)

    def _is_leftover(self, position: int, message: Message) -> bool:
        """Whether a transient message was paged out by a process that is no more."""
        return position < self._restored_before and not self.keeps(message)

    def _read(self, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        """What is not in memory from `start` on: what is committed comes first, then what is on its way there."""
        found = self.journal.read(self.id, start, bytes_max)
        if not found:
            for pending in (self.writing, self.puts):
                found += [(position, stored) for position, stored in pending.items() if position >= start]
        return found

    def _erase(self, position: int) -> None:
        stored = self.puts.pop(position, None)
        if stored is None or stored.returns:
            self.removes.append(position)
        if not self.is_dirty:
            self.mark()

    def mark(self) -> None:
        """There is something to write."""
        if not self.is_dirty:
            self.is_dirty = True
            self.journal.dirty.append(self)

    # For the journal

    def take(self) -> list[int]:
        """A batch takes what is collected: the positions to remove; what is to be put is in `writing` then."""
        self.is_dirty = False
        self.writing_state = None if self.is_dropped else self.state
        self.writing, self.puts = self.puts, {}
        removes, self.removes = self.removes, []
        return removes

    def take_back(self, removes: list[int]) -> None:
        """The batch was not written: what it took is collected again."""
        written, self.writing = self.writing, {}
        for position in self.removes:
            written.pop(position, None)
        self.puts = {**written, **self.puts}
        self.removes = removes + self.removes
        self.mark()
