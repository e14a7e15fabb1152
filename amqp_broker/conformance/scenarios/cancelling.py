"""Consumers that are cancelled while they hold messages, and consumers that follow them.

A broker knows a consumer by its channel and tag: another one with the same tag settles what the former one holds. In a
quorum queue that counts for its prefetch; in other queues each settled message allows another delivery.
"""

from __future__ import annotations

from pamqp.commands import Basic, Channel, Queue

from amqp_broker.conformance import scenario_channel
from amqp_broker.conformance.lab import Lab, scenario


def _held(lab: Lab, kind: str, prefetch: int = 1, **arguments: object) -> tuple[scenario_channel.Channel, str]:
    """Return a channel whose consumer c holds as many of 9 messages as it may, and the queue."""
    q = lab.queue(durable=True, arguments={"x-queue-type": kind, **arguments})
    lab.put(q, *(b"%d" % number for number in range(9)))
    channel = lab.channel()
    channel.call(Basic.Qos, prefetch_count=prefetch)
    channel.consume(q, "c", arguments={"x-stream-offset": "first"} if kind == "stream" else {})
    channel.deliveries(prefetch)
    return channel, q


def _cancelled(lab: Lab, kind: str, prefetch: int = 1) -> tuple[scenario_channel.Channel, str]:
    """Return a channel whose consumer c was cancelled while it held messages, and the queue."""
    channel, q = _held(lab, kind, prefetch)
    channel.call(Basic.Cancel, consumer_tag="c")
    return channel, q


def _look(lab: Lab, queue: str) -> None:
    """Show the length and the consumers of a queue."""
    with lab.transcript.muted():
        channel = lab.channel()
    channel.sync(queue)
    channel.call(Queue.Declare, queue=queue, passive=True)


@scenario
def in_a_quorum_queue_messages_of_a_cancelled_consumer_count_for_the_next(lab: Lab) -> None:
    channel, q = _cancelled(lab, "quorum")
    channel.consume(q, "c")
    channel.sync(q)
    channel.ack(1)
    channel.deliveries(1)
    channel.ack(2)
    channel.deliveries(1)


@scenario
def in_a_classic_queue_each_message_of_a_cancelled_consumer_allows_the_next_one_more(lab: Lab) -> None:
    channel, q = _cancelled(lab, "classic", prefetch=2)
    channel.consume(q, "c")
    channel.deliveries(2)
    for tag in (1, 2, 3):
        channel.ack(tag)
        channel.deliveries(1)
    channel.sync(q)


@scenario
def in_a_stream_each_message_of_a_cancelled_consumer_allows_the_next_one_more(lab: Lab) -> None:
    channel, q = _cancelled(lab, "stream", prefetch=2)
    channel.consume(q, "c", arguments={"x-stream-offset": "first"})
    channel.deliveries(2)
    for tag in (1, 2, 3):
        channel.ack(tag)
        channel.deliveries(1)
    channel.sync(q)


@scenario
def a_rejected_message_of_a_cancelled_consumer_frees_the_next(lab: Lab) -> None:
    channel, q = _cancelled(lab, "quorum")
    channel.consume(q, "c")
    channel.reject(1, requeue=False)
    channel.deliveries(1)


@scenario
def messages_of_a_cancelled_consumer_do_not_count_under_another_tag(lab: Lab) -> None:
    channel, q = _cancelled(lab, "quorum")
    channel.consume(q, "d")
    channel.deliveries(1)
    channel.ack(1)
    channel.sync(q)


@scenario
def messages_of_a_cancelled_consumer_do_not_count_on_another_channel(lab: Lab) -> None:
    channel, q = _cancelled(lab, "quorum")
    other = channel.connection.channel()
    other.call(Basic.Qos, prefetch_count=1)
    other.consume(q, "c")
    other.deliveries(1)
    channel.ack(1)
    other.sync(q)


@scenario
def a_single_active_consumer_that_returns_has_what_it_held(lab: Lab) -> None:
    channel, q = _held(lab, "quorum", **{"x-single-active-consumer": True})
    channel.call(Basic.Cancel, consumer_tag="c")
    channel.consume(q, "c")
    channel.sync(q)
    channel.ack(1)
    channel.deliveries(1)


@scenario
def a_cancelled_consumer_of_a_quorum_queue_counts_until_it_holds_nothing(lab: Lab) -> None:
    channel, q = _cancelled(lab, "quorum")
    _look(lab, q)
    channel.consume(q, "c")
    _look(lab, q)
    channel.call(Basic.Cancel, consumer_tag="c")
    channel.consume(q, "d")
    channel.deliveries(1)
    _look(lab, q)


@scenario
def a_cancelled_consumer_of_a_quorum_queue_ends_with_its_channel(lab: Lab) -> None:
    channel, q = _cancelled(lab, "quorum")
    channel.call(Channel.Close, reply_code=200, reply_text="bye")
    # RabbitMQ's queue hears of the end of a channel later than the client.
    lab.rest(q)
    _look(lab, q)


@scenario
def a_cancelled_consumer_of_a_classic_queue_does_not_count(lab: Lab) -> None:
    _, q = _cancelled(lab, "classic")
    _look(lab, q)


@scenario
def a_consumer_without_acks_may_follow_one_of_a_classic_queue(lab: Lab) -> None:
    channel, q = _cancelled(lab, "classic")
    channel.consume(q, "c", no_ack=True)
    channel.deliveries(8)
    channel.ack(1)
    channel.sync(q)


@scenario
def a_consumer_without_acks_counts_with_the_one_of_a_quorum_queue_that_it_follows(lab: Lab) -> None:
    channel, q = _held(lab, "quorum", 2)
    channel.call(Basic.Cancel, consumer_tag="c")
    lab.channel().call(Queue.Purge, queue=q)
    _look(lab, q)
    channel.consume(q, "c", no_ack=True)
    channel.sync()
    _look(lab, q)
    channel.ack(1)
    channel.sync()
    lab.put(q, b"next")
    channel.deliveries(1)
    channel.ack(2)
    channel.sync()
    _look(lab, q)


@scenario
def consumers_of_a_deleted_queue_are_cancelled_in_the_order_of_their_tags(lab: Lab) -> None:
    for kind in ("classic", "quorum", "stream"):
        q = lab.queue(kind, durable=True, arguments={"x-queue-type": kind})
        channel = lab.channel()
        channel.call(Basic.Qos, prefetch_count=10)
        for tag in ("z", "b", "10", "9", "B", "\u00e9"):
            channel.consume(q, tag)
        lab.channel().call(Queue.Delete, queue=q)
        lab.rest()
