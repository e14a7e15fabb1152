"""basic.get and basic.recover."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Connection, Queue

from tests.peer import Lab, Peer


def fill(peer: Peer, *bodies: bytes) -> None:
    peer.declare("q")
    for body in bodies:
        peer.publish("q", body)


def test_get_ok_has_the_number_of_remaining_messages(peer: Peer) -> None:
    fill(peer, b"1", b"2", b"3")
    for left in (2, 1, 0):
        got = peer.get("q")
        assert got is not None
        assert got[0].message_count == left
    assert peer.get("q") is None


def test_get_empty_has_an_empty_cluster_id(peer: Peer) -> None:
    peer.declare("q")
    assert peer.call(Basic.Get(queue="q")).cluster_id == ""


def test_get_ok_has_the_fields_of_a_delivery(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="#"))
    peer.publish("a.b", b"1", exchange="amq.topic", content_type="text/plain")
    got = peer.get("q")
    assert got is not None
    assert dict(got[0]) == {
        "delivery_tag": 1,
        "redelivered": False,
        "exchange": "amq.topic",
        "routing_key": "a.b",
        "message_count": 0,
    }
    assert (got[1].body, got[1].properties.content_type) == (b"1", "text/plain")


def test_a_message_from_get_stays_unacked_until_it_is_settled(lab: Lab, peer: Peer) -> None:
    fill(peer, b"1")
    assert peer.get("q", no_ack=False) is not None
    assert lab.vhost.queues["q"].unacked_count == 1
    assert peer.get("q") is None
    peer.send(Basic.Ack(1))
    assert lab.vhost.queues["q"].unacked_count == 0


def test_a_message_from_get_without_ack_is_gone(lab: Lab, peer: Peer) -> None:
    fill(peer, b"1")
    assert peer.get("q", no_ack=True) is not None
    peer.disconnect()
    queue = lab.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (0, 0)


def test_a_requeued_message_from_get_is_redelivered(peer: Peer) -> None:
    fill(peer, b"1", b"2")
    assert peer.get("q", no_ack=False) is not None
    peer.send(Basic.Reject(1, requeue=True))
    for expected in (True, False):
        got = peer.get("q")
        assert got is not None
        assert got[0].redelivered is expected


@pytest.mark.parametrize("size", [0, 8184, 8185, 50_000])
def test_a_message_from_get_is_divided_into_small_frames(lab: Lab, other: Peer, size: int) -> None:
    peer = lab.connect(frame_max=8192)
    fill(other, bytes(size))
    got = peer.get("q")
    assert got is not None
    assert got[1].body == bytes(size)


def test_a_message_can_be_pulled_on_another_channel_than_its_publish(peer: Peer) -> None:
    fill(peer, b"1")
    peer.open_channel(300)
    peer.send(Basic.Get(queue="q"), channel=300)
    peer.expect(Basic.GetOk, channel=300)
    assert peer.expect_content(channel=300).body == b"1"


def test_get_takes_messages_that_consumers_cannot_take(peer: Peer, other: Peer) -> None:
    fill(peer, b"1", b"2")
    other.call(Basic.Qos(prefetch_count=1))
    other.consume("q")
    assert other.bodies() == [b"1"]
    got = peer.get("q")
    assert got is not None
    assert got[1].body == b"2"


# Recover


def test_recover_answers_and_then_redelivers_all_unsettled_messages(peer: Peer) -> None:
    fill(peer, b"1", b"2")
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    peer.send(Basic.Recover(requeue=True))
    peer.expect(Basic.RecoverOk)
    assert [(deliver.delivery_tag, deliver.redelivered, content.body) for deliver, content in peer.deliveries()] == [
        (3, True, b"1"),
        (4, True, b"2"),
    ]


def test_recover_without_anything_unsettled_is_answered(peer: Peer) -> None:
    peer.call(Basic.Recover(requeue=True))


def test_recover_concerns_its_channel_only(lab: Lab, peer: Peer) -> None:
    fill(peer, b"1", b"2")
    peer.open_channel(2)
    assert peer.get("q", no_ack=False) is not None
    peer.call(Basic.Recover(requeue=True), channel=2)
    assert lab.vhost.queues["q"].unacked_count == 1


def test_recover_without_requeue_is_not_implemented(peer: Peer) -> None:
    peer.send(Basic.Recover(requeue=False))
    close = peer.expect(Connection.Close, channel=0)
    assert (close.reply_code, close.reply_text) == (540, "NOT_IMPLEMENTED - requeue=false")
    assert (close.class_id, close.method_id) == (60, 110)


def test_the_old_recover_without_requeue_is_not_implemented(peer: Peer) -> None:
    with pytest.deprecated_call():
        recover = Basic.RecoverAsync(requeue=False)
    peer.send(recover)
    close = peer.expect(Connection.Close, channel=0)
    assert (close.reply_code, close.class_id, close.method_id) == (540, 60, 100)
