"""The intervals of a report: the longer the trace, the longer they are."""

from __future__ import annotations

from typing import Final

POINTS_MAX: Final = 120
SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
UNITS_MS: Final = {"d": DAY_MS, "h": HOUR_MS, "min": MINUTE_MS, "s": SECOND_MS, "ms": 1}
# Intervals begin at round times of day. A message may have any time up to the year 9999.
LENGTHS_MS: Final = (
    *(100, 200, 500),
    *(count * SECOND_MS for count in (1, 2, 5, 10, 20, 30)),
    *(count * MINUTE_MS for count in (1, 2, 5, 10, 20, 30)),
    *(count * HOUR_MS for count in (1, 2, 6, 12)),
    *(count * DAY_MS for count in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(count * 1000 * DAY_MS for count in (1, 2, 5, 10, 20, 50)),
)


def interval_ms_of(traced_us: int) -> int:
    """Return the length of the shortest intervals of which POINTS_MAX are as long as the trace."""
    return next((length for length in LENGTHS_MS if length * 1000 * POINTS_MAX >= traced_us), LENGTHS_MS[-1])


def covered_s(start_ms: int, interval_ms: int, first_ms: float, last_ms: float) -> float:
    """Return the seconds of an interval in which the trace was on, from its first to its last event.

    It is at least half of the interval: a few events at the very beginning or end are no high rate.
    """
    covered_ms = min(start_ms + interval_ms, last_ms) - max(start_ms, first_ms)
    return max(covered_ms, interval_ms / 2) / 1000


def interval_text(interval_ms: int) -> str:
    """Return a length with its largest unit."""
    unit, unit_ms = next((unit, unit_ms) for unit, unit_ms in UNITS_MS.items() if interval_ms >= unit_ms)
    return f"{interval_ms // unit_ms} {unit}"
