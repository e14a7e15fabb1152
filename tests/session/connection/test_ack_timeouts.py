"""Delivery timeouts: a late consumer loses its channel, or since RabbitMQ 4.3 its subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.scheduling.portions import WORK_MAX
from tests.peer import CAPABILITIES, Lab, Peer, publish_bytes

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


# Timeouts of quorum queues and consumers of their own, as seen in 4.3.6


@pytest.fixture
def late_lab() -> Lab:
    return Lab(compat="4.3")


@pytest.fixture
def late(late_lab: Lab) -> Peer:
    """A consumer whose two deliveries have timed out."""
    peer = late_lab.connect()
    consume(peer, queue_type="quorum", consumer_timeout=700)
    late_lab.advance(699)
    peer.expect_nothing()
    late_lab.advance(1)
    assert peer.expect(commands.Basic.Cancel).consumer_tag == "c"
    return peer


def redelivered(peer: Peer) -> list[tuple[bytes, bool, FieldTable | None]]:
    return [
        (content.body, bool(deliver.redelivered), content.properties.headers) for deliver, content in peer.deliveries()
    ]


def test_a_quorum_queue_may_have_a_timeout_of_its_own_that_is_exact(late_lab: Lab, late: Peer) -> None:
    queue = late_lab.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count, len(queue.consumers)) == (2, 0, 1)
    got = late_lab.connect().get("q")
    assert got is not None
    assert (got[1].body, got[0].redelivered, got[1].properties.headers) == (b"1", True, {"x-acquired-count": 1})


def test_a_late_consumer_gets_messages_again_when_it_has_settled_all_late_ones(late_lab: Lab, late: Peer) -> None:
    late.send(commands.Basic.Ack(1))
    late.publish("q", b"3")
    late.expect_nothing()
    late.send(commands.Basic.Nack(2, requeue=True))
    returned = {"x-acquired-count": 1}
    assert redelivered(late) == [(b"1", True, returned), (b"2", True, returned), (b"3", False, None)]
    late.send(commands.Basic.Ack(5, multiple=True))
    queue = late_lab.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (0, 0)


def test_the_consumer_tag_of_a_late_consumer_stays_in_use_until_the_client_cancels_it(late: Peer) -> None:
    late.send(commands.Basic.Cancel("c"))
    late.expect(commands.Basic.CancelOk)
    late.send(commands.Basic.Consume(queue="q", consumer_tag="c"))
    late.expect(commands.Basic.ConsumeOk)
    assert [body for body, _, _ in redelivered(late)] == [b"1", b"2"]


def test_only_deliveries_that_are_late_return(late_lab: Lab) -> None:
    peer = late_lab.connect()
    consume(peer, queue_type="quorum", consumer_timeout=700)
    late_lab.advance(400)
    peer.publish("q", b"3")
    peer.send(commands.Basic.Ack(1))
    assert peer.bodies() == [b"3"]
    late_lab.advance(300)
    peer.expect(commands.Basic.Cancel)
    queue = late_lab.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (1, 1)
    late_lab.advance(400)
    peer.expect(commands.Basic.Cancel)
    assert (queue.ready_count, queue.unacked_count) == (2, 0)


def test_a_consumer_has_its_own_timeout_before_that_of_the_queue(late_lab: Lab) -> None:
    peer = late_lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 500})
    peer.publish("q", b"1")
    peer.send(commands.Basic.Consume(queue="q", consumer_tag="c", arguments={"x-consumer-timeout": 90_000}))
    peer.expect(commands.Basic.ConsumeOk)
    assert peer.bodies() == [b"1"]
    late_lab.advance(89_999)
    peer.expect_nothing()
    late_lab.advance(1)
    peer.expect(commands.Basic.Cancel)


def test_the_policy_sets_the_timeout_when_the_consumer_begins(late_lab: Lab) -> None:
    late_lab.vhost.policies.set(Policy("p", "^q", {"consumer-timeout": 700}))
    peer = late_lab.connect()
    consume(peer, queue_type="quorum")
    late_lab.vhost.policies.set(Policy("p", "^q", {"consumer-timeout": 100}))
    late_lab.advance(699)
    peer.expect_nothing()
    late_lab.advance(1)
    peer.expect(commands.Basic.Cancel)


def test_a_message_from_get_has_the_timeout_of_its_queue(late_lab: Lab) -> None:
    peer = late_lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    late_lab.advance(699)
    peer.expect_nothing()
    late_lab.advance(1)
    assert peer.expect_channel_close(406) == TEXT.format(-1)
    got = late_lab.connect().get("q")
    assert got is not None
    assert got[1].properties.headers == {"x-acquired-count": 1}


def test_a_single_active_consumer_that_is_late_hands_over(late_lab: Lab) -> None:
    one, two = late_lab.connect(), late_lab.connect()
    consume(one, queue_type="quorum", single_active_consumer=True, consumer_timeout=700)
    two.consume("q")
    two.expect_nothing()
    late_lab.advance(700)
    one.expect(commands.Basic.Cancel)
    assert two.bodies() == [b"1", b"2"]
    two.publish("q", b"3")
    assert two.bodies() == [b"3"]


@pytest.mark.parametrize("close", [Peer.disconnect, lambda peer: peer.call(commands.Channel.Close(200, "", 0, 0))])
def test_a_closed_channel_leaves_no_deadline(late_lab: Lab, close: Callable[[Peer], Any]) -> None:
    peer = late_lab.connect()
    consume(peer, queue_type="quorum", consumer_timeout=700)
    close(peer)
    late_lab.advance(1000)
    assert peer.session.channels == {}
    assert late_lab.vhost.queues["q"].ready_count == 2


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
    assert peer.expect_channel_close(406) == TEXT.format(-1)


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
    assert len(channel.unacked.marks) <= 2


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


def test_a_delivery_that_was_settled_after_a_rollback_does_not_time_out(late_lab: Lab) -> None:
    peer = late_lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    other = late_lab.connect()
    for body in (b"1", b"2"):
        other.publish("q", body)
    peer.call(commands.Tx.Select())
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    peer.send(commands.Basic.Ack(1))
    peer.call(commands.Tx.Rollback())
    peer.send(commands.Basic.Ack(2, multiple=True))
    peer.call(commands.Tx.Commit())
    late_lab.advance(700)
    peer.expect_nothing()


@pytest.mark.parametrize("settle", [commands.Basic.Ack(1), commands.Basic.Reject(1, requeue=False)])
def test_a_rollback_after_the_deadline_times_out(late_lab: Lab, settle: Any) -> None:
    peer = late_lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    late_lab.connect().publish("q", b"1")
    peer.call(commands.Tx.Select())
    peer.consume("q")
    assert peer.bodies() == [b"1"]
    peer.send(settle)
    late_lab.advance(800)
    peer.expect_nothing()
    peer.call(commands.Tx.Rollback())
    late_lab.advance(1)
    peer.expect(commands.Basic.Cancel)


@pytest.mark.parametrize("arguments", [{}, {"x-consumer-timeout": 1_800_000}])
def test_thousands_of_deliveries_time_out_in_several_turns_with_one_cancel(arguments: dict[str, Any]) -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", **arguments})
    peer.send_bytes(publish_bytes("q", b"x") * 9000)
    lab.drain()
    peer.send(commands.Basic.Consume(queue="q", consumer_tag="c"))
    lab.drain()
    channel, queue = peer.session.channels[1], lab.vhost.queues["q"]
    (consumer,) = channel.consumers.values()
    peer.expect(commands.Basic.ConsumeOk)
    assert len(peer.bodies()) == 9000
    lab.advance(31 * MINUTE_MS)
    turns = 1
    # It settles the last one before its turn comes, and a late one.
    peer.send(commands.Basic.Ack(9000))
    while lab.broker.drain_on():
        assert lab.broker.work < 2 * WORK_MAX
        turns += 1
    assert turns > 3
    assert peer.expect(commands.Basic.Cancel).consumer_tag == "c"
    peer.expect_nothing()
    assert (queue.ready_count, queue.unacked_count, len(channel.unacked.deliveries)) == (8999, 0, 0)
    assert consumer.timed_out_tags == set(range(1, 9000))
    peer.send(commands.Basic.Ack(0, multiple=True))
    lab.drain()
    assert len(channel.unacked.deliveries) == 8999


def test_a_connection_that_is_lost_while_its_deliveries_time_out_returns_them_once() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.send_bytes(publish_bytes("q", b"x") * 9000)
    lab.drain()
    peer.send(commands.Basic.Consume(queue="q", consumer_tag="c"))
    lab.drain()
    lab.advance(32 * MINUTE_MS)
    peer.disconnect()
    lab.drain()
    queue = lab.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count, len(queue.consumers)) == (9000, 0, 0)
