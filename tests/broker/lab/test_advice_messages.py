"""Advice counts the messages that a habit is about."""

from __future__ import annotations

from pamqp import commands

from tests.broker.advising import advice_in, declare, only
from tests.peer import Lab


def test_unroutable_messages_are_counted_while_they_come(lab: Lab) -> None:
    peer = lab.connect()
    peer.publish("ordrs", b"m")
    assert only(lab, "unroutable").messages == 1
    first_ms = lab.now
    lab.advance(5_000)
    lab.broker.now = lab.now
    for _ in range(4):
        peer.publish("ordrs", b"m")
    declare(peer, "orders")
    peer.publish("orders", b"m")
    advice = only(lab, "unroutable")
    assert (advice.messages, advice.count) == (5, 1)
    assert (advice.first_seen_ms, advice.last_seen_ms) == (first_ms, lab.now)
    assert only(lab, "unroutable").messages == 5


def test_messages_of_several_channels_in_one_place_are_added(lab: Lab) -> None:
    for count in (2, 3):
        peer = lab.connect()
        for _ in range(count):
            peer.publish("ordrs", b"m")
        peer.call(commands.Channel.Close(0, "", 0, 0))
    advice = only(lab, "unroutable")
    assert (advice.messages, advice.count) == (5, 2)


def test_messages_published_without_confirms_are_counted(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    for _ in range(3):
        peer.publish("orders", b"m", delivery_mode=2)
    assert only(lab, "no-confirms").messages == 3


def test_confirmed_messages_of_the_same_channel_do_not_count(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    peer.publish("orders", b"m", delivery_mode=2)
    assert only(lab, "no-confirms").messages == 1
    peer.call(commands.Confirm.Select())
    for _ in range(5):
        peer.publish("orders", b"m", delivery_mode=2)
    assert only(lab, "no-confirms").messages == 1


def test_messages_count_on_when_their_queue_is_declared_again(lab: Lab) -> None:
    peer, consumer = lab.connect(), lab.connect()
    for total in (10, 15):
        declare(peer, "q")
        consumer.consume("q", no_ack=True)
        for _ in range(10 if total == 10 else 5):
            peer.publish("q", b"m")
        assert only(lab, "auto-ack").messages == total
        consumer.deliveries()
        consumer.call(commands.Basic.Cancel("c"))
        peer.call(commands.Queue.Delete(queue="q"))


def test_messages_that_count_as_acked_on_delivery_are_counted_by_queue(lab: Lab) -> None:
    peer = lab.connect()
    for name, count in (("a", 1), ("b", 4)):
        declare(peer, name)
        for _ in range(count):
            peer.publish(name, b"m")
        lab.connect().consume(name, no_ack=True)
    assert {advice.place.queue: advice.messages for advice in advice_in(lab) if advice.habit.name == "auto-ack"} == {
        "a": 1,
        "b": 4,
    }


def test_after_clearing_only_new_messages_count(lab: Lab) -> None:
    peer = lab.connect()
    for _ in range(3):
        peer.publish("ordrs", b"m")
    only(lab, "unroutable")
    lab.broker.advice.clear()
    other = lab.connect()
    other.publish("ordrs", b"m")
    assert only(lab, "unroutable").messages == 1
    peer.publish("ordrs", b"m")
    assert only(lab, "unroutable").messages == 2


def test_a_habit_without_messages_counts_none(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "q", durable=False)
    assert {advice.messages for advice in advice_in(lab)} == {0}
