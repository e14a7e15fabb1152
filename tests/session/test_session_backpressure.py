"""A socket that is full holds up its own consumers only, and a backlog leaves in batches."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Queue

from amqp_broker.broker.queues.queue import DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
from tests.peer import Lab, Peer


def fill(peer: Peer, queue: str, *bodies: bytes) -> None:
    peer.declare(queue)
    for body in bodies:
        peer.publish(queue, body)


# Pause and resume


def test_a_paused_client_gets_nothing_until_it_is_resumed(lab: Lab, peer: Peer, other: Peer) -> None:
    fill(other, "q")
    peer.consume("q")
    peer.session.pause()
    other.publish("q", b"1")
    other.publish("q", b"2")
    peer.expect_nothing()
    assert lab.vhost.queues["q"].ready_count == 2
    peer.session.resume(lab.now)
    assert peer.bodies() == [b"1", b"2"]


def test_messages_bypass_a_paused_client(lab: Lab, peer: Peer, other: Peer) -> None:
    fill(other, "q")
    peer.consume("q")
    other.consume("q")
    peer.session.pause()
    for body in (b"1", b"2", b"3"):
        other.publish("q", body)
    assert other.bodies() == [b"1", b"2", b"3"]
    peer.session.resume(lab.now)
    other.publish("q", b"4")
    other.publish("q", b"5")
    assert sorted(peer.bodies() + other.bodies()) == [b"4", b"5"]


def test_methods_of_a_paused_client_are_answered(lab: Lab, peer: Peer) -> None:
    fill(peer, "q", b"1", b"2")
    peer.session.pause()
    peer.send(Basic.Get(queue="q", no_ack=True), Queue.Declare(queue="q", passive=True))
    peer.expect(Basic.GetOk)
    peer.expect_content()
    assert peer.expect(Queue.DeclareOk).message_count == 1


def test_a_consumer_that_subscribes_while_paused_gets_its_messages_when_resumed(lab: Lab, peer: Peer) -> None:
    fill(peer, "q", b"1")
    peer.session.pause()
    peer.consume("q")
    peer.expect_nothing()
    peer.session.resume(lab.now)
    assert peer.bodies() == [b"1"]


def test_an_ack_while_paused_frees_the_consumer_for_later(lab: Lab, peer: Peer) -> None:
    fill(peer, "q", b"1", b"2")
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("q")
    assert peer.bodies() == [b"1"]
    peer.session.pause()
    peer.send(Basic.Ack(1))
    peer.expect_nothing()
    peer.session.resume(lab.now)
    assert peer.bodies() == [b"2"]


def test_messages_rejected_by_a_paused_client_go_to_another(lab: Lab, peer: Peer, other: Peer) -> None:
    fill(other, "q", b"1")
    peer.consume("q")
    assert peer.bodies() == [b"1"]
    other.consume("q")
    peer.session.pause()
    peer.send(Basic.Reject(1, requeue=True))
    assert other.bodies() == [b"1"]


def test_prefetch_applies_after_a_pause(lab: Lab, peer: Peer) -> None:
    fill(peer, "q", b"1", b"2", b"3")
    peer.call(Basic.Qos(prefetch_count=2))
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    peer.session.pause()
    peer.session.resume(lab.now)
    peer.expect_nothing()
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"3"]


# Publishers are slowed down only for consumers with full sockets


def test_a_backlog_behind_a_full_socket_congests_the_broker(lab: Lab, peer: Peer, other: Peer) -> None:
    fill(other, "q", b"1")
    assert not lab.broker.is_congested
    peer.consume("q")
    peer.session.pause()
    other.publish("q", b"2")
    assert lab.broker.is_congested


def test_a_backlog_without_consumers_does_not_congest_the_broker(lab: Lab, peer: Peer) -> None:
    fill(peer, "q", b"1", b"2")
    assert not lab.broker.is_congested


@pytest.mark.parametrize("end", ["resume", "cancel", "channel close", "channel error", "disconnect", "queue"])
def test_a_lost_consumer_does_not_congest_the_broker(lab: Lab, peer: Peer, other: Peer, end: str) -> None:
    fill(other, "q")
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("q")
    peer.session.pause()
    match end:
        case "resume":
            peer.session.resume(lab.now)
        case "cancel":
            peer.call(Basic.Cancel("c"))
        case "channel close":
            peer.call(Channel.Close(200, "bye", 0, 0))
        case "channel error":
            peer.send(Basic.Ack(42))
        case "disconnect":
            peer.disconnect()
        case "queue":
            other.send(Queue.Delete(queue="q"))
            other.expect(Queue.DeleteOk)
            other.declare("q")
    other.publish("q", b"1")
    other.publish("q", b"2")
    assert not lab.broker.is_congested


def test_a_consumer_that_subscribed_during_a_pause_congests_the_broker_until_its_end(
    lab: Lab, peer: Peer, other: Peer
) -> None:
    fill(other, "q")
    peer.call(Basic.Qos(prefetch_count=1))
    peer.session.pause()
    peer.consume("q")
    other.publish("q", b"1")
    assert lab.broker.is_congested
    lab.broker.is_congested = False
    peer.session.resume(lab.now)
    other.publish("q", b"2")
    assert not lab.broker.is_congested


# Batches


def outbox_bytes(peer: Peer) -> int:
    return sum(map(len, peer.session.outbox.pieces))


def test_a_big_backlog_to_a_no_ack_consumer_never_puts_more_than_a_batch_into_the_outbox(
    lab: Lab, peer: Peer, other: Peer
) -> None:
    size, count = 10_000, 200
    fill(other, "q", *[bytes(size)] * count)
    peer.send(Basic.Consume(queue="q", consumer_tag="c", no_ack=True))
    received = 0
    while True:
        assert outbox_bytes(peer) <= DRAIN_BYTES_MAX + 2 * size
        received += b"".join(peer.session.outbox.take()).count(b"\x00\x3c\x00\x3c")
        if not lab.broker.undrained:
            break
        lab.broker.drain_on()
    assert received == count


def test_small_messages_leave_in_batches(lab: Lab, peer: Peer, other: Peer) -> None:
    fill(other, "q", *[b""] * (2 * DRAIN_MESSAGES_MAX + 1))
    peer.send(Basic.Consume(queue="q", consumer_tag="c", no_ack=True, nowait=True))
    batches = [len(peer.deliveries())]
    while lab.broker.drain_on():
        batches.append(len(peer.deliveries()))
    assert batches[:2] == [DRAIN_MESSAGES_MAX] * 2
    assert sum(batches) + len(peer.deliveries()) == 2 * DRAIN_MESSAGES_MAX + 1


def test_a_message_published_between_two_batches_waits_for_its_turn(lab: Lab, peer: Peer, other: Peer) -> None:
    fill(other, "q", *[b"old"] * (DRAIN_MESSAGES_MAX + 1))
    peer.send(Basic.Consume(queue="q", consumer_tag="c", no_ack=True, nowait=True))
    other.publish("q", b"new")
    lab.drain()
    assert peer.bodies() == [b"old"] * (DRAIN_MESSAGES_MAX + 1) + [b"new"]


def test_a_queue_that_is_deleted_between_two_batches_is_forgotten(lab: Lab, peer: Peer, other: Peer) -> None:
    fill(other, "q", *[b""] * (DRAIN_MESSAGES_MAX + 1))
    peer.send(Basic.Consume(queue="q", consumer_tag="c", no_ack=True, nowait=True))
    other.send(Queue.Delete(queue="q"))
    assert not lab.broker.drain_on()
    assert len(peer.session.outbox.pieces) <= 4 * DRAIN_MESSAGES_MAX + 1


def test_a_consumer_that_pauses_between_two_batches_gets_the_rest_later(lab: Lab, peer: Peer, other: Peer) -> None:
    fill(other, "q", *[b""] * (DRAIN_MESSAGES_MAX + 5))
    peer.send(Basic.Consume(queue="q", consumer_tag="c", no_ack=True, nowait=True))
    peer.session.pause()
    lab.drain()
    assert len(peer.deliveries()) == DRAIN_MESSAGES_MAX
    peer.session.resume(lab.now)
    assert len(peer.deliveries()) == 5
