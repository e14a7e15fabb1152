"""The delay of messages that return to a quorum queue (x-delayed-retry-type, RabbitMQ 4.3).

Source: rabbit_fifo.erl (should_delay, calculate_ready_at, delayed_in); rabbit_quorum_queue.erl
(get_delayed_retry_config).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.queues.octets import octets_of

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.scheduling.timers import Timer, Timers

ALL: Final = "all"
FAILED: Final = "failed"
RETURNED: Final = "returned"


@dataclass(frozen=True)
class RetryDelay:
    """The returns that a queue delays (`kind`), and the shortest and the longest delay."""

    kind: str
    shortest_ms: int
    longest_ms: int

    def __str__(self) -> str:
        return f"{self.kind} (min: {self.shortest_ms}ms, max: {self.longest_ms}ms)"

    def of(self, failures: int, has_failed: bool) -> int | None:
        """Return the delay (ms) of a message that has failed so often; None if this return is not delayed."""
        if self.kind == ALL or (self.kind == FAILED) == has_failed:
            return min(self.shortest_ms * max(1, failures), self.longest_ms)
        return None


def retry_delay(kind: object, shortest_ms: int, longest_ms: int) -> RetryDelay | None:
    """Return the delay that the settings of a queue describe; None if they describe none. 0 stands for "not set"."""
    if not isinstance(kind, str) or kind not in (ALL, FAILED, RETURNED) or shortest_ms <= 0:
        return None
    return RetryDelay(kind, shortest_ms, longest_ms if longest_ms > 0 else shortest_ms)


class DelayedRetries:
    """The delayed messages of one queue, and the timer for the first that becomes ready."""

    __slots__ = ("_counts_properties", "_on_due", "_timer", "_timers", "_waiting", "octets")

    def __init__(self, timers: Timers, on_due: Callable[[], None], *, counts_properties: bool) -> None:
        self._timers = timers
        self._counts_properties = counts_properties
        self._on_due: Callable[[], None] = on_due
        self._timer: Timer | None = None
        # Time (ms since the epoch), position and message: a heap.
        self._waiting: list[tuple[int, int, Message]] = []
        self.octets = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, ready_at_ms: int, position: int, message: Message) -> None:
        """Delay a message until `ready_at_ms`."""
        heapq.heappush(self._waiting, (ready_at_ms, position, message))
        self.octets += octets_of(message, self._counts_properties)
        self._wake()

    def take_due(self, now: int, count_max: int) -> list[tuple[int, Message]]:
        """Remove messages that are ready now, but at most `count_max`; return them with their positions, in order.

        The timer stays due for the others.
        """
        due: list[tuple[int, Message]] = []
        while self._waiting and self._waiting[0][0] <= now and len(due) < count_max:
            _, position, message = heapq.heappop(self._waiting)
            self.octets -= octets_of(message, self._counts_properties)
            due.append((position, message))
        self._wake()
        return due

    def take_all(self) -> list[tuple[int, Message]]:
        """Remove all messages; return them with their positions."""
        taken = self.items()
        self._waiting.clear()
        self.octets = 0
        self._wake()
        return taken

    def items(self) -> list[tuple[int, Message]]:
        """Return positions and messages, in the order in which they become ready."""
        return [(position, message) for _, position, message in sorted(self._waiting, key=lambda one: one[:2])]

    @property
    def next_ms(self) -> int | None:
        """When the first message becomes ready (ms since the epoch); None without messages."""
        return self._waiting[0][0] if self._waiting else None

    @property
    def span_ms(self) -> tuple[int, int] | None:
        """When the first and the last message become ready (ms since the epoch); None without messages."""
        return (self._waiting[0][0], max(one[0] for one in self._waiting)) if self._waiting else None

    def stop(self) -> None:
        """The queue is deleted, and its messages are taken. Refer to it no longer, so that it is freed at once."""
        self._on_due = lambda: None

    def _wake(self) -> None:
        """Set the timer for the first message."""
        timer = self._timer
        is_set = timer is not None and timer.callback is not None
        if timer is not None and is_set:
            if self._waiting and timer.deadline_ms == self._waiting[0][0]:
                return
            timer.cancel()
        if self._waiting:
            self._timer = self._timers.at(self._waiting[0][0], self._run)

    def _run(self, now: int) -> None:
        self._on_due()
