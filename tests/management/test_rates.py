from __future__ import annotations

import gc
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.broker import BATCH_STEPS
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.management.rates import FORGET_MS, INTERVAL_MS, KEEP_MS, Range, Rates
from tests.broker_parts import new_queue
from tests.peer import Lab


class Page:
    """A page that shows the statistics of one queue, whose counters the test sets."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.queue: Queue = new_queue(self.lab.vhost)
        self.counts = {"publish": 0}
        self.rates = Rates(self.lab.broker)
        self.rates.start()
        self.lab.broker.now = self.lab.now

    def read(self, queue: Queue) -> dict[str, int]:
        return dict(self.counts)

    def ask(self, span: Range | None = None) -> dict[str, Any]:
        self.lab.broker.now = self.lab.now
        return self.rates.stats(self.queue, "stats", self.read, span)

    def rate(self) -> float:
        return float(self.ask()["publish_details"]["rate"])

    def publish_each_second(self, duration_s: int, count: int) -> None:
        for _ in range(duration_s):
            self.lab.advance(1000)
            self.counts["publish"] += count


@pytest.fixture
def page() -> Page:
    return Page()


def test_the_first_request_gets_the_counters_and_a_rate_of_zero(page: Page) -> None:
    page.counts = {"publish": 7, "ack": 0}
    assert page.ask() == {
        "publish": 7,
        "publish_details": {"rate": 0.0},
        "ack": 0,
        "ack_details": {"rate": 0.0},
    }


def test_a_rate_covers_the_last_five_seconds(page: Page) -> None:
    page.ask()
    page.publish_each_second(60, 10)
    # Events in the second of a sample may fall on either side.
    assert page.rate() == pytest.approx(10, abs=2)
    page.lab.advance(5000)
    assert page.rate() == pytest.approx(0, abs=2)
    page.lab.advance(5000)
    assert page.rate() == 0.0


def test_a_rate_within_five_seconds_of_the_first_request_covers_the_time_since(page: Page) -> None:
    page.ask()
    page.publish_each_second(2, 10)
    assert page.rate() == 10.0


def test_a_burst_after_a_long_pause_is_not_spread_over_the_pause(page: Page) -> None:
    page.ask()
    page.lab.advance(FORGET_MS // 2)
    page.counts["publish"] = 500
    assert page.rate() == 100.0


def test_samples_are_newest_first_at_multiples_of_their_interval(page: Page) -> None:
    page.ask(Range(60_000, 5_000))
    page.publish_each_second(30, 10)
    details = page.ask(Range(60_000, 5_000))["publish_details"]
    samples = details["samples"]
    assert len(samples) == 13
    assert samples[0]["timestamp"] == page.lab.now - page.lab.now % 5000
    assert {newer["timestamp"] - older["timestamp"] for newer, older in pairwise(samples)} == {5000}
    values = [sample["sample"] for sample in samples]
    assert values == sorted(values, reverse=True)
    assert (values[0], values[-1]) == (pytest.approx(300, abs=60), 0)
    assert details["avg"] == sum(values) / 13
    assert details["avg_rate"] == values[0] / 60


def test_a_history_without_requests_is_shortened_and_finally_dropped(page: Page) -> None:
    page.ask()
    page.publish_each_second(60, 1)
    history = page.rates._histories[page.queue]["stats"]
    assert len(history._times) <= KEEP_MS // INTERVAL_MS + 2
    page.lab.advance(FORGET_MS)
    assert not page.rates._histories


def test_kept_samples_are_available_to_the_first_request(page: Page) -> None:
    page.rates.keep(page.queue, "stats", page.read)
    page.publish_each_second(FORGET_MS // 1000 + 60, 1)
    samples = page.ask(Range(FORGET_MS, 60_000))["publish_details"]["samples"]
    assert samples[0]["sample"] - samples[-1]["sample"] == pytest.approx(FORGET_MS / 1000, abs=5)


def test_unchanged_counters_take_no_memory(page: Page) -> None:
    page.rates.keep(page.queue, "stats", page.read)
    page.lab.advance(1_000_000)
    assert len(page.rates._histories[page.queue]["stats"]._times) == 1


def test_a_history_is_dropped_with_its_object(page: Page) -> None:
    page.ask()
    page.lab.vhost.remove_queue(page.queue)
    del page.queue
    gc.collect()
    assert not page.rates._histories


def test_many_counters_are_sampled_in_batches() -> None:
    lab = Lab()
    rates, seen = Rates(lab.broker), Counter[str]()

    def read(queue: Queue) -> dict[str, int]:
        seen[queue.name] += 1
        return {"publish": 1}

    for number in range(3 * BATCH_STEPS):
        queue = new_queue(lab.vhost, f"q{number}")
        rates.stats(queue, "stats", read)
    rates.start()
    lab.broker.real_timers.run_due(lab.broker.real_now() + INTERVAL_MS)
    batches = 1
    while lab.broker.drain_on():
        # A queue that is deleted meanwhile changes nothing.
        lab.vhost.remove_queue(lab.vhost.queues[f"q{batches}"])
        batches += 1
    assert batches >= 3
    assert set(seen.values()) == {2}
    lab.broker.real_timers.run_due(lab.broker.real_now() + 2 * INTERVAL_MS)
    assert max(seen.values()) == 3


def test_an_interval_that_has_not_ended_is_not_begun_again(page: Page) -> None:
    for number in range(BATCH_STEPS):
        page.rates.stats(new_queue(page.lab.vhost, f"q{number}"), "stats", page.read)
    for number in range(1, 4):
        page.lab.broker.real_timers.run_due(page.lab.now + number * INTERVAL_MS)
    assert len(page.lab.broker.undrained) == 1


def test_counters_are_not_sampled_after_the_stop(page: Page) -> None:
    page.ask()
    page.rates.stop()
    assert page.lab.broker.timers.next_deadline() is None


def test_a_query_without_a_range_gets_no_samples() -> None:
    assert Range.of({}, "lengths") is None
    assert Range.of({"lengths_age": "60"}, "lengths") is None
    assert Range.of({"lengths_age": "60", "lengths_incr": "5"}, "msg_rates") is None
    assert Range.of({"lengths_age": "60", "lengths_incr": "5"}, "lengths") == Range(60_000, 5_000)


@pytest.mark.parametrize(("age", "step"), [("x", "5"), ("60", "0"), ("-60", "5"), ("60", "1.5"), ("²", "1"), ("", "")])
def test_an_invalid_range_is_refused(age: str, step: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid range"):
        Range.of({"lengths_age": age, "lengths_incr": step}, "lengths")


def test_a_range_of_too_many_samples_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="more than 1000 samples"):
        Range.of({"data_rates_age": "1001", "data_rates_incr": "1"}, "data_rates")
