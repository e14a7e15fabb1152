"""Acks of many deliveries at once; test_channel_settling.py tests which tags there are."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp.base import Frame
from pamqp.commands import Basic, Tx

from amqp_broker.broker.scheduling.portions import WORK_MAX
from amqp_broker.session.channel.acks import ACK_WORK, ACKED_MAX
from amqp_broker.session.channel.returning import SETTLED_MAX
from tests.peer import Lab, Peer, publish_bytes

STREAM = {"x-queue-type": "stream"}


def filled(peer: Peer, queue: str, *bodies: bytes, **options: Any) -> None:
    peer.declare(queue, **options)
    for body in bodies:
        peer.publish(queue, body)


def delivered(peer: Peer) -> list[tuple[str | None, bytes]]:
    """Return consumer tag and body of each delivery."""
    return [(method.consumer_tag, content.body) for method, content in peer.deliveries()]


def shared(lab: Lab, kind: str) -> Peer:
    """Return a client with two consumers of a queue of four messages, with one each."""
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": kind})
    peer.send(Basic.Qos(prefetch_count=1))
    peer.expect(Basic.QosOk)
    for tag in ("d", "c"):
        peer.consume("q", tag)
    for body in (b"1", b"2", b"3", b"4"):
        lab.connect().publish("q", body)
    assert delivered(peer) == [("d", b"1"), ("c", b"2")]
    return peer


def unacked(lab: Lab, *queues: str) -> list[int]:
    return [lab.vhost.queues[queue].unacked_count for queue in queues]


def test_deliveries_of_several_queues_consumers_and_gets_are_acked_up_to_a_tag(lab: Lab) -> None:
    peer = lab.connect()
    filled(peer, "a", b"1", b"2", b"3")
    filled(peer, "b", b"4")
    peer.send(Basic.Qos(prefetch_count=2))
    peer.expect(Basic.QosOk)
    peer.consume("a", "first")
    assert peer.bodies() == [b"1", b"2"]
    peer.consume("b", "second")
    assert peer.bodies() == [b"4"]
    assert peer.get("a", no_ack=False) is not None
    peer.publish("b", b"5")
    assert unacked(lab, "a", "b") == [3, 2]
    channel = peer.session.channels[1]
    assert list(channel.unacked.deliveries) == [1, 2, 3, 4, 5]
    peer.send(Basic.Ack(4, multiple=True))
    assert unacked(lab, "a", "b") == [0, 1]
    assert list(channel.unacked.deliveries) == [5]
    assert {tag: consumer.in_flight for tag, consumer in channel.consumers.items()} == {"first": 0, "second": 1}


def test_a_consumer_that_was_full_gets_as_many_messages_as_were_acked(lab: Lab) -> None:
    peer = lab.connect()
    filled(peer, "q", b"1", b"2", b"3", b"4", b"5")
    peer.send(Basic.Qos(prefetch_count=3))
    peer.expect(Basic.QosOk)
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2", b"3"]
    peer.send(Basic.Ack(2, multiple=True))
    assert peer.bodies() == [b"4", b"5"]
    peer.send(Basic.Ack(0, multiple=True))
    assert (unacked(lab, "q"), peer.session.channels[1].unacked.deliveries) == ([0], {})


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize(
    "settlements",
    [
        [Basic.Ack(2, multiple=True)],
        [Basic.Ack(0, multiple=True)],
        [Tx.Select(), Basic.Ack(2), Basic.Ack(1), Tx.Commit()],
        [Tx.Select(), Basic.Ack(2, multiple=True), Tx.Commit()],
    ],
)
def test_consumers_are_served_in_the_order_of_their_tags(lab: Lab, kind: str, settlements: list[Frame]) -> None:
    peer = shared(lab, kind)
    for method in settlements:
        if isinstance(method, (Basic.Ack, Basic.Nack)):
            peer.send(method)
        else:
            peer.call(method)
    assert delivered(peer) == [("c", b"3"), ("d", b"4")]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_each_consumer_is_served_as_soon_as_its_messages_are_back(lab: Lab, kind: str) -> None:
    peer = shared(lab, kind)
    peer.send(Basic.Nack(2, multiple=True, requeue=True))
    assert delivered(peer) == [("c", b"2"), ("d", b"1")]


@pytest.mark.parametrize(("kind", "second"), [("classic", "d"), ("quorum", "c")])
def test_a_consumer_takes_again_before_messages_of_another_one_are_back(lab: Lab, kind: str, second: str) -> None:
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": kind})
    for tag, prefetch in (("c", 3), ("d", 1)):
        peer.send(Basic.Qos(prefetch_count=prefetch))
        peer.expect(Basic.QosOk)
        peer.consume("q", tag)
    for body in (b"1", b"2"):
        lab.connect().publish("q", body)
    assert delivered(peer) == [("c", b"1"), ("d", b"2")]
    peer.send(Basic.Nack(0, multiple=True, requeue=True))
    assert delivered(peer) == [("c", b"1"), (second, b"2")]


@pytest.mark.parametrize("arguments", [{}, STREAM], ids=["classic", "stream"])
def test_a_channel_acks_what_a_cancelled_consumer_got(lab: Lab, arguments: dict[str, Any]) -> None:
    peer = lab.connect()
    filled(peer, "q", b"1", b"2", durable=True, arguments=arguments)
    peer.send(Basic.Qos(prefetch_count=5))
    peer.expect(Basic.QosOk)
    peer.consume("q", arguments={"x-stream-offset": "first"} if arguments else {})
    assert peer.bodies() == [b"1", b"2"]
    peer.call(Basic.Cancel("c"))
    peer.send(Basic.Ack(0, multiple=True))
    assert (unacked(lab, "q"), peer.session.channels[1].unacked.deliveries) == ([0], {})


def with_unacked(lab: Lab, count: int) -> Peer:
    """Return a client with this many unacked deliveries."""
    peer = lab.connect()
    filled(peer, "q", *[b"x"] * count)
    peer.consume("q")
    while lab.broker.undrained:
        lab.broker.drain_on()
    assert len(peer.bodies()) == count
    return peer


@pytest.mark.parametrize("settled", [2, 1300], ids=["few settled before", "many settled before"])
@pytest.mark.parametrize("multiple", [Basic.Ack(1310, multiple=True), Basic.Nack(1310, multiple=True, requeue=False)])
def test_all_up_to_a_tag_are_settled_whatever_was_settled_one_by_one(
    lab: Lab, settled: int, multiple: Basic.Ack | Basic.Nack
) -> None:
    peer = with_unacked(lab, 1330)
    for tag in range(5, 5 + settled):
        peer.send(Basic.Ack(tag))
    peer.send(multiple)
    lab.drain()
    channel = peer.session.channels[1]
    assert list(channel.unacked.deliveries) == list(range(1311, 1331))
    peer.send(Basic.Ack(1315, multiple=True))
    assert list(channel.unacked.deliveries) == list(range(1316, 1331))


def test_a_rollback_makes_deliveries_unacked_that_can_be_acked_up_to_a_tag_again(lab: Lab) -> None:
    peer = with_unacked(lab, 9)
    peer.call(Tx.Select())
    peer.send(Basic.Ack(2, multiple=True))
    peer.call(Tx.Commit())
    for _ in range(2):
        peer.send(Basic.Ack(7, multiple=True))
        peer.call(Tx.Rollback())
    peer.send(Basic.Ack(4, multiple=True))
    assert list(peer.session.channels[1].unacked.deliveries) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 5}, {"x-queue-type": "quorum"}])
def test_others_are_served_while_very_many_deliveries_are_acked(arguments: dict[str, Any]) -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q", durable=True, arguments=arguments)
    turn_max = WORK_MAX // ACK_WORK + SETTLED_MAX
    count = 2 * turn_max + 5
    peer.send_bytes(publish_bytes("q", b"8 octets") * count)
    lab.drain()
    queue = lab.vhost.queues["q"]
    peer.consume("q")
    lab.drain()
    assert len(peer.bodies()) == count
    peer.send(Basic.Ack(0, multiple=True), Basic.Qos())
    turns, left = 0, queue.unacked_count
    assert left >= count - turn_max
    while lab.broker.undrained:
        assert left - queue.unacked_count <= turn_max
        left, turns = queue.unacked_count, turns + 1
        peer.expect_nothing()
        lab.broker.drain_on()
    assert turns > 1
    assert (queue.unacked_count, queue.ready_count) == (0, 0)
    peer.expect(Basic.QosOk)


def test_many_acks_are_done_although_their_client_leaves() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.send_bytes(publish_bytes("q", b"8 octets") * (3 * ACKED_MAX))
    lab.drain()
    peer.consume("q")
    lab.drain()
    peer.send(Basic.Ack(0, multiple=True))
    peer.disconnect()
    lab.drain()
    queue = lab.vhost.queues["q"]
    assert (queue.unacked_count, queue.ready_count) == (0, 0)


def test_deliveries_have_deadlines_after_all_others_were_taken() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    filled(peer, "q", b"1", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    peer.consume("q")
    assert peer.bodies() == [b"1"]
    peer.send(Basic.Ack(0, multiple=True))
    peer.publish("q", b"2")
    assert peer.bodies() == [b"2"]
    lab.advance(700)
    assert peer.expect(Basic.Cancel).consumer_tag == "c"
