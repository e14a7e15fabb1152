"""A queue with x-max-priority: higher priorities are delivered first, equal ones in the order of their positions."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from amqp_broker.broker.queue import Queue
from amqp_broker.message import Message


class PriorityQueue(Queue):
    """A classic queue whose ready messages are one heap, ordered by priority and position.

    The head that length limits drop is the message next to be delivered, the one of the highest priority.
    """

    def __init__(self, *args: Any, **attributes: Any) -> None:
        self._heap: list[tuple[int, int, bool, Message]] = []
        self._priority_max: int = attributes["arguments"]["x-max-priority"]
        super().__init__(*args, **attributes)

    @property
    def ready_count(self) -> int:
        return len(self._heap)

    def _update_extras(self) -> None:
        self.has_extras = True

    def messages(self) -> Iterator[Message]:
        for _, _, _, message in sorted(self._heap):
            yield message

    def _append(self, message: Message) -> int:
        position = self.head
        self.head = position + 1
        self._push_heap(position, message, False)
        return position

    def _head_position(self) -> int:
        return self._heap[0][1]

    def _pop_head(self) -> tuple[Message, int, bool]:
        _, position, redelivered, message = heapq.heappop(self._heap)
        return message, position, redelivered

    def _put_back(self, position: int, message: Message) -> None:
        self._push_heap(position, message, True)

    def _push_heap(self, position: int, message: Message, redelivered: bool) -> None:
        priority = min(message.priority or 0, self._priority_max)
        heapq.heappush(self._heap, (-priority, position, redelivered, message))
