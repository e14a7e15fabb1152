"""Quorum queues: what they count, how they give back, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.peer import Lab, Peer
from tests.present import present


def declare(peer: Peer, queue: str = "q", **arguments: Any) -> None:
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    peer.declare(queue, durable=True, arguments={"x-queue-type": "quorum", **given})


def pull(peer: Peer) -> tuple[int, bytes, bool, int | None]:
    """The next message: its tag and body, whether it came back, and the count it tells."""
    pulled = peer.get("q", no_ack=False)
    assert pulled is not None
    ok, content = pulled
    headers: dict[str, Any] = content.properties.headers or {}
    return present(ok.delivery_tag), content.body, ok.redelivered, headers.get("x-delivery-count")


def nack(peer: Peer, *tags: int) -> None:
    for tag in tags:
        peer.send(commands.Basic.Nack(tag, requeue=True))


def test_a_message_has_the_number_of_its_returns(peer: Peer) -> None:
    declare(peer)
    peer.publish("q", b"x", headers={"a": 1})
    assert pull(peer) == (1, b"x", False, None)
    nack(peer, 1)
    assert pull(peer) == (2, b"x", True, 1)
    nack(peer, 2)
    assert pull(peer) == (3, b"x", True, 2)


def test_a_message_that_went_behind_all_others_is_shown_as_delivered_before(peer: Peer) -> None:
    declare(peer, delivery_limit=-1)
    for body in (b"1", b"2"):
        peer.publish("q", body)
    assert pull(peer) == (1, b"1", False, None)
    nack(peer, 1)
    queue = peer.lab.vhost.queues["q"]
    assert [(message.body, redelivered) for _, message, redelivered in queue.peek()] == [(b"2", False), (b"1", True)]


def test_returned_messages_are_served_first_in_the_order_of_their_return(peer: Peer) -> None:
    declare(peer)
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish("q", body)
    for _ in range(3):
        pull(peer)
    nack(peer, 3, 1, 2)
    assert [pull(peer)[1] for _ in range(4)] == [b"3", b"1", b"2", b"4"]


def test_without_a_delivery_limit_returned_messages_are_served_last(peer: Peer) -> None:
    declare(peer, delivery_limit=-1, message_ttl=60_000)
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    pull(peer)
    nack(peer, 1)
    assert [pull(peer)[1:] for _ in range(3)] == [(b"2", False, None), (b"3", False, None), (b"1", True, 1)]


def test_a_message_returned_to_the_end_keeps_its_deadline() -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, delivery_limit=-1, message_ttl=1000)
    peer.publish("q", b"x")
    pull(peer)
    lab.advance(600)
    nack(peer, 1)
    lab.advance(600)
    assert peer.get("q") is None


@pytest.mark.parametrize(("compat", "deliveries"), [("3.13", 30), ("4.2", 21), ("4.3", 21)])
def test_since_4_0_a_message_may_be_returned_20_times(compat: str, deliveries: int) -> None:
    peer = Lab(compat=compat).connect()
    declare(peer)
    peer.publish("q", b"poison")
    count = 0
    while count < 30 and peer.get("q", no_ack=False) is not None:
        count += 1
        peer.send(commands.Basic.Reject(count, requeue=True))
    assert count == deliveries


def test_a_message_beyond_the_delivery_limit_is_dead_lettered_without_its_count(peer: Peer) -> None:
    peer.declare("dead")
    declare(peer, delivery_limit=1, dead_letter_exchange="", dead_letter_routing_key="dead")
    peer.publish("q", b"poison")
    for tag in (1, 2):
        pull(peer)
        nack(peer, tag)
    dead = peer.get("dead")
    assert dead is not None
    assert present(dead[1].properties.headers)["x-first-death-reason"] == "delivery_limit"
    assert "x-delivery-count" not in present(dead[1].properties.headers)


def test_a_rejected_message_is_dead_lettered_without_its_count(peer: Peer) -> None:
    peer.declare("dead")
    declare(peer, dead_letter_exchange="", dead_letter_routing_key="dead")
    peer.publish("q", b"x")
    peer.consume("q")
    peer.expect_delivery()
    nack(peer, 1)
    assert peer.expect_delivery()[1].properties.headers == {"x-delivery-count": 1}
    peer.send(commands.Basic.Reject(2, requeue=False))
    dead = peer.get("dead")
    assert dead is not None
    assert "x-delivery-count" not in present(dead[1].properties.headers)


@pytest.mark.parametrize(
    ("strategy", "overflow"),
    [("at-most-once", "drop-head"), ("at-least-once", "drop-head"), ("at-least-once", "reject-publish")],
)
def test_dead_letters_arrive_with_both_strategies(peer: Peer, strategy: str, overflow: str) -> None:
    """RabbitMQ takes at-least-once for at-most-once where the queue does not reject what is too much."""
    peer.declare("dead")
    given = {"dead_letter_exchange": "", "dead_letter_routing_key": "dead"}
    declare(peer, **given, dead_letter_strategy=strategy, overflow=overflow, max_length=1)
    peer.call(commands.Confirm.Select())
    peer.publish("q", b"1")
    peer.expect(commands.Basic.Ack)
    peer.publish("q", b"2")
    peer.expect(commands.Basic.Ack)
    pull(peer)
    peer.send(commands.Basic.Reject(1, requeue=False))
    dead = []
    while (letter := peer.get("dead")) is not None:
        dead.append((letter[1].body, present(letter[1].properties.headers)["x-first-death-reason"]))
    assert dead == ([(b"1", "rejected")] if overflow == "reject-publish" else [(b"1", "maxlen"), (b"2", "rejected")])


def test_a_delivery_limit_that_is_no_number_is_no_limit(peer: Peer) -> None:
    peer.call(
        commands.Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": "5"})
    )
    peer.publish("q", b"m")
    for _ in range(25):
        tag, *_ = pull(peer)
        peer.send(commands.Basic.Reject(delivery_tag=tag, requeue=True))
    assert pull(peer)[1] == b"m"


def test_a_quorum_queue_must_be_named_by_the_client(peer: Peer) -> None:
    peer.send(commands.Queue.Declare(queue="", durable=True, arguments={"x-queue-type": "quorum"}))
    text = peer.expect_channel_close(406)
    assert text == "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_quorum_queue"


def test_the_default_type_counts_for_a_queue_without_a_name() -> None:
    """rabbit_channel.erl 4.0.5 and 4.3.6: the type is added (augment_declare_args) before a name is."""
    peer = Lab(default_queue_type="quorum").connect()
    assert peer.call(commands.Queue.Declare(queue="", exclusive=True)).queue.startswith("amq.gen-")
    peer.send(commands.Queue.Declare(queue="", durable=True))
    text = peer.expect_channel_close(406)
    assert text == "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_quorum_queue"


@pytest.mark.parametrize("flag", ["if_unused", "if_empty"])
def test_deleting_a_quorum_queue_conditionally_is_refused(peer: Peer, flag: str) -> None:
    declare(peer)
    peer.send(commands.Queue.Delete(queue="q", **{flag: True}))
    text = peer.expect_connection_close(540)
    assert f"queue.delete operations with {flag.replace('_', '-')} flag set are not supported" in text


def test_a_consumer_under_a_global_prefetch_is_refused(peer: Peer) -> None:
    declare(peer)
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    peer.send(commands.Basic.Consume(queue="q"))
    text = peer.expect_connection_close(540)
    assert text == "NOT_IMPLEMENTED - queue 'q' in vhost '/' does not support global qos"


def test_with_a_single_active_consumer_basic_get_is_refused(peer: Peer) -> None:
    declare(peer, single_active_consumer=True)
    peer.send(commands.Basic.Get(queue="q"))
    assert "are not supported by quorum queues with single active consumer" in peer.expect_channel_close(405)


def test_a_quorum_queue_ignores_the_exclusive_flag_of_consumers(peer: Peer) -> None:
    declare(peer)
    peer.consume("q", "one", exclusive=True)
    peer.consume("q", "two", exclusive=True)


def test_returned_messages_are_listed_and_purged(peer: Peer) -> None:
    declare(peer)
    for body in (b"1", b"2"):
        peer.publish("q", body)
    pull(peer)
    nack(peer, 1)
    queue = peer.lab.vhost.queues["q"]
    assert [message.body for message in queue.messages()] == [b"1", b"2"]
    assert peer.call(commands.Queue.Purge(queue="q")).message_count == 2
    assert queue.ready_count == 0


def test_a_purge_drops_the_counts_of_ready_messages_only() -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, delivery_limit=-1)
    for body in (b"a", b"b"):
        peer.publish("q", body)
    for _ in range(2):
        nack(peer, pull(peer)[0])
    tag = pull(peer)[0]
    peer.call(commands.Queue.Purge(queue="q"))
    queue = lab.vhost.queues["q"]
    assert list(queue.counts.returns.values()) == [1]
    peer.send(commands.Basic.Ack(tag))
    assert not queue.counts.returns


def test_consumers_that_wait_to_become_the_active_one_are_not_counted(peer: Peer) -> None:
    declare(peer, single_active_consumer=True)
    for tag, count in (("first", 0), ("second", 1), ("third", 1)):
        assert peer.declare("q", passive=True).consumer_count == count
        peer.call(commands.Basic.Consume(queue="q", consumer_tag=tag))
    peer.call(commands.Basic.Cancel(consumer_tag="first"))
    assert peer.declare("q", passive=True).consumer_count == 1


@pytest.mark.parametrize("requeue", [True, False])
def test_an_unacked_get_counts_as_a_consumer_until_it_is_settled(peer: Peer, requeue: bool) -> None:
    dying = {"dead_letter_exchange": "", "dead_letter_strategy": "at-least-once", "overflow": "reject-publish"}
    declare(peer, **dying)
    counts = []

    def count() -> None:
        counts.append(peer.declare("q", passive=True).consumer_count)

    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    assert peer.get("q") is not None
    count()
    first, second = pull(peer)[0], pull(peer)[0]
    count()
    peer.send(commands.Basic.Ack(first))
    count()
    peer.send(commands.Basic.Reject(second, requeue=requeue))
    count()
    assert counts == [0, 2, 1, 0]
