"""Methods behind an ack in the same read: its consumer has taken the next message before them.

RabbitMQ handles both in this order, whether or not they arrive at once.
"""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import frame
from pamqp.commands import Basic, Channel, Confirm, Queue

from tests.peer import Lab, Peer, publish_bytes

KINDS = ["classic", "quorum"]


def holding(lab: Lab, kind: str, **arguments: Any) -> Peer:
    """A consumer that holds the message 0 of a queue in which 1 is ready."""
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    peer = lab.connect()
    peer.declare("dead", durable=True)
    given |= {"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare("q", durable=True, arguments=given)
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("q")
    peer.publish("q", b"0")
    peer.publish("q", b"1")
    assert peer.bodies() == [b"0"]
    return peer


def ack_and(*methods: Any) -> bytes:
    return b"".join(frame.marshal(method, 1) for method in (Basic.Ack(1), *methods))


@pytest.mark.parametrize("kind", KINDS)
def test_an_acked_consumer_takes_its_next_message_before_a_publish_drops_it(kind: str) -> None:
    lab = Lab()
    peer = holding(lab, kind, max_length=1)
    peer.send_bytes(ack_and() + publish_bytes("q", b"2"))
    assert peer.bodies() == [b"1"]
    assert lab.connect().get("dead") is None
    assert lab.vhost.queues["q"].ready_count == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_acked_consumer_makes_room_before_a_publish_is_refused(kind: str) -> None:
    lab = Lab()
    limit = 1 if kind == "classic" else 0
    peer = holding(lab, kind, max_length=limit, overflow="reject-publish")
    peer.call(Confirm.Select())
    peer.send_bytes(ack_and() + publish_bytes("q", b"2"))
    assert peer.expect_delivery()[1].body == b"1"
    assert peer.expect(Basic.Ack).delivery_tag == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_acked_consumer_takes_a_message_that_expires_at_once(kind: str) -> None:
    lab = Lab()
    peer = holding(lab, kind)
    peer.send_bytes(ack_and())
    assert peer.bodies() == [b"1"]
    peer.send_bytes(frame.marshal(Basic.Ack(2), 1) + publish_bytes("q", b"2", expiration="0"))
    assert peer.bodies() == [b"2"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_acked_consumer_takes_its_next_message_before_a_get_does(kind: str) -> None:
    lab = Lab()
    peer = holding(lab, kind)
    peer.send_bytes(ack_and(Basic.Get(queue="q")))
    assert peer.expect_delivery()[1].body == b"1"
    peer.expect(Basic.GetEmpty)


@pytest.mark.parametrize("kind", KINDS)
def test_an_acked_consumer_takes_its_next_message_before_a_purge_drops_it(kind: str) -> None:
    lab = Lab()
    peer = holding(lab, kind)
    peer.send_bytes(ack_and(Queue.Purge(queue="q")))
    assert peer.expect_delivery()[1].body == b"1"
    assert peer.expect(Queue.PurgeOk).message_count == 0


def test_an_acked_consumer_takes_its_next_message_before_another_one_comes_back() -> None:
    lab = Lab()
    peer = holding(lab, "classic")
    peer.open_channel(2)
    peer.send(Basic.Get(queue="q"), channel=2)
    peer.expect(Basic.GetOk, 2)
    peer.expect_content(2)
    peer.publish("q", b"2")
    peer.send_bytes(ack_and() + frame.marshal(Basic.Nack(1, requeue=True), 2))
    assert peer.bodies() == [b"2"]


def test_a_consumer_that_is_closed_behind_its_ack_takes_nothing_more() -> None:
    lab = Lab()
    peer = holding(lab, "classic")
    peer.send_bytes(ack_and(Channel.Close(200, "", 0, 0)))
    peer.expect(Channel.CloseOk)
    assert not any(redelivered for _, _, redelivered in lab.vhost.queues["q"].peek())
