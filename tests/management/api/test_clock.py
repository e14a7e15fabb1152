from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.server.clock import Clock
from tests.management.asking import NOW, Desk, StillNode


class Timed(StillNode):
    """A node whose clock moves, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.clock.freeze()
        self.clock._frozen_at_ms = NOW

    def now(self) -> int:
        return self.clock.now()

    def is_frozen(self) -> bool:
        return self.clock.is_frozen

    def freeze(self) -> None:
        self.clock.freeze()

    def resume(self) -> None:
        self.clock.resume()

    def advance(self, duration_ms: int) -> None:
        self.clock.check(duration_ms)
        self.clock.advance(duration_ms)


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.node = Timed()
    return desk


def test_the_clock_has_the_time_of_the_broker_and_the_real_time(desk: Desk) -> None:
    expected = {"now_ms": NOW, "real_now_ms": NOW, "offset_ms": 0, "is_frozen": True}
    assert desk.get("/_broker/clock") == (200, expected)


@pytest.mark.parametrize("given", [{"ms": 1_800_000}, {"duration": "30m"}, {"duration": "0h29m60s"}])
def test_time_is_advanced_by_milliseconds_or_a_duration(desk: Desk, given: Any) -> None:
    status, told = desk.ask("POST", "/_broker/clock/advance", given)
    assert (status, told["now_ms"], told["offset_ms"]) == (200, NOW + 1_800_000, 1_800_000)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, 'either "ms" (a number) or "duration"'),
        ({"ms": 1, "duration": "1s"}, 'either "ms"'),
        ({"ms": 1, "x": 1}, "unknown fields: x"),
        ({"ms": "1"}, "ms must be a whole number"),
        ({"ms": 1.5}, "ms must be a whole number"),
        ({"ms": True}, "ms must be a whole number"),
        ({"ms": -1}, "the clock cannot go back: -1 ms"),
        ({"ms": 10**18}, "the clock cannot go beyond the year 9999"),
        ({"duration": 5}, "duration must be a string"),
        ({"duration": "-5m"}, "'-5m' is not a duration"),
        ({"duration": "5"}, "'5' is not a duration"),
        ({"duration": "5 m"}, "'5 m' is not a duration"),
        ({"duration": "999999999999999d"}, "the clock cannot go beyond the year 9999"),
    ],
)
def test_an_invalid_duration_is_refused_with_a_reason(desk: Desk, given: Any, reason: str) -> None:
    status, told = desk.ask("POST", "/_broker/clock/advance", given)
    assert status == 400
    assert reason in told
    assert desk.get("/_broker/clock")[1]["now_ms"] == NOW


def test_time_is_frozen_and_resumed(desk: Desk) -> None:
    assert desk.ask("POST", "/_broker/clock/resume")[1]["is_frozen"] is False
    assert desk.ask("POST", "/_broker/clock/freeze")[1]["is_frozen"] is True
    assert desk.ask("POST", "/_broker/clock/freeze", {"ms": 5}) == (400, "unknown fields: ms")
    assert desk.ask("POST", "/_broker/clock/resume", {"ms": 5}) == (400, "unknown fields: ms")


def test_moving_the_clock_requires_an_administrator(desk: Desk) -> None:
    desk.be("monitoring")
    assert desk.get("/_broker/clock")[0] == 200
    assert desk.ask("POST", "/_broker/clock/freeze")[0] == 401
