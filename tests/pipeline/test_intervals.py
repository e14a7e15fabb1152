from __future__ import annotations

import pytest

from amqp_broker.pipeline.intervals import LENGTHS_MS, POINTS_MAX, TracedTime, interval_ms_of, interval_text

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US


@pytest.mark.parametrize(
    ("traced_us", "interval"),
    [
        (0, "10 ms"),
        (340_000, "10 ms"),
        (12 * SECOND_US, "100 ms"),
        (12 * SECOND_US + 1, "200 ms"),
        (60 * SECOND_US, "500 ms"),
        (10 * 60 * SECOND_US, "5 s"),
        (3600 * SECOND_US, "30 s"),
        (DAY_US, "20 min"),
        (7 * DAY_US, "2 h"),
        (365 * DAY_US, "5 d"),
        (9999 * 365 * DAY_US, "50000 d"),
    ],
)
def test_a_longer_trace_has_longer_intervals(traced_us: int, interval: str) -> None:
    assert interval_text(interval_ms_of(traced_us)) == interval
    assert traced_us / 1000 / interval_ms_of(traced_us) <= POINTS_MAX


def test_intervals_begin_at_round_times_of_day() -> None:
    assert list(LENGTHS_MS) == sorted(LENGTHS_MS)
    assert all(DAY_US // 1000 % length == 0 or length * 1000 % DAY_US == 0 for length in LENGTHS_MS)


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "seconds"),
    [
        (1300, 3900, {1000: 0.7, 2000: 1.0, 3000: 0.9}),
        # Less than half of the first and last interval was traced: their events count in the neighbours.
        (1900, 5100, {2000: 1.1, 3000: 1.0, 4000: 1.1}),
        (1900, 3100, {2000: 1.2}),
        (1900, 2100, {2000: 0.2}),
        (1900, 2700, {2000: 0.8}),
        (1200, 2100, {1000: 0.9}),
        # A trace within an interval.
        (1100, 1200, {1000: 0.1}),
        (1100, 1100, {1000: 0.0}),
    ],
)
def test_rates_are_over_the_time_that_was_traced(first_ms: int, last_ms: int, seconds: dict[int, float]) -> None:
    traced = TracedTime(1000, first_ms, last_ms)
    places = {traced.counted_in(start_ms) for start_ms in traced.starts}
    assert set(traced.starts_of_rates) == places
    assert {place: traced.counted_s(place) for place in places} == pytest.approx(seconds)
