"""A line of ready messages by position, all of them in memory: what a window is where nothing is durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message


class Line:
    """Ready messages in the order of their positions; `len` tells how many. Its verbs are those of `Window`."""

    __slots__ = ("_messages", "queue")

    # There is nothing from before a restart.
    redelivered_before = 0

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self._messages: deque[tuple[int, Message]] = deque()

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return (message for _, message in self._messages)

    def items(self) -> Iterator[tuple[int, Message]]:
        return iter(self._messages)

    @property
    def ready_bytes(self) -> int:
        """Octets of the bodies of all that is ready."""
        return sum(message.body_bytes for message in self)

    def append(self, position: int, message: Message, deadline_ms: int | None) -> None:
        self._messages.append((position, message))
        if deadline_ms is not None:
            self.queue.deadlines[position] = deadline_ms

    def head_position(self) -> int:
        return self._messages[0][0]

    def popleft(self) -> tuple[int, Message]:
        return self._messages.popleft()

    def clear(self) -> None:
        for position, _ in self._messages:
            self.queue.deadlines.pop(position, None)
        self._messages.clear()
