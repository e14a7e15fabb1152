from __future__ import annotations

from typing import Any

from pamqp import commands

from tests.compare.test_channel import consume, deliver
from tests.compare.three import Three, said

MISSING = "has not delivered this message"


def two() -> tuple[Three, Three]:
    """Two clients of one queue."""
    first = Three().open()
    second = Three(first.book, number=2).open()
    for three in (first, second):
        consume(three)
    return first, second


def test_who_gets_a_message_of_a_shared_queue_is_no_difference() -> None:
    first, second = two()
    first.ours(deliver(1, b"a"))
    second.ours(deliver(1, b"b"))
    first.upstream(deliver(1, b"b"))
    second.upstream(deliver(1, b"a"))
    first.wait()
    assert first.found == []


def test_a_message_is_settled_where_ours_has_delivered_it() -> None:
    first, second = two()
    first.ours(deliver(1, b"a"))
    second.ours(deliver(5, b"b"))
    first.upstream(deliver(1, b"b"))
    second.upstream(deliver(1, b"a"))
    first.client(said(commands.Basic.Ack, delivery_tag=1))
    assert first.played() == []
    assert [ack.delivery_tag for ack in second.played()] == [5]


def test_of_equal_messages_each_client_settles_its_own() -> None:
    first, second = two()
    for three in (second, first):
        three.ours(deliver(1))
        three.upstream(deliver(1))
    first.client(said(commands.Basic.Ack, delivery_tag=1))
    assert [ack.delivery_tag for ack in first.played()] == [1]


def test_a_message_that_ours_never_delivers_is_told_once_also_if_it_is_acked() -> None:
    first, _ = two()
    first.upstream(deliver(1))
    first.client(said(commands.Basic.Ack, delivery_tag=1))
    first.wait()
    first.wait()
    assert [ours for _, ours in first.found] == [MISSING]


def test_a_message_that_only_ours_delivers_is_told_once_the_upstream_is_quiet() -> None:
    first, _ = two()
    first.ours(deliver(1))
    first.wait(4999)
    first.upstream(deliver(1, b"other"))
    first.ours(deliver(2, b"other"))
    first.wait(1)
    assert first.found == []
    first.wait()
    assert [upstream for upstream, _ in first.found] == [MISSING]


def test_what_ours_is_ahead_with_when_a_client_leaves_is_no_difference() -> None:
    first, _ = two()
    first.ours(deliver(1))
    first.connection.finish(first.now)
    first.wait()
    assert first.found == []


def test_a_client_that_reads_slowly_is_no_difference() -> None:
    first, _ = two()
    first.ours(deliver(1))
    first.connection.is_held_up = True
    first.wait(60_000)
    assert first.found == []


def test_other_properties_are_a_difference() -> None:
    first, _ = two()
    first.ours(deliver(1, priority=1))
    first.upstream(deliver(1, priority=2))
    first.wait()
    ((upstream, ours),) = first.found
    assert "priority=2" in upstream
    assert "priority=1" in ours


def test_equal_bodies_with_other_properties_in_another_order_are_no_difference() -> None:
    first, _ = two()
    first.ours(deliver(1, priority=1), deliver(2, priority=2))
    first.upstream(deliver(1, priority=2), deliver(2, priority=1))
    first.wait()
    assert first.found == []


def test_messages_without_acks_are_counted() -> None:
    first = Three().open()
    consume(first, no_ack=True)
    first.ours(*(deliver(tag) for tag in range(1, 101)))
    first.upstream(*(deliver(tag) for tag in range(1, 100)))
    first.wait()
    assert len(first.found) == 1
    assert first.deliveries._copies == {}


def test_how_often_a_message_comes_again_is_not_compared() -> None:
    first, second = two()
    again: dict[str, Any] = {"delivery_tag": 1, "consumer_tag": "c", "routing_key": "q", "redelivered": True}
    for three in (first, second):
        three.ours(deliver(1))
        three.upstream(deliver(1))
    second.upstream(said(commands.Basic.Deliver, body=b"m", **again))
    first.wait()
    assert first.found == []


def test_nothing_is_kept_of_messages_that_are_settled() -> None:
    first, _ = two()
    for tag in range(1, 50):
        first.ours(deliver(tag, b"%d" % tag))
        first.upstream(deliver(tag, b"%d" % tag))
    first.client(said(commands.Basic.Ack, delivery_tag=0, multiple=True))
    assert first.deliveries._copies == {}
    assert first.connection.ahead_count == 0
