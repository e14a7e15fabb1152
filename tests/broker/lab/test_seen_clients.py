from __future__ import annotations

from amqp_broker.broker.lab.habits import RATE_MS
from amqp_broker.broker.lab.seen_clients import Rate


def test_a_rate_reaches_its_limit_within_a_minute_and_begins_again() -> None:
    rate = Rate()
    assert [rate.reaches(3, now) for now in (RATE_MS + 1, RATE_MS + 2, 2 * RATE_MS)] == [False, False, True]
    assert [rate.reaches(3, 2 * RATE_MS) for _ in range(3)] == [False, False, True]


def test_a_rate_that_is_too_slow_begins_again() -> None:
    rate = Rate()
    assert [rate.reaches(2, number * (RATE_MS + 1)) for number in range(1, 5)] == [False] * 4
