"""The one place where time is read. The rest of the broker is told what time it is."""

from __future__ import annotations

import time
from typing import Final

# The last moment that clients, logs and dates can tell: the end of the year 9999.
LATEST_MS: Final = 253_402_300_799_999


class Clock:
    """Milliseconds since the epoch that never go back: the wall clock at the start, then the monotonic one.

    `advance`, `move_to`, `freeze` and `resume` move the broker's time (`now`) and nobody else's (`real_now`).
    """

    def __init__(self) -> None:
        self._start_ms = time.time_ns() // 1_000_000 - _monotonic_ms()
        self._offset_ms = self._start_ms
        self._frozen_at_ms: int | None = None

    def now(self) -> int:
        if self._frozen_at_ms is not None:
            return self._frozen_at_ms
        return _monotonic_ms() + self._offset_ms

    def now_us(self) -> int:
        """The same time, in microseconds."""
        if self._frozen_at_ms is not None:
            return self._frozen_at_ms * 1000
        return time.monotonic_ns() // 1000 + self._offset_ms * 1000

    def real_now(self) -> int:
        """What `now` would be if nobody had moved it."""
        return _monotonic_ms() + self._start_ms

    @property
    def is_frozen(self) -> bool:
        return self._frozen_at_ms is not None

    def check(self, duration_ms: int) -> None:
        """Raise ValueError for a duration by which time cannot be moved."""
        if duration_ms < 0:
            raise ValueError(f"the clock cannot go back: {duration_ms} ms")
        if self.now() + duration_ms > LATEST_MS:
            raise ValueError(f"the clock cannot go beyond the year 9999: {duration_ms} ms")

    def advance(self, duration_ms: int) -> None:
        """Move time forward. Raises ValueError for a negative duration, since time never goes back, or a huge one."""
        self.check(duration_ms)
        if self._frozen_at_ms is not None:
            self._frozen_at_ms += duration_ms
        else:
            self._offset_ms += duration_ms

    def move_to(self, time_ms: int) -> None:
        """Let a frozen clock stand at another moment, if that is later."""
        assert self._frozen_at_ms is not None
        self._frozen_at_ms = max(self._frozen_at_ms, time_ms)

    def freeze(self) -> None:
        """Let time stand still until `resume`; it can still be advanced."""
        self._frozen_at_ms = self.now()

    def resume(self) -> None:
        """Let time run on from where it stands."""
        if self._frozen_at_ms is not None:
            self._offset_ms = self._frozen_at_ms - _monotonic_ms()
            self._frozen_at_ms = None


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
