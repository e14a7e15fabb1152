"""Ready messages by priority, those of equal priority in the order of arrival."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from mypy_extensions import mypyc_attr

from amqp_broker.broker.durability.journal import END
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.broker.queues.backlog import RETURNED_MAX, Backlog
from amqp_broker.broker.queues.memory_buffer import MemoryBuffer

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class PriorityBacklog(Backlog):
    """The backlog of a queue with x-max-priority: a buffer per priority.

    The remainder of a position divided by the number of buffers is the message's priority.
    """

    __slots__ = ("_buffers", "_count", "_deadlines", "_first_returned", "_in_use", "_next", "_returned")

    def __init__(self, deadlines: dict[int, int], priority_max: int) -> None:
        self._deadlines = deadlines
        self._buffers: Sequence[MemoryBuffer | PagedBuffer] = [MemoryBuffer(deadlines) for _ in range(priority_max + 1)]
        # Bit n is set while the buffer of priority n has messages.
        self._in_use = 0
        # Messages in all buffers.
        self._count = 0
        self._next = 0
        # Returned messages: (-priority, position, message), the next one first.
        self._returned: list[tuple[int, int, Message]] = []
        # No returned message has a lower position.
        self._first_returned = END

    def __len__(self) -> int:
        return self._count + len(self._returned)

    @property
    def arrival_count(self) -> int:
        return self._next

    def oldest_arrival(self) -> int | None:
        if len(self._returned) <= RETURNED_MAX:
            self._first_returned = min((position for _, position, _ in self._returned), default=END)
        positions = [self._first_returned, *(buffer.head_position() for buffer in self._buffers if buffer)]
        return min(positions) // len(self._buffers) if len(self) else None

    @property
    def range_count(self) -> int:
        return len(self._buffers)

    @property
    def buffers(self) -> list[PagedBuffer]:
        return [buffer for buffer in self._buffers if isinstance(buffer, PagedBuffer)]

    def keep(self, journal: Journal, range_id: int) -> None:
        buffers = [
            PagedBuffer(journal, range_id + priority, keeps_all=False, deadlines=self._deadlines)
            for priority in range(self.range_count)
        ]
        self._buffers = buffers
        self._in_use = sum(1 << priority for priority, buffer in enumerate(buffers) if buffer)
        self._count = sum(map(len, buffers))
        self._next = -(-max(buffer.next for buffer in buffers) // len(buffers))

    def items(self) -> Iterator[tuple[int, Message, bool]]:
        returned = sorted(self._returned)
        for priority in reversed(range(len(self._buffers))):
            for level, position, message in returned:
                if -level == priority:
                    yield position, message, True
            buffer = self._buffers[priority]
            for position, message in buffer.items():
                yield position, message, position < buffer.redelivered_before

    def frozen(self, journal: Journal) -> Self:
        frozen = copy.copy(self)
        frozen._buffers = [buffer.frozen(journal) for buffer in self._buffers]
        frozen._returned = self._returned.copy()
        return frozen

    def count_bytes(self) -> int:
        in_buffers = sum(buffer.ready_bytes for buffer in self._buffers)
        return in_buffers + sum(message.body_bytes for _, _, message in self._returned)

    def _new_position(self, message: Message) -> int:
        position = self._next * len(self._buffers) + min(message.priority or 0, len(self._buffers) - 1)
        self._next += 1
        return position

    def append(self, message: Message, deadline_ms: int | None) -> int:
        position = self._new_position(message)
        priority = position % len(self._buffers)
        self._buffers[priority].append(position, message, deadline_ms)
        self._in_use |= 1 << priority
        self._count += 1
        return position

    def deliver_through(self, message: Message, deadline_ms: int | None) -> int:
        position = self._new_position(message)
        buffer = self._buffers[position % len(self._buffers)]
        if isinstance(buffer, PagedBuffer):
            buffer.deliver_through(position, message, deadline_ms)
        return position

    def _is_returned_next(self) -> bool:
        return bool(self._returned) and -self._returned[0][0] >= self._in_use.bit_length() - 1

    def head_position(self) -> int:
        if self._is_returned_next():
            return self._returned[0][1]
        return self._buffers[self._in_use.bit_length() - 1].head_position()

    def pop_head(self) -> tuple[Message, int, bool]:
        if self._is_returned_next():
            _, position, message = heapq.heappop(self._returned)
            return message, position, True
        priority = self._in_use.bit_length() - 1
        buffer = self._buffers[priority]
        position, message = buffer.pop_head()
        self._count -= 1
        if not buffer:
            self._in_use &= ~(1 << priority)
        return message, position, position < buffer.redelivered_before

    def put_back(self, position: int, message: Message) -> int:
        if position < self._first_returned:
            self._first_returned = position
        heapq.heappush(self._returned, (-(position % len(self._buffers)), position, message))
        return position

    def return_to_head(self, position: int, message: Message) -> None:
        # It counts as delivered from now on, as all returned messages do.
        self.put_back(position, message)

    def reach(self, position: int) -> bool:
        return self._buffers[position % len(self._buffers)].reach(position)

    def take_at(self, position: int) -> tuple[Message, bool] | None:
        for index, (_, at, returned) in enumerate(self._returned):
            if at == position:
                del self._returned[index]
                heapq.heapify(self._returned)
                return returned, True
        priority = position % len(self._buffers)
        buffer = self._buffers[priority]
        message = buffer.take_at(position)
        if message is None:
            return None
        self._count -= 1
        if not buffer:
            self._in_use &= ~(1 << priority)
        return message, position < buffer.redelivered_before

    def put_at(self, position: int, message: Message, redelivered: bool) -> None:
        priority = position % len(self._buffers)
        buffer = self._buffers[priority]
        # One that was delivered after a restart is among the returned ones.
        if redelivered and position >= buffer.redelivered_before:
            self.put_back(position, message)
            return
        buffer.put_at(position, message)
        self._in_use |= 1 << priority
        self._count += 1

    def forget(self, position: int, message: Message) -> None:
        buffer = self._buffers[position % len(self._buffers)]
        if isinstance(buffer, PagedBuffer):
            buffer.remove(position, message)

    def clear(self) -> None:
        for _, position, message in self._returned:
            self.forget(position, message)
            self._deadlines.pop(position, None)
        self._returned.clear()
        for buffer in self._buffers:
            buffer.clear()
        self._in_use = self._count = 0
