"""The order of messages in a quorum queue that were not delivered yet; RabbitMQ has changed it twice.

Up to 3.13, priorities are ignored. From 4.0 on there are two levels, and two messages of the higher one go for one of
the lower. From 4.3 on there are 32 levels, and higher ones go first. Source: rabbit_fifo_q.erl (4.0 to 4.2),
rabbit_fifo_pq.erl (4.3); RabbitMQ, "Quorum Queues".
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Stored
    from amqp_broker.broker.durability.paged_buffer import PagedBuffer
    from amqp_broker.broker.queues.memory_buffer import MemoryBuffer

# Each queue has a buffer for each level of 4.3, so that the store is the same for all versions.
LEVELS: Final = 32
# The lowest high priority (4.0 to 4.2).
HIGH_MIN: Final = 5
# Messages of high priority that go for one of normal priority.
WEIGHT: Final = 2
# The priority of messages without one, and of messages returned to the tail.
PRIORITY_DEFAULT: Final = 4


class TwoLevels:
    """High and normal priority, two to one; a high message older than all normal ones always goes first."""

    def __init__(self, buffers: Sequence[MemoryBuffer | PagedBuffer], has_high: bool) -> None:
        """Without `has_high`, all priorities are normal."""
        self._has_high = has_high
        # A buffer each, and those in which another version has left messages.
        self._normal = [
            buffer for level, buffer in enumerate(buffers[:HIGH_MIN]) if buffer or level == PRIORITY_DEFAULT
        ]
        self._high = [buffer for level, buffer in enumerate(buffers[HIGH_MIN:]) if buffer or not level]
        self.turn = 0

    def level(self, priority: int | None) -> int:
        """Return the level of a new message."""
        return HIGH_MIN if self._has_high and priority is not None and priority >= HIGH_MIN else PRIORITY_DEFAULT

    def next(self) -> MemoryBuffer | PagedBuffer:
        """Return the buffer that has the next message."""
        high, normal = _oldest(self._high), _oldest(self._normal)
        if high is None or normal is None:
            buffer = high or normal
            assert buffer is not None, "nothing is ready"
            return buffer
        return normal if self.turn == WEIGHT and normal.head_position() < high.head_position() else high

    def count(self) -> None:
        """Note that a message was taken."""
        self.turn = 0 if self.turn == WEIGHT else self.turn + 1

    def items(self, taken: dict[int, Stored] | None = None) -> Iterator[tuple[int, Message]]:
        """Yield positions and messages in the order in which they would be taken."""
        high = heapq.merge(*[buffer.items(taken) for buffer in self._high], key=lambda item: item[0])
        normal = heapq.merge(*[buffer.items(taken) for buffer in self._normal], key=lambda item: item[0])
        turn, next_high, next_normal = self.turn, next(high, None), next(normal, None)
        while next_high or next_normal:
            is_normal = next_high is None or (
                turn == WEIGHT and next_normal is not None and next_normal[0] < next_high[0]
            )
            turn = 0 if turn == WEIGHT else turn + 1
            if is_normal and next_normal is not None:
                yield next_normal
                next_normal = next(normal, None)
            elif next_high is not None:
                yield next_high
                next_high = next(high, None)


class Strict:
    """Priorities 0 to 31, the highest first, equal ones by position. Levels do not take turns."""

    turn = 0

    def __init__(self, buffers: Sequence[MemoryBuffer | PagedBuffer]) -> None:
        self._buffers = buffers

    def level(self, priority: int | None) -> int:
        """Return the level of a new message."""
        return PRIORITY_DEFAULT if priority is None else min(priority, LEVELS - 1)

    def next(self) -> MemoryBuffer | PagedBuffer:
        """Return the buffer that has the next message."""
        return next(buffer for buffer in reversed(self._buffers) if buffer)

    def count(self) -> None:
        """Note that a message was taken."""

    def items(self, taken: dict[int, Stored] | None = None) -> Iterator[tuple[int, Message]]:
        """Yield positions and messages in the order in which they would be taken."""
        for buffer in reversed(self._buffers):
            yield from buffer.items(taken)


def _oldest(buffers: Sequence[MemoryBuffer | PagedBuffer]) -> MemoryBuffer | PagedBuffer | None:
    if len(buffers) == 1:
        return buffers[0] or None
    return min((buffer for buffer in buffers if buffer), key=lambda buffer: buffer.head_position(), default=None)


def quorum_order(priority_levels: int, buffers: Sequence[MemoryBuffer | PagedBuffer]) -> TwoLevels | Strict:
    """Return the order of a version with this number of levels: 1, 2 or 32."""
    return Strict(buffers) if priority_levels > 2 else TwoLevels(buffers, has_high=priority_levels == 2)
