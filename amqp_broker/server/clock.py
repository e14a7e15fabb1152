"""The one place where time is read. The rest of the broker is told what time it is."""

from __future__ import annotations

import time


class Clock:
    """Milliseconds since the epoch that never go back: the wall clock at the start, then the monotonic one.

    `advance`, `freeze` and `resume` move the broker's time and nobody else's.
    """

    def __init__(self) -> None:
        self._offset_ms = time.time_ns() // 1_000_000 - _monotonic_ms()
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

    def advance(self, duration_ms: int) -> None:
        """Move time forward. Raises ValueError for a negative duration: time never goes back."""
        if duration_ms < 0:
            raise ValueError(f"the clock cannot go back: {duration_ms} ms")
        if self._frozen_at_ms is not None:
            self._frozen_at_ms += duration_ms
        else:
            self._offset_ms += duration_ms

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
