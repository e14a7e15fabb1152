"""The only module that reads the time. All others get it as an argument."""

from __future__ import annotations

import time

from amqp_broker.broker.scheduling.timers import LATEST_MS


class Clock:
    """Milliseconds since the epoch that never go back: wall clock at the start, then monotonic clock.

    `advance`, `move_to`, `freeze` and `resume` change the broker's time (`now`), but not the real time (`real_now`).
    """

    def __init__(self) -> None:
        self._start_ms = time.time_ns() // 1_000_000 - _monotonic_ms()
        self._offset_ms = self._start_ms
        self._frozen_at_ms: int | None = None

    def now(self) -> int:
        """Return the broker's time."""
        if self._frozen_at_ms is not None:
            return self._frozen_at_ms
        return _monotonic_ms() + self._offset_ms

    def now_us(self) -> int:
        """Return `now` in microseconds."""
        if self._frozen_at_ms is not None:
            return self._frozen_at_ms * 1000
        return time.monotonic_ns() // 1000 + self._offset_ms * 1000

    def real_now(self) -> int:
        """Return the real time: `now` without freezes and advances."""
        return _monotonic_ms() + self._start_ms

    def offset(self) -> int:
        """Return `now` minus `real_now` as of one moment: two readings may have a millisecond between them."""
        if self._frozen_at_ms is not None:
            return self._frozen_at_ms - self.real_now()
        return self._offset_ms - self._start_ms

    @property
    def is_frozen(self) -> bool:
        return self._frozen_at_ms is not None

    def check(self, duration_ms: int) -> None:
        """Raise ValueError for a duration by which the clock cannot be advanced."""
        if duration_ms < 0:
            raise ValueError(f"the clock cannot go back: {duration_ms} ms")
        if self.now() + duration_ms > LATEST_MS:
            raise ValueError(f"the clock cannot go beyond the year 9999: {duration_ms} ms")

    def advance(self, duration_ms: int) -> None:
        """Advance the clock. Raise ValueError for a negative duration, or one beyond the year 9999."""
        self.check(duration_ms)
        if self._frozen_at_ms is not None:
            self._frozen_at_ms += duration_ms
        else:
            self._offset_ms += duration_ms

    def move_to(self, time_ms: int) -> None:
        """Set a frozen clock to `time_ms`, if that is later."""
        assert self._frozen_at_ms is not None
        self._frozen_at_ms = max(self._frozen_at_ms, time_ms)

    def freeze(self) -> None:
        """Freeze the clock until `resume`; it can still be advanced."""
        self._frozen_at_ms = self.now()

    def resume(self) -> None:
        """Let the clock run on from the frozen time."""
        if self._frozen_at_ms is not None:
            self._offset_ms = self._frozen_at_ms - _monotonic_ms()
            self._frozen_at_ms = None


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
