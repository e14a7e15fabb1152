"""The clock in microseconds agrees with the clock in milliseconds."""

from __future__ import annotations

from amqp_broker.server.clock import Clock


def test_both_units_have_the_same_time() -> None:
    clock = Clock()
    before = clock.now()
    assert before <= clock.now_us() // 1000 <= clock.now()


def test_a_frozen_clock_stands_still_in_both_units() -> None:
    clock = Clock()
    clock.freeze()
    clock.advance(5)
    assert clock.now_us() == clock.now() * 1000


def test_an_advance_changes_both_units() -> None:
    clock = Clock()
    before = clock.now_us()
    clock.advance(60_000)
    assert clock.now_us() >= before + 60_000_000
