"""Ready messages by position, all of them in memory: the counterpart of `PagedBuffer` for transient queues."""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from mypy_extensions import mypyc_attr

from amqp_broker.broker.durability.paged_buffer import place_of, position_of

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal, Stored


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class MemoryBuffer:
    """Ready messages in the order of their positions. `deadlines` gets the time at which each expires, by position."""

    __slots__ = ("_deadlines", "_messages")

    # Nothing is from before a restart.
    redelivered_before = 0

    def __init__(self, deadlines: dict[int, int]) -> None:
        self._deadlines = deadlines
        self._messages: deque[tuple[int, Message]] = deque()

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        """Yield the ready messages in order."""
        for _, message in self._messages:
            yield message

    def items(self, taken: dict[int, Stored] | None = None) -> Iterator[tuple[int, Message]]:
        """Yield positions and messages in order; none was taken before a restart."""
        return iter(self._messages)

    def frozen(self, journal: Journal) -> Self:
        """Return a copy whose `items` stay."""
        frozen = copy.copy(self)
        frozen._messages = self._messages.copy()
        return frozen

    @property
    def ready_bytes(self) -> int:
        """Octets of the bodies of all messages."""
        return sum(message.body_bytes for message in self)

    def append(self, position: int, message: Message, deadline_ms: int | None) -> None:
        """Put a new message at the end; its position is the highest so far."""
        self._messages.append((position, message))
        if deadline_ms is not None:
            self._deadlines[position] = deadline_ms

    def head_position(self) -> int:
        """Return the position of the first message."""
        return self._messages[0][0]

    def pop_head(self) -> tuple[int, Message]:
        """Take the first message; return its position and the message."""
        return self._messages.popleft()

    def reach(self, position: int) -> bool:
        """Return True: all messages are at hand."""
        return True

    def take_at(self, position: int) -> Message | None:
        """Take the message at a position; None if it is not here."""
        index = place_of(self._messages, position)
        if index < 0:
            return None
        _, message = self._messages[index]
        del self._messages[index]
        return message

    def put_at(self, position: int, message: Message) -> None:
        """Return a message to its place."""
        self._messages.insert(bisect_left(self._messages, position, key=position_of), (position, message))

    def clear(self) -> None:
        """Remove all messages."""
        if self._deadlines:
            for position, _ in self._messages:
                self._deadlines.pop(position, None)
        self._messages.clear()
