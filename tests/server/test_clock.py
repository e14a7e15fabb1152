from __future__ import annotations

import time

import pytest

from amqp_broker.server.clock import Clock

HOUR_MS = 3_600_000
# Longest time between two readings of a clock on a busy machine.
MOMENT_MS = 60_000


def test_a_clock_has_the_time_of_the_system() -> None:
    before = time.time_ns() // 1_000_000
    assert before - 1 <= Clock().now() <= before + MOMENT_MS


def test_time_never_goes_back() -> None:
    clock = Clock()
    seen = [clock.now() for _ in range(10_000)]
    assert seen == sorted(seen)


def test_time_runs() -> None:
    clock = Clock()
    start = clock.now()
    time.sleep(0.002)
    assert clock.now() > start


def test_advancing_moves_time_forward() -> None:
    clock = Clock()
    start = clock.now()
    clock.advance(HOUR_MS)
    assert start + HOUR_MS <= clock.now() <= start + HOUR_MS + MOMENT_MS


def test_advancing_by_0_is_allowed() -> None:
    clock = Clock()
    clock.freeze()
    start = clock.now()
    clock.advance(0)
    assert clock.now() == start


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_negative_advance_is_refused(is_frozen: bool) -> None:
    clock = Clock()
    if is_frozen:
        clock.freeze()
    start = clock.now()
    with pytest.raises(ValueError, match="the clock cannot go back: -1 ms"):
        clock.advance(-1)
    assert clock.now() >= start


def test_a_frozen_clock_stands_still() -> None:
    clock = Clock()
    clock.freeze()
    start = clock.now()
    time.sleep(0.002)
    assert clock.now() == start


def test_a_frozen_clock_advances_exactly() -> None:
    clock = Clock()
    clock.freeze()
    start = clock.now()
    clock.advance(1)
    clock.advance(HOUR_MS)
    assert clock.now() == start + 1 + HOUR_MS


def test_freezing_twice_changes_nothing() -> None:
    clock = Clock()
    clock.freeze()
    start = clock.now()
    time.sleep(0.002)
    clock.freeze()
    assert clock.now() == start


def test_a_resumed_clock_continues_from_the_frozen_time() -> None:
    clock = Clock()
    clock.advance(HOUR_MS)
    clock.freeze()
    clock.advance(HOUR_MS)
    stood_at = clock.now()
    time.sleep(0.002)
    clock.resume()
    assert stood_at <= clock.now() <= stood_at + MOMENT_MS
    time.sleep(0.002)
    assert clock.now() > stood_at


def test_resuming_a_running_clock_changes_nothing() -> None:
    clock = Clock()
    start = clock.now()
    clock.resume()
    assert start <= clock.now() <= start + MOMENT_MS


def test_clocks_are_independent() -> None:
    one, other = Clock(), Clock()
    one.advance(HOUR_MS)
    assert one.now() - other.now() >= HOUR_MS - MOMENT_MS


def test_the_offset_of_a_running_clock_is_exactly_what_it_was_advanced_by() -> None:
    clock = Clock()
    offsets = set()
    for _ in range(10_000):  # long enough for readings that a millisecond lies between
        clock.advance(1)
        offsets.add(clock.offset())
    assert offsets == set(range(1, 10_001))


def test_the_offset_of_a_frozen_clock_falls_as_the_real_time_passes() -> None:
    clock = Clock()
    clock.freeze()
    clock.advance(HOUR_MS)
    assert HOUR_MS - MOMENT_MS < clock.offset() <= HOUR_MS
    time.sleep(0.002)
    assert clock.offset() < HOUR_MS
