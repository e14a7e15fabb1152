"""A consumer with the tag of a cancelled one settles what that one has left."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Queue, Tx

from tests.peer import Lab, Peer


def fill(peer: Peer, queue_type: str, count: int) -> None:
    peer.call(Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": queue_type}))
    for number in range(count):
        peer.publish("q", b"%d" % number)


def qos(peer: Peer, count: int) -> None:
    peer.call(Basic.Qos(prefetch_count=count))


def cancel_and_consume(peer: Peer, tag: str = "c", prefetch: int | None = None) -> None:
    peer.call(Basic.Cancel("c"))
    if prefetch is not None:
        qos(peer, prefetch)
    peer.consume("q", tag)


def consumer_count(peer: Peer) -> int | None:
    return peer.declare("q", passive=True).consumer_count


@pytest.fixture
def quorum(peer: Peer) -> Peer:
    """A client that consumes from a quorum queue of 9 with a prefetch of 2, and holds 0 and 1."""
    fill(peer, "quorum", 9)
    qos(peer, 2)
    peer.consume("q", "c")
    assert peer.bodies() == [b"0", b"1"]
    return peer


def test_in_a_quorum_queue_what_is_left_counts_for_the_prefetch(quorum: Peer) -> None:
    cancel_and_consume(quorum)
    assert quorum.bodies() == []
    quorum.send(Basic.Ack(1))
    assert quorum.bodies() == [b"2"]
    quorum.send(Basic.Ack(0, multiple=True))
    assert quorum.bodies() == [b"3", b"4"]


@pytest.mark.parametrize("settle", [Basic.Nack(1, requeue=False), Basic.Reject(1, requeue=False)])
def test_messages_that_are_left_may_be_rejected(quorum: Peer, settle: Basic.Nack | Basic.Reject) -> None:
    cancel_and_consume(quorum)
    quorum.send(settle)
    assert quorum.bodies() == [b"2"]


@pytest.mark.parametrize(
    ("prefetch", "bodies"), [(1, []), (3, [b"2"]), (0, [b"%d" % number for number in range(2, 9)])]
)
def test_a_new_prefetch_applies_to_what_is_left(quorum: Peer, prefetch: int, bodies: list[bytes]) -> None:
    cancel_and_consume(quorum, prefetch=prefetch)
    assert quorum.bodies() == bodies


def test_each_settled_message_beyond_a_smaller_prefetch_allows_another_in_a_quorum_queue(quorum: Peer) -> None:
    """Seen at RabbitMQ 4.0.5 and 4.3.6; 3.10.8 crashes."""
    cancel_and_consume(quorum, prefetch=1)
    quorum.send(Basic.Ack(1))
    assert quorum.bodies() == [b"2"]
    quorum.send(Basic.Ack(2))
    assert quorum.bodies() == [b"3"]


def test_messages_that_are_left_come_back_in_the_turn_of_the_former_consumer(lab: Lab, quorum: Peer) -> None:
    quorum.call(Basic.Cancel("c"))
    quorum.consume("q", "d")
    assert quorum.bodies() == [b"2", b"3"]
    quorum.consume("q", "c")
    quorum.call(Channel.Close(200, "", 0, 0))
    other = lab.connect()
    other.consume("q", "e")
    assert other.bodies()[:4] == [b"0", b"1", b"2", b"3"]


def test_under_another_tag_nothing_counts(quorum: Peer) -> None:
    cancel_and_consume(quorum, "d")
    assert quorum.bodies() == [b"2", b"3"]


def test_on_another_channel_nothing_counts(quorum: Peer) -> None:
    quorum.call(Basic.Cancel("c"))
    quorum.open_channel(2)
    quorum.call(Basic.Qos(prefetch_count=2), channel=2)
    quorum.consume("q", "c", channel=2)
    assert quorum.bodies(2) == [b"2", b"3"]


def test_a_cancelled_consumer_counts_until_all_is_settled_or_another_follows(quorum: Peer) -> None:
    quorum.call(Basic.Cancel("c"))
    assert consumer_count(quorum) == 1
    quorum.consume("q", "c")
    assert consumer_count(quorum) == 1
    quorum.call(Basic.Cancel("c"))
    quorum.consume("q", "d")
    quorum.deliveries()
    assert consumer_count(quorum) == 2
    quorum.send(Basic.Ack(2, multiple=True))
    assert consumer_count(quorum) == 1


def test_a_cancelled_consumer_is_forgotten_with_its_channel(lab: Lab, quorum: Peer) -> None:
    quorum.call(Basic.Cancel("c"))
    quorum.call(Channel.Close(200, "", 0, 0))
    assert lab.vhost.queues["q"].consumer_count == 0


def test_messages_that_a_transaction_has_settled_count_until_the_commit(quorum: Peer) -> None:
    quorum.call(Tx.Select())
    quorum.send(Basic.Ack(1), Basic.Nack(2, requeue=False))
    cancel_and_consume(quorum)
    assert quorum.bodies() == []
    quorum.call(Tx.Commit())
    assert quorum.bodies() == [b"2", b"3"]


def test_a_consumer_without_acks_counts_with_the_one_that_it_follows(quorum: Peer) -> None:
    """Seen at RabbitMQ 4.0.5 and 4.3.6."""
    quorum.call(Basic.Cancel("c"))
    quorum.consume("q", "c", no_ack=True)
    assert quorum.bodies() == [b"%d" % number for number in range(2, 9)]
    assert consumer_count(quorum) == 1
    quorum.send(Basic.Ack(1, multiple=True))
    quorum.send(Basic.Ack(2))
    assert consumer_count(quorum) == 1


@pytest.mark.parametrize("queue_type", ["classic", "stream"])
def test_in_other_queues_each_message_that_is_left_allows_one_more(peer: Peer, queue_type: str) -> None:
    """Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    fill(peer, queue_type, 9)
    qos(peer, 2)
    offset = {"x-stream-offset": "first"} if queue_type == "stream" else {}
    peer.consume("q", "c", arguments=offset)
    peer.deliveries()
    peer.call(Basic.Cancel("c"))
    peer.consume("q", "c", arguments=offset)
    assert len(peer.bodies()) == 2
    for tag in (1, 2, 3):
        peer.send(Basic.Ack(tag))
        assert len(peer.bodies()) == 1


def test_acks_are_counted_once(lab: Lab, quorum: Peer) -> None:
    cancel_and_consume(quorum)
    quorum.send(Basic.Ack(1))
    quorum.deliveries()
    lab.broker.collect_counts()
    deliveries = lab.vhost.queues["q"].statistics.deliveries
    assert (deliveries.deliver, deliveries.ack) == (3, 1)
