"""basic.consume and cancel: who gets which message, when, and what else is said."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import frame
from pamqp.commands import Basic, Connection, Queue

from amqp_broker.broker.queues.queue import DRAIN_MESSAGES_MAX
from tests.peer import Lab, Peer, publish_bytes
from tests.present import present
from tests.session.filling import fill


def tags_and_bodies(peer: Peer, channel: int = 1) -> list[tuple[str, bytes]]:
    return [(present(deliver.consumer_tag), content.body) for deliver, content in peer.deliveries(channel)]


# Subscribing


def test_a_consumer_gets_ready_and_new_messages(peer: Peer) -> None:
    peer.declare("q")
    fill(peer, b"there")
    peer.consume("q")
    fill(peer, b"later")
    assert peer.bodies() == [b"there", b"later"]


def test_consume_ok_comes_before_the_first_delivery(peer: Peer) -> None:
    peer.declare("q")
    fill(peer, b"1")
    peer.send(Basic.Consume(queue="q", consumer_tag="c"))
    assert peer.expect(Basic.ConsumeOk).consumer_tag == "c"
    assert peer.bodies() == [b"1"]


def test_the_broker_chooses_a_missing_consumer_tag(peer: Peer) -> None:
    peer.declare("q")
    tags = {peer.call(Basic.Consume(queue="q")).consumer_tag for _ in range(3)}
    assert len(tags) == 3
    assert all(tag.startswith("amq.ctag-") and len(tag) == len("amq.ctag-") + 22 for tag in tags)


@pytest.mark.parametrize("tag", ["x" * 255, "é" * 127, " ", "amq.ctag-mine"])
def test_a_consumer_tag_may_be_any_octets(peer: Peer, tag: str) -> None:
    peer.declare("q")
    peer.consume("q", tag)
    fill(peer, b"1")
    assert tags_and_bodies(peer) == [(tag, b"1")]


def test_a_tag_in_use_on_the_channel_closes_the_connection_whatever_the_queue(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q", "same")
    peer.send(Basic.Consume(queue="missing", consumer_tag="same"))
    assert peer.expect_connection_close(530) == "NOT_ALLOWED - attempt to reuse consumer tag 'same'"


def test_a_tag_may_be_used_on_several_channels_and_again_after_a_cancel(peer: Peer) -> None:
    peer.open_channel(2)
    peer.declare("q")
    for _ in range(2):
        peer.consume("q", "same", channel=1)
        peer.consume("q", "same", channel=2)
        for number in (1, 2):
            peer.call(Basic.Cancel("same"), channel=number)


def test_no_local_has_no_effect(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q", no_local=True)
    fill(peer, b"mine")
    assert peer.bodies() == [b"mine"]


@pytest.mark.parametrize(
    ("value", "kind"), [("high", "longstr"), (1.5, "float"), (True, "bool"), (None, "void"), ([], "array")]
)
def test_a_priority_must_be_a_number(peer: Peer, value: Any, kind: str) -> None:
    peer.declare("q")
    peer.send(Basic.Consume(queue="q", arguments={"x-priority": value}))
    text = (
        f"PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got {kind}\""
    )
    assert peer.expect_channel_close(406) == text


def test_unknown_arguments_are_ignored(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q", arguments={"x-unknown": 1, "unknown": "x"})


# Rotation


def test_consumers_take_turns(lab: Lab, peer: Peer, other: Peer) -> None:
    peer.declare("q")
    peer.open_channel(2)
    peer.consume("q", "one", channel=1)
    other.consume("q", "two")
    peer.consume("q", "three", channel=2)
    fill(lab.connect(), b"1", b"2", b"3", b"4")
    assert tags_and_bodies(other) == [("two", b"2")]
    assert peer.expect_delivery(channel=1)[1].body == b"1"
    assert peer.expect_delivery(channel=2)[1].body == b"3"
    assert peer.expect_delivery(channel=1)[1].body == b"4"


def test_consumers_take_turns_at_a_backlog(lab: Lab, peer: Peer, other: Peer) -> None:
    peer.declare("q")
    peer.send_bytes(publish_bytes("q", b"portion") * DRAIN_MESSAGES_MAX)
    fill(peer, b"1", b"2", b"3", b"4")
    peer.consume("q")
    assert peer.bodies() == [b"portion"] * DRAIN_MESSAGES_MAX
    other.consume("q")
    lab.drain()
    assert (peer.bodies(), other.bodies()) == ([b"1", b"3"], [b"2", b"4"])


def test_consumers_of_higher_priority_come_first(peer: Peer, other: Peer) -> None:
    peer.declare("q")
    peer.consume("q", "low", arguments={"x-priority": -1})
    peer.consume("q", "middle")
    other.call(Basic.Qos(prefetch_count=2))
    other.consume("q", "high", arguments={"x-priority": 1_000_000})
    fill(peer, b"1", b"2", b"3", b"4")
    assert tags_and_bodies(other) == [("high", b"1"), ("high", b"2")]
    assert tags_and_bodies(peer) == [("middle", b"3"), ("middle", b"4")]
    other.send(Basic.Ack(1))
    peer.call(Basic.Cancel("middle"))
    fill(peer, b"5", b"6")
    assert tags_and_bodies(other) == [("high", b"5")]
    assert tags_and_bodies(peer) == [("low", b"6")]


def test_consumers_of_equal_priority_take_turns(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q", "low")
    for tag in ("a", "b"):
        peer.consume("q", tag, arguments={"x-priority": 5})
    fill(peer, b"1", b"2", b"3")
    assert [tag for tag, _ in tags_and_bodies(peer)] == ["a", "b", "a"]


# Exclusive


def test_an_exclusive_consumer_prevents_others_until_it_leaves(peer: Peer, other: Peer) -> None:
    peer.declare("q")
    peer.consume("q", exclusive=True)
    for exclusive in (False, True):
        other.send(Basic.Consume(queue="q", exclusive=exclusive))
        assert other.expect_channel_close(403) == "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
        other.open_channel(1)
    assert other.get("q") is None
    peer.call(Basic.Cancel("c"))
    other.consume("q", exclusive=True)


def test_a_queue_with_consumers_takes_no_exclusive_one(peer: Peer, other: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    other.send(Basic.Consume(queue="q", exclusive=True))
    assert other.expect_channel_close(403) == "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"


def test_the_loss_of_an_exclusive_consumer_admits_others(peer: Peer, other: Peer) -> None:
    peer.declare("q")
    peer.consume("q", exclusive=True)
    peer.disconnect()
    other.consume("q")


# Cancelling


def test_a_cancelled_consumer_gets_no_more_but_keeps_its_messages(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    fill(peer, b"1", b"2")
    assert peer.bodies() == [b"1", b"2"]
    assert peer.call(Basic.Cancel("c")).consumer_tag == "c"
    fill(peer, b"3")
    peer.expect_nothing()
    peer.send(Basic.Ack(1), Basic.Nack(2, requeue=True))
    got = peer.get("q")
    assert got is not None
    assert (got[0].redelivered, got[1].body) == (True, b"2")
    assert lab.vhost.queues["q"].unacked_count == 0


@pytest.mark.parametrize("tag", ["unknown", ""])
def test_cancelling_an_unknown_consumer_succeeds(peer: Peer, tag: str) -> None:
    assert peer.call(Basic.Cancel(tag)).consumer_tag == tag


def test_a_consumer_of_another_channel_is_unknown(peer: Peer) -> None:
    peer.open_channel(2)
    peer.declare("q")
    peer.consume("q", channel=1)
    peer.call(Basic.Cancel("c"), channel=2)
    fill(peer, b"1")
    assert peer.bodies() == [b"1"]


def test_nothing_is_delivered_after_cancel_ok(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    peer.send_bytes(publish_bytes("q", b"1") + frame.marshal(Basic.Cancel("c"), 1) + publish_bytes("q", b"2"))
    assert peer.expect_delivery()[1].body == b"1"
    peer.expect(Basic.CancelOk)
    peer.expect_nothing()


# The broker cancels


def test_delete_ok_precedes_the_cancel_of_the_same_clients_consumer(peer: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    peer.send(Queue.Delete(queue="q"))
    peer.expect(Queue.DeleteOk)
    peer.expect(Basic.Cancel)


def test_a_consumer_that_was_cancelled_can_begin_again(peer: Peer, other: Peer) -> None:
    other.declare("q")
    peer.consume("q")
    other.call(Queue.Delete(queue="q"))
    peer.expect(Basic.Cancel)
    peer.declare("q")
    peer.consume("q")
    fill(peer, b"1")
    assert peer.bodies() == [b"1"]


def test_answering_the_brokers_cancel_closes_the_connection(peer: Peer, other: Peer) -> None:
    other.declare("q")
    peer.consume("q")
    other.call(Queue.Delete(queue="q"))
    peer.expect(Basic.Cancel)
    peer.send(Basic.CancelOk("c"))
    assert peer.expect_connection_close(503) == "COMMAND_INVALID - unimplemented method"


def test_deleting_an_exclusive_queue_cancels_no_other_consumer(lab: Lab, peer: Peer, other: Peer) -> None:
    peer.declare("q", exclusive=True)
    peer.consume("q")
    peer.session.force_close("shutdown", lab.now)
    assert peer.expect_connection_close(320)
    peer.expect_nothing()


# No acks


def test_consuming_from_a_missing_queue_closes_the_channel(lab: Lab, peer: Peer) -> None:
    peer.send(Basic.Consume(queue="missing", consumer_tag="c"))
    assert peer.expect_channel_close(404) == "NOT_FOUND - no queue 'missing' in vhost '/'"
    peer.call(Connection.UpdateSecret("x", "y"), channel=0)
    assert not peer.session.channels


def test_the_consumers_of_a_channel_are_limited() -> None:
    """rabbit_channel.erl, since 3.12: a tag in use is reported before permissions are checked."""
    lab = Lab(consumer_max_per_channel=2)
    peer = lab.connect()
    peer.declare("q")
    for tag in ("a", "b"):
        peer.consume("q", tag)
    peer.call(Basic.Cancel("a"))
    peer.consume("q", "c")
    peer.open_channel(2)
    peer.consume("q", "a", channel=2)
    peer.send(Basic.Consume(queue="missing", consumer_tag="d"))
    assert peer.expect_connection_close(530) == "NOT_ALLOWED - reached maximum (2) of consumers per channel"


def test_a_consumer_of_direct_replies_counts_towards_the_limit() -> None:
    peer = Lab(consumer_max_per_channel=1).connect()
    peer.declare("q")
    peer.consume("q", "a")
    peer.send(Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True))
    assert peer.expect_connection_close(530) == "NOT_ALLOWED - reached maximum (1) of consumers per channel"
