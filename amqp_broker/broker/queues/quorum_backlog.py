"""Ready messages of a quorum queue: returned ones first, then by the order of the version."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Self

from mypy_extensions import mypyc_attr

from amqp_broker.amqp.message import failures_of
from amqp_broker.broker.durability.journal import END
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.broker.queues.backlog import RETURNED_MAX, Backlog
from amqp_broker.broker.queues.memory_buffer import MemoryBuffer
from amqp_broker.broker.queues.octets import octets_of
from amqp_broker.broker.queues.quorum_order import LEVELS, PRIORITY_DEFAULT, quorum_order

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal, Stored
    from amqp_broker.broker.queues.expiry import Expiry
    from amqp_broker.broker.queues.return_counts import ReturnCounts
    from amqp_broker.settings.profiles import Profile


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class QuorumBacklog(Backlog):
    """The backlog of a quorum queue: a buffer per level of priority, and the returned messages.

    Returned messages are served first, in the order in which they were returned, or go behind all others, to new
    positions. The remainder of a position divided by `LEVELS` is its level.
    """

    __slots__ = (
        "_count",
        "_counts",
        "_counts_properties",
        "_deadlines",
        "_first_returned",
        "_levels",
        "_next",
        "_priority_levels",
        "_returned",
        "_takes_failures",
        "_withhold",
        "expires_by_level",
        "order",
    )

    def __init__(
        self,
        deadlines: dict[int, int],
        counts: ReturnCounts,
        profile: Profile,
        withhold: Callable[[int, Stored], bool],
    ) -> None:
        """Create an empty backlog.

        `withhold` is called with a message that was taken before a restart; it is ready unless that returns True.
        """
        self._deadlines = deadlines
        self._counts = counts
        self._priority_levels = profile.quorum_priority_levels
        self._takes_failures = profile.quorum_takes_failures
        self._counts_properties = profile.quorum_counts_properties
        # Set where the first message of each line expires, and not only the one that is delivered next.
        self.expires_by_level = profile.quorum_expires_by_level
        self._withhold: Callable[[int, Stored], bool] = withhold
        self._next = 0
        self._returned: deque[tuple[int, Message]] = deque()
        # No returned message has a lower position.
        self._first_returned = END
        self._use([MemoryBuffer(deadlines) for _ in range(LEVELS)])

    def _use(self, buffers: Sequence[MemoryBuffer | PagedBuffer]) -> None:
        self._levels = buffers
        self._count = sum(map(len, buffers))
        self.order = quorum_order(self._priority_levels, buffers)

    def __len__(self) -> int:
        return self._count + len(self._returned)

    @property
    def arrival_count(self) -> int:
        return self._next

    def oldest_arrival(self) -> int | None:
        if len(self._returned) <= RETURNED_MAX:
            self._first_returned = min((position for position, _ in self._returned), default=END)
        positions = [self._first_returned, *(buffer.head_position() for buffer in self._levels if buffer)]
        return min(positions) // LEVELS if len(self) else None

    @property
    def range_count(self) -> int:
        return LEVELS

    @property
    def buffers(self) -> list[PagedBuffer]:
        return [buffer for buffer in self._levels if isinstance(buffer, PagedBuffer)]

    def keep(self, journal: Journal, range_id: int) -> None:
        buffers = [
            PagedBuffer(
                journal,
                range_id + level,
                keeps_all=True,
                deadlines=self._deadlines,
                on_recovered=self._on_recovered,
            )
            for level in range(LEVELS)
        ]
        self._use(buffers)
        self._next = -(-max(buffer.next for buffer in buffers) // LEVELS)

    def _on_recovered(self, position: int, stored: Stored) -> bool:
        if stored.death is None:
            self._counts.on_recovered(position, stored.returns, stored.failures)
        is_withheld = self._withhold(position, stored)
        if is_withheld:
            self._count -= 1
        return is_withheld

    def stop(self) -> None:
        """The queue is deleted. Refer to it no longer, so that it is freed at once."""
        self._withhold = lambda position, stored: False

    def fill_taken(self) -> None:
        """Read all messages that were taken before a restart."""
        for buffer in self.buffers:
            buffer.fill_taken()

    def items(self, taken: dict[int, Stored] | None = None) -> Iterator[tuple[int, Message, bool]]:
        """Yield positions, messages and whether each was returned, in order of delivery.

        `taken` gets those that were taken before a restart, and that only the journal has.
        """
        for position, message in self._returned:
            yield position, message, True
        for position, message in self.order.items(taken):
            yield position, message, False

    def frozen(self, journal: Journal) -> Self:
        frozen = copy.copy(self)
        frozen._returned = self._returned.copy()
        # Most of the levels are empty.
        frozen._use([buffer.frozen(journal) if buffer else MemoryBuffer({}) for buffer in self._levels])
        frozen.order.turn = self.order.turn
        return frozen

    def count_bytes(self) -> int:
        if self._counts_properties:
            # The journal knows the size of bodies alone, so all messages are read.
            return sum(octets_of(message, with_properties=True) for _, message, _ in self.items())
        in_buffers = sum(buffer.ready_bytes for buffer in self._levels)
        return in_buffers + sum(message.body_bytes for _, message in self._returned)

    @property
    def returned_count(self) -> int:
        """The number of returned messages."""
        return len(self._returned)

    def level_counts(self) -> dict[int, int]:
        """Return the number of messages that were not returned, by level of priority, where there are any."""
        return {level: len(buffer) for level, buffer in enumerate(self._levels) if len(buffer)}

    def _new_position(self, priority: int | None) -> int:
        position = self._next * LEVELS + self.order.level(priority)
        self._next += 1
        return position

    def append(self, message: Message, deadline_ms: int | None) -> int:
        return self.append_at(message.priority, message, deadline_ms)

    def append_at(self, priority: int | None, message: Message, deadline_ms: int | None) -> int:
        """Add a message as if it had this priority; return its position."""
        position = self._new_position(priority)
        self._levels[position % LEVELS].append(position, message, deadline_ms)
        self._count += 1
        return position

    def deliver_through(self, message: Message, deadline_ms: int | None) -> int:
        position = self._new_position(message.priority)
        buffer = self._levels[position % LEVELS]
        if isinstance(buffer, PagedBuffer):
            buffer.deliver_through(position, message, deadline_ms)
        # In RabbitMQ it goes through the queue like all others.
        self.order.count()
        return position

    def head_position(self) -> int:
        return self._returned[0][0] if self._returned else self.order.next().head_position()

    def is_next_to_expire(self, position: int) -> bool:
        if self.expires_by_level:
            return self._levels[position % LEVELS].head_position() == position
        return self.head_position() == position

    def expiring_next(self) -> Iterator[int]:
        if not self.expires_by_level:
            yield from super().expiring_next()
            return
        if self._returned:
            yield self._returned[0][0]
        for buffer in self._levels:
            if buffer:
                yield buffer.head_position()

    def pop_head(self) -> tuple[Message, int, bool]:
        if self._returned:
            position, message = self._returned.popleft()
        else:
            position, message = self.order.next().pop_head()
            self.order.count()
            self._count -= 1
            if self._takes_failures and (failures := failures_of(message)):
                self._counts.failures[position] = failures
        return message, position, self._counts.has(position)

    def has_expired(self, expiry: Expiry, now: int) -> bool:
        """Return whether `take_expired` would take a message; set the timer if none has expired."""
        if self._returned and expiry.is_due(self._returned[0][0], now):
            return True
        return any(buffer and expiry.is_due(buffer.head_position(), now) for buffer in self._levels)

    def take_expired(self, expiry: Expiry, now: int) -> Iterator[tuple[int, Message]]:
        """Take expired messages from the head of each line. Priorities follow returned messages, the highest first."""
        while self._returned and expiry.is_due(self._returned[0][0], now):
            yield self._returned.popleft()
        for buffer in reversed(self._levels):
            while buffer and expiry.is_due(buffer.head_position(), now):
                position, message = buffer.pop_head()
                self._count -= 1
                if self._takes_failures and (failures := failures_of(message)):
                    self._counts.failures[position] = failures
                yield position, message

    def put_back(self, position: int, message: Message) -> int:
        if position < self._first_returned:
            self._first_returned = position
        self._returned.append((position, message))
        return position

    def reach(self, position: int) -> bool:
        return self._levels[position % LEVELS].reach(position)

    def take_at(self, position: int) -> tuple[Message, bool] | None:
        for index, (at, returned) in enumerate(self._returned):
            if at == position:
                del self._returned[index]
                return returned, True
        message = self._levels[position % LEVELS].take_at(position)
        if message is None:
            return None
        self._count -= 1
        return message, False

    def put_at(self, position: int, message: Message, redelivered: bool) -> None:
        if redelivered:
            # Its place among the returned ones is that of the first.
            self.return_to_head(position, message)
            return
        self._levels[position % LEVELS].put_at(position, message)
        self._count += 1

    def put_at_tail(self, position: int, message: Message) -> int:
        """Return a taken message to a new position behind all others; return the position."""
        deadline_ms = self._deadlines.pop(position, None)
        self.forget(position, message)
        # RabbitMQ loses the priority here.
        new_position = self.append_at(PRIORITY_DEFAULT, message, deadline_ms)
        self._counts.move(position, new_position)
        self.rewrite(new_position, self._counts.stored(new_position, message, deadline_ms))
        return new_position

    def return_to_head(self, position: int, message: Message) -> None:
        if position < self._first_returned:
            self._first_returned = position
        self._returned.appendleft((position, message))

    def put_back_all(self, messages: dict[int, Message]) -> None:
        """Return messages of a snapshot, in the order in which they arrived."""
        self._first_returned = min(self._first_returned, *messages, END)
        self._returned.extend(sorted(messages.items(), key=lambda item: item[0] // LEVELS))

    def rewrite(self, position: int, stored: Stored) -> None:
        """Update the journal's copy of a taken message, which was returned."""
        buffer = self._levels[position % LEVELS]
        if isinstance(buffer, PagedBuffer):
            buffer.rewrite(position, stored)

    def forget(self, position: int, message: Message) -> None:
        buffer = self._levels[position % LEVELS]
        if isinstance(buffer, PagedBuffer):
            buffer.remove(position, message)

    def clear(self) -> None:
        for position, message in self._returned:
            self.forget(position, message)
            self._deadlines.pop(position, None)
            self._counts.forget(position)
        self._returned.clear()
        # Unacked messages stand before the ready ones of their level.
        first = {level: buffer.head_position() for level, buffer in enumerate(self._levels) if buffer}
        for position in [at for at in self._counts.positions() if at >= first.get(at % LEVELS, END)]:
            self._counts.forget(position)
        for buffer in self._levels:
            buffer.clear()
        self._count = 0
        # RabbitMQ begins with new lines (rabbit_fifo.erl, purge).
        self.order.turn = 0
