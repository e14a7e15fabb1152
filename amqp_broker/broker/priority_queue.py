"""A queue with x-max-priority: higher priorities are delivered first, equal ones in the order of their positions."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from amqp_broker.broker.line import Line
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.window import Window
from amqp_broker.message import Message


class PriorityQueue(Queue):
    """A classic queue with a line of messages per priority.

    The head that length limits drop is the message next to be delivered, the one of the highest priority.
    """

    def __init__(self, *args: Any, **attributes: Any) -> None:
        self._priority_max: int = attributes["arguments"]["x-max-priority"]
        self._lines: list[Line | Window] = [Line(self) for _ in range(self._priority_max + 1)]
        # Which lines have messages: bit n for priority n.
        self._in_use = 0
        self._in_lines = 0
        # What came back: (-priority, position, message), the next one first.
        self._returned: list[tuple[int, int, Message]] = []
        super().__init__(*args, **attributes)

    @property
    def range_count(self) -> int:
        return self._priority_max + 1

    @property
    def windows(self) -> list[Window]:
        return [line for line in self._lines if isinstance(line, Window)]

    @property
    def ready_count(self) -> int:
        return self._in_lines + len(self._returned)

    def page(self) -> bool:
        """What is transient stays in memory: with an order of its own it has no tail that could go elsewhere."""
        return False

    def keep(self, range_id: int) -> None:
        self.range_id = range_id
        journal = self.vhost.broker.journal
        windows = [Window(self, journal, range_id + priority, keeps_all=False) for priority in range(self.range_count)]
        self._lines = [*windows]
        self._in_use = sum(1 << priority for priority, window in enumerate(windows) if window)
        self._in_lines = sum(map(len, windows))
        self.head = -(-max(window.next for window in windows) // len(windows))

    def _update_extras(self) -> None:
        self.has_extras = True

    def messages(self) -> Iterator[Message]:
        returned = sorted(self._returned)
        for priority in range(self._priority_max, -1, -1):
            yield from (message for level, _, message in returned if -level == priority)
            yield from self._lines[priority]

    def items(self) -> Iterator[tuple[int, Message, bool]]:
        returned = sorted(self._returned)
        for priority in range(self._priority_max, -1, -1):
            yield from ((position, message, True) for level, position, message in returned if -level == priority)
            yield from ((position, message, False) for position, message in self._lines[priority].items())

    def _count_ready_bytes(self) -> int:
        in_lines = sum(line.ready_bytes for line in self._lines)
        return in_lines + sum(message.body_bytes for _, _, message in self._returned)

    def _window_of(self, position: int) -> Window:
        window = self._lines[position % len(self._lines)]
        assert isinstance(window, Window)
        return window

    def _new_position(self, message: Message) -> int:
        """The next one: positions tell the line by what is left when they are divided by the number of lines."""
        position = self.head * len(self._lines) + min(message.priority or 0, self._priority_max)
        self.head += 1
        return position

    def _append(self, message: Message, deadline_ms: int | None) -> int:
        position = self._new_position(message)
        priority = position % len(self._lines)
        self._lines[priority].append(position, message, deadline_ms)
        self._in_use |= 1 << priority
        self._in_lines += 1
        return position

    def _skip(self, message: Message, deadline_ms: int | None) -> int:
        position = self._new_position(message)
        if self.range_id is not None:
            self._window_of(position).hand_on(position, message, deadline_ms)
        return position

    def _is_returned_next(self) -> bool:
        return bool(self._returned) and -self._returned[0][0] >= self._in_use.bit_length() - 1

    def _head_position(self) -> int:
        if self._is_returned_next():
            return self._returned[0][1]
        return self._lines[self._in_use.bit_length() - 1].head_position()

    def _pop_head(self) -> tuple[Message, int, bool]:
        if self._is_returned_next():
            _, position, message = heapq.heappop(self._returned)
            return message, position, True
        priority = self._in_use.bit_length() - 1
        line = self._lines[priority]
        position, message = line.popleft()
        self._in_lines -= 1
        if not line:
            self._in_use &= ~(1 << priority)
        return message, position, position < line.redelivered_before

    def _put_back(self, position: int, message: Message) -> int:
        heapq.heappush(self._returned, (-(position % len(self._lines)), position, message))
        return position

    def _clear(self) -> None:
        for _, position, message in self._returned:
            self.forget(position, message)
        self._returned.clear()
        for line in self._lines:
            line.clear()
        self._in_use = self._in_lines = 0
