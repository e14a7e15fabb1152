from __future__ import annotations

from amqp_broker.broker.scheduling.timers import DUE_MAX, SWEEP_MIN, Timers


class Record:
    """A list of timers that have run, as (name, now)."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.ran: list[tuple[str, int]] = []

    def at(self, deadline_ms: int, name: str) -> None:
        self.timers.at(deadline_ms, lambda now: self.ran.append((name, now)))


def test_without_timers_nothing_is_due() -> None:
    timers = Timers()
    assert timers.next_deadline() is None
    timers.run_due(1000)


def test_a_timer_runs_at_its_deadline_and_not_before() -> None:
    record = Record()
    record.at(100, "a")
    record.timers.run_due(99)
    assert record.ran == []
    record.timers.run_due(100)
    assert record.ran == [("a", 100)]


def test_a_timer_runs_once() -> None:
    record = Record()
    record.at(100, "a")
    record.timers.run_due(100)
    record.timers.run_due(200)
    assert record.ran == [("a", 100)]


def test_a_late_timer_gets_the_real_time() -> None:
    record = Record()
    record.at(100, "a")
    record.timers.run_due(5000)
    assert record.ran == [("a", 5000)]


def test_timers_run_in_the_order_of_their_deadlines() -> None:
    record = Record()
    for deadline in (30, 10, 20):
        record.at(deadline, str(deadline))
    record.timers.run_due(30)
    assert [name for name, _ in record.ran] == ["10", "20", "30"]


def test_timers_with_equal_deadlines_run_in_the_order_they_were_set() -> None:
    record = Record()
    for name in "abcdef":
        record.at(10, name)
    record.timers.run_due(10)
    assert [name for name, _ in record.ran] == list("abcdef")


def test_a_cancelled_timer_does_not_run() -> None:
    record = Record()
    timer = record.timers.at(10, lambda now: record.ran.append(("a", now)))
    record.at(20, "b")
    timer.cancel()
    record.timers.run_due(20)
    assert [name for name, _ in record.ran] == ["b"]


def test_cancelling_twice_or_late_does_nothing() -> None:
    record = Record()
    timer = record.timers.at(10, lambda now: record.ran.append(("a", now)))
    record.timers.run_due(10)
    timer.cancel()
    timer.cancel()
    assert record.ran == [("a", 10)]
    assert timer.callback is None


def test_the_next_deadline_is_that_of_the_first_live_timer() -> None:
    timers = Timers()
    first = timers.at(10, lambda now: None)
    timers.at(20, lambda now: None)
    assert timers.next_deadline() == 10
    first.cancel()
    assert timers.next_deadline() == 20


def test_the_earliest_time_may_be_too_early_but_never_too_late() -> None:
    timers = Timers()
    assert timers.earliest_ms is None
    late = timers.at(20, lambda now: None)
    assert timers.earliest_ms == 20
    early = timers.at(10, lambda now: None)
    assert timers.earliest_ms == 10
    early.cancel()
    assert timers.earliest_ms == 10
    timers.run_due(10)
    assert timers.earliest_ms == 20
    late.cancel()
    timers.run_due(10)
    assert timers.earliest_ms is None


def test_a_timer_may_set_one_that_is_due_at_once() -> None:
    record = Record()
    record.timers.at(10, lambda now: record.at(now, "second"))
    record.timers.run_due(10)
    assert record.ran == [("second", 10)]


def test_a_timer_may_set_itself_again() -> None:
    record = Record()

    def tick(now: int) -> None:
        record.ran.append(("tick", now))
        record.timers.at(now + 10, tick)

    record.timers.at(10, tick)
    for now in (10, 20, 25, 30):
        record.timers.run_due(now)
    assert record.ran == [("tick", 10), ("tick", 20), ("tick", 30)]


def test_a_timer_may_cancel_one_that_is_due_at_the_same_time() -> None:
    record = Record()
    record.timers.at(10, lambda now: victim.cancel())
    victim = record.timers.at(10, lambda now: record.ran.append(("victim", now)))
    record.timers.run_due(10)
    assert record.ran == []


def test_cancelled_timers_do_not_stay_until_their_deadline() -> None:
    timers = Timers()
    kept = [timers.at(10**9 + number, lambda now: None) for number in range(10)]
    for number in range(100_000):
        timers.at(10**8 - number, lambda now: None).cancel()
    assert len(timers._heap) <= SWEEP_MIN + 1
    assert timers.next_deadline() == kept[0].deadline_ms


def test_a_sweep_while_timers_run_loses_no_timer() -> None:
    record = Record()

    def set_many(now: int) -> None:
        for _ in range(2 * SWEEP_MIN):
            record.timers.at(500, lambda now: None).cancel()
        record.at(200, "after")

    record.at(300, "last")
    record.timers.at(100, set_many)
    record.timers.run_due(300)
    assert record.ran == [("after", 300), ("last", 300)]


def test_of_very_many_timers_that_are_due_some_run_and_the_others_stay_due() -> None:
    record = Record()
    for number in range(2 * DUE_MAX + 1):
        record.at(10, str(number))
    counts = []
    for _ in range(3):
        record.timers.run_due(10)
        counts.append(len(record.ran))
        assert record.timers.next_deadline() == (10 if len(counts) < 3 else None)
    assert counts == [DUE_MAX, 2 * DUE_MAX, 2 * DUE_MAX + 1]
    assert [name for name, _ in record.ran] == [str(number) for number in range(2 * DUE_MAX + 1)]
    assert record.timers.next_deadline() is None
