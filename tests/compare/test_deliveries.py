from __future__ import annotations

from typing import Any

from pamqp import commands

from tests.compare.test_channel_pair import consume, deliver
from tests.compare.three import Three, said

MISSING = "has not delivered this message"


def two() -> tuple[Three, Three]:
    """Two clients that consume from one queue."""
    first = Three().open()
    second = Three(first.state, number=2).open()
    for three in (first, second):
        consume(three)
    return first, second


def test_which_consumer_gets_a_message_is_not_compared() -> None:
    first, second = two()
    first.local(deliver(1, b"a"))
    second.local(deliver(1, b"b"))
    first.upstream(deliver(1, b"b"))
    second.upstream(deliver(1, b"a"))
    first.wait()
    assert first.found == []


def test_a_message_is_settled_on_its_local_channel() -> None:
    first, second = two()
    first.local(deliver(1, b"a"))
    second.local(deliver(5, b"b"))
    first.upstream(deliver(1, b"b"))
    second.upstream(deliver(1, b"a"))
    first.client(said(commands.Basic.Ack, delivery_tag=1))
    assert first.played() == []
    assert [ack.delivery_tag for ack in second.played()] == [5]


def test_each_client_settles_its_own_of_equal_messages() -> None:
    first, second = two()
    for three in (second, first):
        three.local(deliver(1))
        three.upstream(deliver(1))
    first.client(said(commands.Basic.Ack, delivery_tag=1))
    assert [ack.delivery_tag for ack in first.played()] == [1]


def test_a_message_that_the_local_broker_never_delivers_is_reported_once() -> None:
    first, _ = two()
    first.upstream(deliver(1))
    first.client(said(commands.Basic.Ack, delivery_tag=1))
    first.wait()
    first.wait()
    assert [local for _, local in first.found] == [MISSING]


def test_a_message_that_only_the_local_broker_delivers_is_reported() -> None:
    first, _ = two()
    first.local(deliver(1))
    first.wait(4999)
    first.upstream(deliver(1, b"other"))
    first.local(deliver(2, b"other"))
    first.wait(1)
    assert first.found == []
    first.wait()
    assert [upstream for upstream, _ in first.found] == [MISSING]


def test_local_deliveries_ahead_of_a_disconnect_are_not_a_difference() -> None:
    first, _ = two()
    first.local(deliver(1))
    first.connection.finish(first.now)
    first.wait()
    assert first.found == []


def test_a_slow_client_is_not_a_difference() -> None:
    first, _ = two()
    first.local(deliver(1))
    first.connection.is_held_up = True
    first.wait(60_000)
    assert first.found == []


def test_different_properties_are_a_difference() -> None:
    first, _ = two()
    first.local(deliver(1, priority=1))
    first.upstream(deliver(1, priority=2))
    first.wait()
    ((upstream, local),) = first.found
    assert "priority=2" in upstream
    assert "priority=1" in local


def test_the_order_of_equal_bodies_with_different_properties_is_not_compared() -> None:
    first, _ = two()
    first.local(deliver(1, priority=1), deliver(2, priority=2))
    first.upstream(deliver(1, priority=2), deliver(2, priority=1))
    first.wait()
    assert first.found == []


def test_messages_without_acks_are_compared() -> None:
    first = Three().open()
    consume(first, no_ack=True)
    first.local(*(deliver(tag) for tag in range(1, 101)))
    first.upstream(*(deliver(tag) for tag in range(1, 100)))
    first.wait()
    assert len(first.found) == 1
    assert first.deliveries._copies == {}


def test_the_number_of_redeliveries_is_not_compared() -> None:
    first, second = two()
    again: dict[str, Any] = {"delivery_tag": 1, "consumer_tag": "c", "routing_key": "q", "redelivered": True}
    for three in (first, second):
        three.local(deliver(1))
        three.upstream(deliver(1))
    second.upstream(said(commands.Basic.Deliver, body=b"m", **again))
    first.wait()
    assert first.found == []


def test_settled_messages_are_removed() -> None:
    first, _ = two()
    for tag in range(1, 50):
        first.local(deliver(tag, b"%d" % tag))
        first.upstream(deliver(tag, b"%d" % tag))
    first.client(said(commands.Basic.Ack, delivery_tag=0, multiple=True))
    assert first.deliveries._copies == {}
    assert first.connection.ahead_count == 0
