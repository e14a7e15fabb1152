"""Deliveries of a consumer: their fields and tags, and the end of its queue."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Queue

from tests.peer import CAPABILITIES, Lab, Peer
from tests.session.filling import fill


def test_a_delivery_has_all_its_fields(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q", "my tag")
    peer.publish("q", b"1", content_type="text/plain")
    deliver, content = peer.expect_delivery()
    assert dict(deliver) == {
        "consumer_tag": "my tag",
        "delivery_tag": 1,
        "redelivered": False,
        "exchange": "",
        "routing_key": "q",
    }
    assert content.properties.content_type == "text/plain"


def test_delivery_tags_count_for_the_channel(peer: Peer) -> None:
    peer.open_channel(2)
    for queue in ("p", "q"):
        peer.declare(queue)
        peer.consume(queue, queue)
    fill(peer, b"1", queue="p")
    fill(peer, b"2", queue="q")
    assert [deliver.delivery_tag for deliver, _ in peer.deliveries()] == [1, 2]
    peer.declare("r")
    fill(peer, b"3", queue="r")
    got = peer.get("r")
    assert got is not None
    assert got[0].delivery_tag == 3
    peer.consume("r", channel=2)
    fill(peer, b"4", queue="r")
    assert peer.expect_delivery(channel=2)[0].delivery_tag == 1


def test_a_deleted_queue_cancels_its_consumers(peer: Peer, other: Peer) -> None:
    other.declare("q")
    peer.open_channel(2)
    peer.consume("q", "one", channel=1)
    peer.consume("q", "two", channel=2)
    other.call(Queue.Delete(queue="q"))
    for tag, number in (("one", 1), ("two", 2)):
        cancel = peer.expect(Basic.Cancel, number)
        assert (cancel.consumer_tag, cancel.nowait) == (tag, True)
    other.expect_nothing()


@pytest.mark.parametrize(
    "capabilities", [{}, {"consumer_cancel_notify": False}, {**CAPABILITIES, "consumer_cancel_notify": False}]
)
def test_a_client_without_the_capability_gets_no_cancel(lab: Lab, other: Peer, capabilities: dict[str, bool]) -> None:
    peer = lab.connect(capabilities=capabilities)
    other.declare("q")
    peer.consume("q")
    other.call(Queue.Delete(queue="q"))
    peer.expect_nothing()
    other.declare("q")
    peer.consume("q")


def test_deliveries_of_a_deleted_queue_are_not_requeued(lab: Lab, peer: Peer, other: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    fill(other, b"1")
    peer.deliveries()
    other.call(Queue.Delete(queue="q"))
    peer.expect(Basic.Cancel)
    other.declare("q")
    peer.call(Channel.Close(200, "bye", 0, 0))
    assert lab.vhost.queues["q"].ready_count == 0


def test_without_acks_nothing_is_unacked(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("q", no_ack=True)
    fill(peer, b"1", b"2", b"3")
    assert peer.bodies() == [b"1", b"2", b"3"]
    assert lab.vhost.queues["q"].unacked_count == 0
    peer.disconnect()
    assert lab.vhost.queues["q"].ready_count == 0
