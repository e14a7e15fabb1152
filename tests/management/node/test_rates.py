from __future__ import annotations

import gc
import runpy
import weakref
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.broker import PORTION_STEPS
from amqp_broker.broker.counting.counters import Counters
from amqp_broker.management.node.rates import INTERVAL_MS, Range, Rates
from tests.broker_parts import new_queue
from tests.management.asking import Desk
from tests.peer import Lab

ROOT = Path(__file__).parents[3]


class Node:
    """A broker whose statistics are sampled, and that publishes as the test says."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.lab.broker.now = self.lab.now
        self.counts = self.lab.broker.counters
        self.rates = Rates(self.lab.broker)
        self.rates.start()

    def advance(self, duration_ms: int) -> None:
        self.lab.advance(duration_ms)
        self.lab.broker.now = self.lab.now

    def publish(self, count: int) -> None:
        self.counts.publishes.publish += count

    def ask(self, span: Range | None = None) -> dict[str, Any]:
        return self.rates.stats(self.counts, {"publish": self.counts.publishes.publish}, span)

    def rate(self) -> float:
        return float(self.ask()["publish_details"]["rate"])

    def publish_each_second(self, duration_s: int, count: int) -> None:
        for _ in range(duration_s):
            self.advance(1000)
            self.publish(count)


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_busy_object_has_its_rate_at_the_first_look(node: Node) -> None:
    node.publish_each_second(60, 10)
    # Events in the second of a sample may fall on either side.
    assert node.rate() == pytest.approx(10, abs=2)
    node.advance(5000)
    assert node.rate() == pytest.approx(0, abs=2)
    node.advance(5000)
    assert node.rate() == 0.0


def test_a_busy_object_has_its_past_at_the_first_look(node: Node) -> None:
    node.advance(360_000 - node.lab.now % 60_000)
    node.publish_each_second(300, 10)
    samples = node.ask(Range(600_000, 60_000))["publish_details"]["samples"]
    assert [sample["sample"] for sample in samples] == [
        pytest.approx(count, abs=60) for count in (3000, 2400, 1800, 1200, 600, 0, 0, 0, 0, 0, 0)
    ]


def test_a_look_changes_nothing(node: Node) -> None:
    other = Node()
    for _ in range(40):
        for each in (node, other):
            each.publish_each_second(1, 7)
        node.ask(Range(60_000, 1000))
    assert node.ask(Range(60_000, 1000)) == other.ask(Range(60_000, 1000))


def test_the_first_look_at_the_start_gets_the_counters_and_a_rate_of_zero(node: Node) -> None:
    counts = {"publish": 7, "ack": 0}
    row = {"publish": 7, "publish_details": {"rate": 0.0}, "ack": 0, "ack_details": {"rate": 0.0}}
    assert node.rates.stats(Counters(), counts) == row


def test_a_rate_within_five_seconds_of_the_start_covers_the_time_since(node: Node) -> None:
    node.publish_each_second(2, 10)
    assert node.rate() == 10.0


def test_a_burst_after_a_long_pause_is_not_spread_over_the_pause(node: Node) -> None:
    node.publish(1)
    node.advance(600_000)
    node.publish(500)
    assert node.rate() == 100.0


def test_samples_are_newest_first_at_multiples_of_their_interval(node: Node) -> None:
    node.publish_each_second(30, 10)
    details = node.ask(Range(60_000, 5_000))["publish_details"]
    samples = details["samples"]
    assert len(samples) == 13
    assert samples[0]["timestamp"] == node.lab.now - node.lab.now % 5000
    assert {newer["timestamp"] - older["timestamp"] for newer, older in pairwise(samples)} == {5000}
    values = [sample["sample"] for sample in samples]
    assert values == sorted(values, reverse=True)
    assert (values[0], values[-1]) == (pytest.approx(300, abs=60), 0)
    assert details["avg"] == sum(values) / 13
    assert details["avg_rate"] == values[0] / 60


def test_every_object_is_sampled() -> None:
    desk = Desk()
    desk.node.rates.start()
    peer = desk.lab.connect()
    peer.declare("q")
    peer.publish("q")
    peer.publish("q", exchange="amq.fanout")
    peer.consume("q", "c")
    desk.lab.advance(INTERVAL_MS)
    (connection,) = desk.broker.connections
    holders = [
        desk.broker.counters,
        desk.lab.vhost.counts,
        desk.lab.vhost.queues["q"].statistics,
        desk.lab.vhost.exchanges["amq.fanout"],
        connection,
        connection.channels[1].counts,
        connection.channels[1].consumers["c"],
    ]
    assert all(holder.history for holder in holders)
    assert desk.lab.vhost.exchanges["amq.topic"].history is None


def test_many_objects_are_sampled_in_batches(node: Node) -> None:
    queues = [new_queue(node.lab.vhost, f"q{number}") for number in range(3 * PORTION_STEPS)]
    for queue in queues:
        queue.statistics.published += 1
        queue.note_change()
    node.lab.broker.real_timers.run_due(node.lab.now + INTERVAL_MS)
    batches = 1
    while node.lab.broker.drain_on():
        # A queue that is deleted meanwhile changes nothing.
        node.lab.vhost.remove_queue(queues.pop())
        batches += 1
    assert batches >= 3
    assert all(queue.statistics.history for queue in queues)


def test_an_interval_that_has_not_ended_is_not_begun_again(node: Node) -> None:
    for number in range(PORTION_STEPS):
        new_queue(node.lab.vhost, f"q{number}").note_change()
    for number in range(1, 4):
        node.lab.broker.real_timers.run_due(node.lab.now + number * INTERVAL_MS)
    assert len(node.lab.broker.undrained) == 1


def test_counters_are_not_sampled_after_the_stop(node: Node) -> None:
    node.rates.start()
    node.rates.stop()
    assert node.lab.broker.timers.next_deadline() is None


def test_queues_without_changes_are_not_sampled(node: Node) -> None:
    queue = new_queue(node.lab.vhost)
    queue.note_change()
    node.advance(INTERVAL_MS)
    queue.statistics.published += 1
    node.advance(INTERVAL_MS)
    assert queue.statistics.history is None
    queue.note_change()
    node.advance(INTERVAL_MS)
    assert queue.statistics.history is not None


def test_nothing_refers_weakly_to_objects_of_compiled_modules() -> None:
    """Their references are not cleared, and what they refer to is lost memory."""
    desk = Desk()
    desk.node.rates.start()
    peer = desk.lab.connect()
    for number in range(10):
        peer.declare(f"q{number}", **({"arguments": {"x-queue-type": "quorum"}, "durable": True} if number % 2 else {}))
        peer.publish(f"q{number}")
    for _ in range(3):
        desk.lab.advance(INTERVAL_MS)
        for path in ("queues", "exchanges", "vhosts", "connections", "channels", "overview"):
            assert desk.get(f"/api/{path}", msg_rates_age="60", msg_rates_incr="5")[0] == 200
    compiled = runpy.run_path(str(ROOT / "setup.py"))["compiled_files"]()
    modules = {name.removesuffix(".py").replace("/", ".") for name in compiled}
    found = [one() for one in gc.get_objects() if isinstance(one, weakref.ReferenceType)]
    assert {type(one).__name__ for one in found if type(one).__module__ in modules} == set()


def test_a_query_without_a_range_gets_no_samples() -> None:
    assert Range.of({}, "lengths") is None
    assert Range.of({"lengths_age": "60"}, "lengths") is None
    assert Range.of({"lengths_age": "60", "lengths_incr": "5"}, "msg_rates") is None
    assert Range.of({"lengths_age": "60", "lengths_incr": "5"}, "lengths") == Range(60_000, 5_000)


@pytest.mark.parametrize(
    ("age", "step"), [("x", "5"), ("60", "0"), ("-60", "5"), ("60", "1.5"), ("²", "1"), ("", ""), ("9" * 5000, "5")]
)
def test_an_invalid_range_is_refused(age: str, step: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid range"):
        Range.of({"lengths_age": age, "lengths_incr": step}, "lengths")


def test_a_range_of_too_many_samples_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="more than 1000 samples"):
        Range.of({"data_rates_age": "1001", "data_rates_incr": "1"}, "data_rates")
