"""Delivery timeouts: a late consumer loses its channel, or since RabbitMQ 4.3 its subscription."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.policies import Policy
from tests.peer import CAPABILITIES, Lab, Peer

MINUTE_MS = 60_000
TEXT = (
    "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: {} ms. "
    "This timeout value can be configured, see consumers doc guide to learn more"
)


def consume(peer: Peer, **arguments: Any) -> None:
    """Consume from a queue with two messages, which are delivered."""
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    peer.declare("q", durable=True, arguments=given)
    for body in (b"1", b"2"):
        peer.publish("q", body)
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]


def test_a_channel_that_does_not_settle_in_time_is_closed(lab: Lab, peer: Peer) -> None:
    consume(peer)
    lab.advance(30 * MINUTE_MS)
    peer.expect_nothing()
    lab.advance(2 * MINUTE_MS)
    close = peer.expect(commands.Channel.Close)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 0, 0)
    assert close.reply_text == TEXT.format(1_800_000)
    assert lab.vhost.queues["q"].ready_count == 2


def test_a_channel_that_settles_in_time_stays_open(lab: Lab, peer: Peer) -> None:
    consume(peer)
    for tag in range(2, 80, 2):
        lab.advance(MINUTE_MS)
        peer.send(commands.Basic.Ack(tag, multiple=True))
        peer.publish("q", b"x")
        peer.publish("q", b"x")
        assert len(peer.deliveries()) == 2


def test_a_policy_may_shorten_or_lengthen_the_time(lab: Lab, peer: Peer) -> None:
    lab.vhost.policies.set(Policy("p", "^q", {"consumer-timeout": 5 * MINUTE_MS}))
    consume(peer)
    lab.advance(7 * MINUTE_MS)
    assert peer.expect_channel_close(406) == TEXT.format(300_000)
    peer.open_channel(1)
    lab.vhost.policies.set(Policy("p", "^q", {"consumer-timeout": 60 * MINUTE_MS}))
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    lab.advance(50 * MINUTE_MS)
    peer.expect_nothing()
    lab.advance(12 * MINUTE_MS)
    assert peer.expect_channel_close(406) == TEXT.format(3_600_000)


def test_the_smaller_timeout_of_queue_and_policy_applies(lab: Lab, peer: Peer) -> None:
    lab.vhost.policies.set(Policy("p", "^q", {"consumer-timeout": 60 * MINUTE_MS}))
    consume(peer, consumer_timeout=5 * MINUTE_MS)
    lab.advance(7 * MINUTE_MS)
    assert peer.expect_channel_close(406) == TEXT.format(300_000)


def test_the_oldest_message_decides(lab: Lab, peer: Peer) -> None:
    consume(peer)
    lab.advance(20 * MINUTE_MS)
    peer.publish("q", b"3")
    peer.send(commands.Basic.Ack(1))
    peer.bodies()
    lab.advance(12 * MINUTE_MS)
    peer.expect_channel_close(406)


def test_a_later_message_has_its_own_time(lab: Lab, peer: Peer) -> None:
    consume(peer)
    lab.advance(20 * MINUTE_MS)
    peer.publish("q", b"3")
    assert peer.bodies() == [b"3"]
    peer.send(commands.Basic.Ack(2, multiple=True))
    lab.advance(29 * MINUTE_MS)
    peer.expect_nothing()
    lab.advance(4 * MINUTE_MS)
    peer.expect_channel_close(406)


def test_a_queue_may_have_a_timeout_of_its_own(lab: Lab, peer: Peer) -> None:
    consume(peer, consumer_timeout=120_000)
    lab.advance(4 * MINUTE_MS)
    assert peer.expect_channel_close(406) == TEXT.format(120_000)


def test_a_timeout_of_0_is_no_timeout() -> None:
    lab = Lab(consumer_timeout_ms=0)
    peer = lab.connect()
    consume(peer)
    lab.advance(1000 * MINUTE_MS)
    peer.expect_nothing()


def test_since_4_3_a_classic_queue_has_no_timeout() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    consume(peer)
    lab.advance(100 * MINUTE_MS)
    peer.expect_nothing()


def test_since_4_3_a_consumer_of_a_quorum_queue_is_cancelled() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    consume(peer, queue_type="quorum")
    lab.advance(32 * MINUTE_MS)
    assert peer.expect(commands.Basic.Cancel).consumer_tag == "c"
    assert lab.vhost.queues["q"].ready_count == 2


def test_since_4_3_a_client_without_the_cancel_capability_loses_its_channel() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect(capabilities={**CAPABILITIES, "consumer_cancel_notify": False})
    consume(peer, queue_type="quorum")
    lab.advance(32 * MINUTE_MS)
    peer.expect_channel_close(406)


def test_since_4_3_a_message_from_get_that_times_out_closes_its_channel() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    lab.advance(32 * MINUTE_MS)
    assert peer.expect_channel_close(406) == TEXT.format(1_800_000)


@pytest.mark.parametrize("compat", ["3.13", "4.2"])
def test_the_number_of_time_marks_is_bounded(compat: str) -> None:
    lab = Lab(compat=compat)
    peer = lab.connect()
    consume(peer)
    channel = peer.session.channels[1]
    for tag in range(3, 40):
        lab.advance(MINUTE_MS)
        peer.publish("q", b"x")
        peer.bodies()
        peer.send(commands.Basic.Ack(tag - 1, multiple=True))
    assert len(channel.tag_marks) <= 2


def test_a_closed_connection_leaves_no_timer(lab: Lab, peer: Peer) -> None:
    consume(peer)
    peer.disconnect()
    lab.advance(100 * MINUTE_MS)
    assert lab.broker.timers.next_deadline() is None


@pytest.mark.parametrize("settle", [commands.Basic.Ack(1), commands.Basic.Reject(1, requeue=False)])
def test_a_rollback_does_not_restart_the_timeout_of_a_delivery(lab: Lab, peer: Peer, settle: Any) -> None:
    consume(peer)
    peer.call(commands.Tx.Select())
    peer.send(settle, commands.Basic.Ack(2))
    lab.advance(20 * MINUTE_MS)
    peer.call(commands.Tx.Rollback())
    lab.advance(12 * MINUTE_MS)
    peer.expect_channel_close(406)
