"""Deadlines of unsettled deliveries, where a queue or consumer has set a timeout."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.broker.timers import Timer, Timers

# With fewer deadlines, those of settled deliveries are not swept.
SWEEP_MIN: Final = 64


class DeliveryDeadlines:
    """The deadlines of one channel, and the timer for the first; `on_due` gets the tags that are still unacked then."""

    __slots__ = ("_heap", "_on_due", "_sweep_at", "_timer", "_timers", "_unacked")

    def __init__(self, timers: Timers, unacked: Container[int], on_due: Callable[[list[int]], None]) -> None:
        self._timers = timers
        self._unacked = unacked
        self._on_due = on_due
        self._timer: Timer | None = None
        # Deadline (ms since the epoch) and delivery tag.
        self._heap: list[tuple[int, int]] = []
        self._sweep_at = SWEEP_MIN

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, tag: int, deadline_ms: int) -> None:
        """Set the deadline of a delivery."""
        if len(self._heap) >= self._sweep_at:
            self._heap = [one for one in self._heap if one[1] in self._unacked]
            heapq.heapify(self._heap)
            self._sweep_at = max(SWEEP_MIN, 2 * len(self._heap))
        heapq.heappush(self._heap, (deadline_ms, tag))
        self._wake()

    def _wake(self) -> None:
        timer, heap = self._timer, self._heap
        if timer is not None and timer.callback is not None:
            if heap and timer.deadline_ms <= heap[0][0]:
                return
            timer.cancel()
        if heap:
            self._timer = self._timers.at(heap[0][0], self._check)

    def _check(self, now: int) -> None:
        heap, due = self._heap, []
        while heap and (heap[0][0] <= now or heap[0][1] not in self._unacked):
            _, tag = heapq.heappop(heap)
            if tag in self._unacked:
                due.append(tag)
        self._wake()
        if due:
            self._on_due(due)

    def stop(self) -> None:
        """Cancel the timer; the channel is closed."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
