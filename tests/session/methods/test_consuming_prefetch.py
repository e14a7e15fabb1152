"""basic.qos: how much a consumer, or a channel as a whole, may hold unacked."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Channel, Tx

from tests.peer import Lab, Peer


def fill(peer: Peer, queue: str, count: int) -> None:
    peer.declare(queue)
    for number in range(1, count + 1):
        peer.publish(queue, b"%s%d" % (queue.encode(), number))


def qos(peer: Peer, count: int, *, global_: bool = False, channel: int = 1) -> None:
    peer.call(Basic.Qos(prefetch_count=count, global_=global_), channel=channel)


def test_a_consumer_gets_no_more_than_its_prefetch(peer: Peer) -> None:
    fill(peer, "q", 4)
    qos(peer, 2)
    peer.consume("q")
    assert peer.bodies() == [b"q1", b"q2"]
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"q3"]
    peer.send(Basic.Ack(3, multiple=True))
    assert peer.bodies() == [b"q4"]


@pytest.mark.parametrize(
    "settle", [Basic.Ack(1), Basic.Reject(1, requeue=False), Basic.Nack(1, requeue=False), Basic.Nack(0, True, False)]
)
def test_every_way_of_settling_makes_room(peer: Peer, settle: Basic.Ack) -> None:
    fill(peer, "q", 2)
    qos(peer, 1)
    peer.consume("q")
    assert peer.bodies() == [b"q1"]
    peer.send(settle)
    assert peer.bodies() == [b"q2"]


def test_a_requeued_message_may_come_back_to_the_only_consumer(peer: Peer) -> None:
    fill(peer, "q", 2)
    qos(peer, 1)
    peer.consume("q")
    peer.deliveries()
    peer.send(Basic.Reject(1, requeue=True))
    assert peer.bodies() == [b"q1"]
    peer.send(Basic.Nack(2, requeue=True))
    assert peer.bodies() == [b"q1"]


def test_each_consumer_has_a_prefetch_of_its_own(peer: Peer) -> None:
    fill(peer, "p", 2)
    fill(peer, "q", 3)
    qos(peer, 1)
    for queue, tag in (("p", "one"), ("q", "two"), ("q", "three")):
        peer.send(Basic.Consume(queue=queue, consumer_tag=tag, nowait=True))
    assert peer.bodies() == [b"p1", b"q1", b"q2"]


def test_prefetch_is_fixed_when_the_consumer_begins(peer: Peer) -> None:
    fill(peer, "q", 3)
    qos(peer, 1)
    peer.consume("q")
    assert peer.bodies() == [b"q1"]
    qos(peer, 10)
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"q2"]


def test_a_prefetch_of_0_is_no_limit(peer: Peer) -> None:
    fill(peer, "q", 3)
    qos(peer, 1)
    qos(peer, 0)
    peer.consume("q")
    assert len(peer.bodies()) == 3


def test_messages_from_get_do_not_count_against_the_prefetch(peer: Peer) -> None:
    fill(peer, "q", 3)
    qos(peer, 1)
    for _ in range(2):
        assert peer.get("q", no_ack=False) is not None
    peer.consume("q")
    assert peer.bodies() == [b"q3"]


def test_prefetch_does_not_hold_back_consumers_without_acks(peer: Peer) -> None:
    fill(peer, "q", 3)
    qos(peer, 1)
    qos(peer, 1, global_=True)
    peer.consume("q", no_ack=True)
    assert len(peer.bodies()) == 3


def test_a_consumer_that_is_full_is_passed_over(peer: Peer, other: Peer) -> None:
    peer.declare("q")
    qos(peer, 1)
    peer.consume("q")
    other.consume("q")
    for number in range(4):
        other.publish("q", b"%d" % number)
    assert peer.bodies() == [b"0"]
    assert other.bodies() == [b"1", b"2", b"3"]


def test_a_consumer_that_was_full_takes_its_turn_again(peer: Peer, other: Peer) -> None:
    peer.declare("q")
    qos(peer, 1)
    peer.consume("q")
    other.consume("q")
    for number in range(3):
        other.publish("q", b"%d" % number)
    peer.send(Basic.Ack(1))
    for number in range(3, 6):
        other.publish("q", b"%d" % number)
    assert len(peer.bodies()) == 2
    assert len(other.bodies()) == 4


def test_many_acks_of_one_read_free_a_consumer_once(lab: Lab, peer: Peer) -> None:
    fill(peer, "q", 20)
    qos(peer, 5)
    peer.consume("q")
    peer.deliveries()
    peer.send(*(Basic.Ack(tag) for tag in range(1, 6)))
    assert [deliver.delivery_tag for deliver, _ in peer.deliveries()] == [6, 7, 8, 9, 10]
    assert lab.vhost.queues["q"].unacked_count == 5


@pytest.mark.parametrize("size", [1, 100, 2**32 - 1])
def test_prefetch_size_is_not_implemented(peer: Peer, size: int) -> None:
    peer.send(Basic.Qos(prefetch_size=size, prefetch_count=1))
    assert peer.expect_connection_close(540) == f"NOT_IMPLEMENTED - prefetch_size!=0 ({size})"


# For the channel as a whole


def test_a_global_prefetch_counts_for_the_channel(peer: Peer) -> None:
    fill(peer, "p", 2)
    fill(peer, "q", 1)
    qos(peer, 2, global_=True)
    peer.send(Basic.Consume(queue="p", consumer_tag="p", nowait=True))
    peer.send(Basic.Consume(queue="q", consumer_tag="q", nowait=True))
    assert peer.bodies() == [b"p1", b"p2"]
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"q1"]


def test_a_global_prefetch_applies_to_existing_consumers(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    qos(peer, 1, global_=True)
    for body in (b"1", b"2"):
        peer.publish("q", body)
    assert peer.bodies() == [b"1"]
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"2"]


@pytest.mark.parametrize("limit", [{"count": 0, "global_": True}, {"count": 0}, {"count": 5}])
def test_a_global_prefetch_is_lifted_by_0_or_by_one_that_is_not_global(peer: Peer, limit: dict[str, Any]) -> None:
    fill(peer, "q", 3)
    qos(peer, 1, global_=True)
    peer.consume("q")
    assert peer.bodies() == [b"q1"]
    qos(peer, **limit)
    assert peer.bodies() == [b"q2", b"q3"]


def test_the_smaller_of_both_prefetches_applies(peer: Peer) -> None:
    fill(peer, "p", 3)
    fill(peer, "q", 3)
    qos(peer, 2)
    qos(peer, 3, global_=True)
    for queue in ("p", "q"):
        peer.send(Basic.Consume(queue=queue, consumer_tag=queue, nowait=True))
    assert peer.bodies() == [b"p1", b"p2", b"q1"]
    peer.send(Basic.Ack(3))
    assert peer.bodies() == [b"q2"]
    peer.call(Basic.Cancel("q"))
    peer.send(Basic.Ack(4))
    peer.expect_nothing()
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"p3"]


def test_a_later_global_prefetch_holds_back_deliveries_until_enough_are_settled(peer: Peer) -> None:
    fill(peer, "q", 6)
    qos(peer, 4)
    peer.consume("q")
    peer.deliveries()
    qos(peer, 2, global_=True)
    for tag in (1, 2):
        peer.send(Basic.Ack(tag))
        peer.expect_nothing()
    peer.send(Basic.Ack(3))
    assert peer.bodies() == [b"q5"]


def test_only_messages_got_before_a_global_prefetch_count_against_it(peer: Peer) -> None:
    fill(peer, "q", 5)
    assert peer.get("q", no_ack=False) is not None
    qos(peer, 2, global_=True)
    assert peer.get("q", no_ack=False) is not None
    peer.consume("q")
    assert peer.bodies() == [b"q3"]
    peer.send(Basic.Ack(2))
    peer.expect_nothing()
    # As long as there is a limit, RabbitMQ never stops counting them.
    peer.send(Basic.Ack(1))
    peer.expect_nothing()
    peer.send(Basic.Ack(3))
    assert peer.bodies() == [b"q4"]


def test_unacked_messages_of_a_cancelled_consumer_count_against_the_global_prefetch(peer: Peer) -> None:
    fill(peer, "q", 3)
    qos(peer, 1, global_=True)
    peer.consume("q", "one")
    assert peer.bodies() == [b"q1"]
    peer.call(Basic.Cancel("one"))
    peer.consume("q", "two")
    peer.expect_nothing()
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"q2"]


def test_a_rolled_back_ack_makes_no_room(peer: Peer) -> None:
    fill(peer, "q", 3)
    peer.call(Tx.Select())
    qos(peer, 1, global_=True)
    peer.consume("q")
    assert peer.bodies() == [b"q1"]
    peer.send(Basic.Ack(1))
    peer.call(Tx.Rollback())
    peer.expect_nothing()


def test_channels_have_their_own_global_prefetch(peer: Peer) -> None:
    fill(peer, "q", 4)
    peer.open_channel(2)
    for number in (1, 2):
        qos(peer, 1, global_=True, channel=number)
        peer.consume("q", channel=number)
        assert len(peer.deliveries(number)) == 1


def test_qos_ok_precedes_the_deliveries_that_it_allows(peer: Peer) -> None:
    fill(peer, "q", 2)
    qos(peer, 1, global_=True)
    peer.consume("q")
    peer.deliveries()
    peer.send(Basic.Qos(prefetch_count=0, global_=True))
    peer.expect(Basic.QosOk)
    assert peer.bodies() == [b"q2"]


def test_closing_a_full_channel_delivers_its_messages_to_the_next(peer: Peer, other: Peer) -> None:
    fill(peer, "q", 3)
    qos(peer, 2, global_=True)
    peer.consume("q")
    assert len(peer.deliveries()) == 2
    other.consume("q")
    assert other.bodies() == [b"q3"]
    peer.call(Channel.Close(200, "bye", 0, 0))
    assert other.bodies() == [b"q1", b"q2"]


def test_the_default_prefetch_is_a_setting() -> None:
    lab = Lab(default_consumer_prefetch=2)
    peer = lab.connect()
    peer.declare("q")
    peer.consume("q", "a")
    for _ in range(5):
        peer.publish("q")
    assert len(peer.deliveries()) == 2
    peer.open_channel(2)
    peer.call(Basic.Qos(prefetch_count=1), channel=2)
    peer.consume("q", "b", channel=2)
    assert len(peer.deliveries(channel=2)) == 1
