"""The intervals of a report: the longer the trace, the longer they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

POINTS_MAX: Final = 120
SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
UNITS_MS: Final = {"d": DAY_MS, "h": HOUR_MS, "min": MINUTE_MS, "s": SECOND_MS, "ms": 1}
# Intervals begin at round times of day. A message may have any time up to the year 9999.
LENGTHS_MS: Final = (
    *(10, 20, 50, 100, 200, 500),
    *(count * SECOND_MS for count in (1, 2, 5, 10, 20, 30)),
    *(count * MINUTE_MS for count in (1, 2, 5, 10, 20, 30)),
    *(count * HOUR_MS for count in (1, 2, 6, 12)),
    *(count * DAY_MS for count in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(count * 1000 * DAY_MS for count in (1, 2, 5, 10, 20, 50)),
)


def interval_ms_of(traced_us: int) -> int:
    """Return the length of the shortest intervals of which POINTS_MAX are as long as the trace."""
    return next((length for length in LENGTHS_MS if length * 1000 * POINTS_MAX >= traced_us), LENGTHS_MS[-1])


@dataclass(frozen=True)
class TracedTime:
    """The time from the first to the last event of a vhost, in intervals."""

    interval_ms: int
    first_ms: float
    last_ms: float

    @property
    def starts(self) -> range:
        """The starts of the intervals."""
        first, last = (round(at_ms // self.interval_ms * self.interval_ms) for at_ms in (self.first_ms, self.last_ms))
        return range(first, last + self.interval_ms, self.interval_ms)

    @property
    def starts_of_rates(self) -> range:
        """The starts of the intervals that have rates of their own."""
        return range(
            self.counted_in(self.starts[0]), self.counted_in(self.starts[-1]) + self.interval_ms, self.interval_ms
        )

    def counted_in(self, start_ms: int) -> int:
        """Return the start of the interval in whose rate the events of an interval count.

        The first and last interval count in their neighbour if less than half of them was traced: some events in
        a moment are no high rate, and over a whole interval they would be too low a one.
        """
        first, last = self.starts[0], self.starts[-1]
        if start_ms == first < last and self._traced_ms(first) < self.interval_ms / 2:
            return first + self.interval_ms
        if start_ms == last > first and self._traced_ms(last) < self.interval_ms / 2:
            before = last - self.interval_ms
            return before if self.counted_in(before) == before else last
        return start_ms

    def counted_s(self, start_ms: int) -> float:
        """Return the seconds over which the rate of an interval is."""
        around = (start_ms - self.interval_ms, start_ms, start_ms + self.interval_ms)
        return sum(self._traced_ms(part) for part in around if self.counted_in(part) == start_ms) / 1000

    def _traced_ms(self, start_ms: int) -> float:
        return max(0, min(start_ms + self.interval_ms, self.last_ms) - max(start_ms, self.first_ms))


def interval_text(interval_ms: int) -> str:
    """Return a length with its largest unit."""
    unit, unit_ms = next((unit, unit_ms) for unit, unit_ms in UNITS_MS.items() if interval_ms >= unit_ms)
    return f"{interval_ms // unit_ms} {unit}"
