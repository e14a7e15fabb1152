from __future__ import annotations

import pytest

from amqp_broker.pipeline.intervals import LENGTHS_MS, POINTS_MAX, covered_s, interval_ms_of, interval_text

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US


@pytest.mark.parametrize(
    ("traced_us", "interval"),
    [
        (0, "100 ms"),
        (340_000, "100 ms"),
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
    ("start_ms", "seconds"),
    # A trace from 1.3 s to 3.9 s.
    [(1000, 0.7), (2000, 1.0), (3000, 0.9)],
)
def test_the_first_and_last_interval_count_as_far_as_the_trace_covers_them(start_ms: int, seconds: float) -> None:
    assert covered_s(start_ms, 1000, 1300, 3900) == pytest.approx(seconds)


def test_an_interval_counts_at_least_half() -> None:
    assert covered_s(1000, 1000, 1990, 1990) == 0.5
