"""In which order a quorum queue serves what it has not delivered yet; RabbitMQ has changed that twice.

Up to 3.13 priorities mean nothing. From 4.0 there are two levels, and of the higher one two messages go for one of the
lower. From 4.3 there are 32, and a higher one goes before all lower ones.
Source: rabbit_fifo_q.erl (4.0 to 4.2), rabbit_fifo_pq.erl (4.3); RabbitMQ, "Quorum Queues".
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from amqp_broker.message import Message

Placed: TypeAlias = tuple[int, Message]

# From here on a priority is high (4.0 to 4.2).
HIGH_MIN: Final = 5
# How many of high priority go before one of normal priority.
WEIGHT: Final = 2
PRIORITY_MAX: Final = 31
# That of messages without one, and of those that go back behind all others (4.3).
PRIORITY_DEFAULT: Final = 4


class TwoLevels:
    """High and normal priority, two to one; what is older than all of normal priority goes first in any case."""

    def __init__(self, has_high: bool) -> None:
        """Without `has_high` all priorities are normal."""
        self._has_high = has_high
        self._high: deque[Placed] = deque()
        self._normal: deque[Placed] = deque()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._high) + len(self._normal)

    def __iter__(self) -> Iterator[Placed]:
        """All messages, as they would be taken."""
        copy = TwoLevels(self._has_high)
        copy._high, copy._normal, copy._turn = self._high.copy(), self._normal.copy(), self._turn
        while copy:
            yield copy.take()

    def add(self, position: int, message: Message, priority: int | None) -> None:
        is_high = self._has_high and priority is not None and priority >= HIGH_MIN
        (self._high if is_high else self._normal).append((position, message))

    def head(self) -> int:
        """The position of the next message."""
        return self._next()[0][0]

    def take(self) -> Placed:
        """Take the next message out."""
        level = self._next()
        self._turn = 0 if self._turn == WEIGHT else self._turn + 1
        return level.popleft()

    def _next(self) -> deque[Placed]:
        high, normal = self._high, self._normal
        if not high:
            return normal
        is_turn_of_normal = self._turn == WEIGHT and normal and normal[0][0] < high[0][0]
        return normal if is_turn_of_normal else high


class Strict:
    """Priorities 0 to 31, the highest first, equal ones by position."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Message]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Placed]:
        """All messages, as they would be taken."""
        return ((position, message) for _, position, message in sorted(self._heap))

    def add(self, position: int, message: Message, priority: int | None) -> None:
        level = PRIORITY_DEFAULT if priority is None else min(priority, PRIORITY_MAX)
        heapq.heappush(self._heap, (-level, position, message))

    def head(self) -> int:
        """The position of the next message."""
        return self._heap[0][1]

    def take(self) -> Placed:
        """Take the next message out."""
        _, position, message = heapq.heappop(self._heap)
        return position, message


def quorum_order(priority_levels: int) -> TwoLevels | Strict:
    """The order of a version with so many levels: 1, 2 or 32."""
    return Strict() if priority_levels > 2 else TwoLevels(has_high=priority_levels == 2)
