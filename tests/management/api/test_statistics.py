from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis.strategies import integers

from amqp_broker.management.api.statistics import iso_time, with_details
from tests.management.asking import Desk


def test_each_number_has_its_details() -> None:
    assert with_details({"publish": 3}) == {"publish": 3, "publish_details": {"rate": 0.0}}


@given(integers(0, 250_000_000_000_000))
@example(1_700_000_000_165)
@example(951_782_400_000)
def test_times_are_written_as_in_rabbitmq(at_ms: int) -> None:
    told = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    assert iso_time(at_ms) == told.isoformat(timespec="milliseconds")


def test_rates_are_those_of_the_last_seconds() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.declare("q")
    path = "/api/queues/%2F/q"
    desk.get(path)
    for _ in range(50):
        peer.publish("q")
    desk.lab.advance(5000)
    desk.broker.now = desk.lab.now
    assert desk.get(path)[1]["message_stats"]["publish_details"]["rate"] == 10.0
    assert desk.get(path)[1]["messages_details"]["rate"] == 10.0
    asked = desk.get("/api/overview", msg_rates_age="10", msg_rates_incr="5")[1]
    assert len(asked["message_stats"]["publish_details"]["samples"]) == 3


def test_invalid_ranges_of_samples_are_refused() -> None:
    assert Desk().get("/api/overview", lengths_age="10", lengths_incr="0")[0] == 400
