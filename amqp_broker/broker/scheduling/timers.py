"""Timers: one heap of deadlines. The server sleeps until `next_deadline`, then calls `run_due`."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

# The last moment that clients, logs and dates can represent: the end of the year 9999.
LATEST_MS: Final = 253_402_300_799_999
# With fewer timers, cancelled ones are not swept.
SWEEP_MIN: Final = 1024
# Timers that run in one turn of the loop.
DUE_MAX: Final = 100


class Timer:
    """A call that is due at `deadline_ms`; `callback` is None after it has run or was cancelled."""

    __slots__ = ("callback", "deadline_ms", "number")

    def __init__(self, deadline_ms: int, number: int, callback: Callable[[int], None]) -> None:
        self.deadline_ms = deadline_ms
        self.number = number
        self.callback: Callable[[int], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: Timer) -> bool:
        return (self.deadline_ms, self.number) < (other.deadline_ms, other.number)


@mypyc_attr(allow_interpreted_subclasses=True)
class Timers:
    """A heap of timers. They run in the order of their deadlines, equal ones in the order they were set."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._count = 0
        # The number of timers at which cancelled ones are swept.
        self._sweep_at = SWEEP_MIN
        # When to check the timers next; a cancelled timer may make this too early, never too late.
        self.earliest_ms: int | None = None

    def at(self, deadline_ms: int, callback: Callable[[int], None]) -> Timer:
        """Set a timer: call `callback(now)` at `deadline_ms`."""
        self._count += 1
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        timer = Timer(deadline_ms, self._count, callback)
        heapq.heappush(self._heap, timer)
        self.earliest_ms = self._heap[0].deadline_ms
        return timer

    def _sweep(self) -> None:
        """Remove cancelled timers, which would pile up until their deadlines if each is replaced by a new one."""
        self._heap = [timer for timer in self._heap if timer.callback is not None]
        heapq.heapify(self._heap)
        self._sweep_at = max(SWEEP_MIN, 2 * len(self._heap))

    def next_deadline(self) -> int | None:
        """Return the deadline of the next timer (ms since the epoch), or None without timers."""
        heap = self._heap
        while heap and heap[0].callback is None:
            heapq.heappop(heap)
        self.earliest_ms = heap[0].deadline_ms if heap else None
        return self.earliest_ms

    def run_due(self, now: int) -> None:
        """Run the timers that are due at `now`, including those set meanwhile, but at most `DUE_MAX` of them.

        The rest stays due, so that others are served before.
        """
        for _ in range(DUE_MAX):
            deadline = self.next_deadline()
            if deadline is None or deadline > now:
                return
            timer = heapq.heappop(self._heap)
            callback, timer.callback = timer.callback, None
            assert callback is not None
            callback(now)
