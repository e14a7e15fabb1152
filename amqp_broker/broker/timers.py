"""What is due when: one heap of deadlines. The shell sleeps until `next_deadline`, then calls `run_due`."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

# Below this many timers nobody counts the cancelled ones.
SWEEP_MIN: Final = 1024


class Timer:
    """A call that is due at `deadline_ms`; `callback` is None once it ran or was cancelled."""

    __slots__ = ("callback", "deadline_ms", "number")

    def __init__(self, deadline_ms: int, number: int, callback: Callable[[int], None]) -> None:
        self.deadline_ms = deadline_ms
        self.number = number
        self.callback: Callable[[int], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: Timer) -> bool:
        return (self.deadline_ms, self.number) < (other.deadline_ms, other.number)


class Timers:
    """Timers run in the order of their deadlines, equal ones in the order they were set."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._count = 0
        # How many timers there may be before the cancelled ones among them are thrown out.
        self._sweep_at = SWEEP_MIN
        # When to look at the timers next; one that was cancelled may make this too early, never too late.
        self.earliest_ms: int | None = None

    def at(self, deadline_ms: int, callback: Callable[[int], None]) -> Timer:
        """Have `callback(now)` called at `deadline_ms`."""
        self._count += 1
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        timer = Timer(deadline_ms, self._count, callback)
        heapq.heappush(self._heap, timer)
        self.earliest_ms = self._heap[0].deadline_ms
        return timer

    def _sweep(self) -> None:
        """Throw out what was cancelled: it must not stay until its deadline if ever new timers take its place."""
        self._heap = [timer for timer in self._heap if timer.callback is not None]
        heapq.heapify(self._heap)
        self._sweep_at = max(SWEEP_MIN, 2 * len(self._heap))

    def next_deadline(self) -> int | None:
        """When the next timer is due, in ms since the epoch; None if there is none."""
        heap = self._heap
        while heap and heap[0].callback is None:
            heapq.heappop(heap)
        self.earliest_ms = heap[0].deadline_ms if heap else None
        return self.earliest_ms

    def run_due(self, now: int) -> None:
        """Run what is due at `now`, also what that makes due."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            timer = heapq.heappop(self._heap)
            callback, timer.callback = timer.callback, None
            assert callback is not None
            callback(now)
