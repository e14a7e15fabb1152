"""In which order a quorum queue serves what it has not delivered yet; RabbitMQ has changed that twice.

Up to 3.13 priorities mean nothing. From 4.0 there are two levels, and of the higher one two messages go for one of the
lower. From 4.3 there are 32, and a higher one goes before all lower ones.
Source: rabbit_fifo_q.erl (4.0 to 4.2), rabbit_fifo_pq.erl (4.3); RabbitMQ, "Quorum Queues".
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.broker.line import Line
    from amqp_broker.broker.window import Window
    from amqp_broker.message import Message

# Each queue has a line for each priority of the version that has most: the store is the same for all versions.
LEVELS: Final = 32
# From here on a priority is high (4.0 to 4.2).
HIGH_MIN: Final = 5
# How many of high priority go before one of normal priority.
WEIGHT: Final = 2
# That of messages without one, and of those that go back behind all others (4.3).
PRIORITY_DEFAULT: Final = 4


class TwoLevels:
    """High and normal priority, two to one; what is older than all of normal priority goes first in any case."""

    def __init__(self, lines: Sequence[Line | Window], has_high: bool) -> None:
        """Without `has_high` all priorities are normal."""
        self._has_high = has_high
        # One line each, and those that another version has left something in.
        self._normal = [line for level, line in enumerate(lines[:HIGH_MIN]) if line or level == PRIORITY_DEFAULT]
        self._high = [line for level, line in enumerate(lines[HIGH_MIN:]) if line or not level]
        self.turn = 0

    def level(self, priority: int | None) -> int:
        """The line that a new message goes to."""
        return HIGH_MIN if self._has_high and priority is not None and priority >= HIGH_MIN else PRIORITY_DEFAULT

    def next(self) -> Line | Window:
        """The line that the next message is taken from."""
        high, normal = _oldest(self._high), _oldest(self._normal)
        if high is None or normal is None:
            line = high or normal
            assert line is not None, "nothing is ready"
            return line
        return normal if self.turn == WEIGHT and normal.head_position() < high.head_position() else high

    def count(self) -> None:
        """A message was taken."""
        self.turn = 0 if self.turn == WEIGHT else self.turn + 1

    def __iter__(self) -> Iterator[Message]:
        """What is ready, as it would be taken."""
        return (message for _, message in self.items())

    def items(self) -> Iterator[tuple[int, Message]]:
        """Positions and messages of that."""
        high = heapq.merge(*(line.items() for line in self._high), key=lambda item: item[0])
        normal = heapq.merge(*(line.items() for line in self._normal), key=lambda item: item[0])
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
    """Priorities 0 to 31, the highest first, equal ones by position: there is only one turn."""

    turn = 0

    def __init__(self, lines: Sequence[Line | Window]) -> None:
        self._lines = lines

    def level(self, priority: int | None) -> int:
        """The line that a new message goes to."""
        return PRIORITY_DEFAULT if priority is None else min(priority, LEVELS - 1)

    def next(self) -> Line | Window:
        """The line that the next message is taken from."""
        return next(line for line in reversed(self._lines) if line)

    def count(self) -> None:
        """A message was taken."""

    def __iter__(self) -> Iterator[Message]:
        """What is ready, as it would be taken."""
        return (message for _, message in self.items())

    def items(self) -> Iterator[tuple[int, Message]]:
        """Positions and messages of that."""
        for line in reversed(self._lines):
            yield from line.items()


def _oldest(lines: Sequence[Line | Window]) -> Line | Window | None:
    if len(lines) == 1:
        return lines[0] or None
    return min((line for line in lines if line), key=lambda line: line.head_position(), default=None)


def quorum_order(priority_levels: int, lines: Sequence[Line | Window]) -> TwoLevels | Strict:
    """The order of a version with so many levels: 1, 2 or 32."""
    return Strict(lines) if priority_levels > 2 else TwoLevels(lines, has_high=priority_levels == 2)
