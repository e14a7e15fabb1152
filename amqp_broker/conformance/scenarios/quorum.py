"""Quorum queues with one member: refusals, counts and requeues."""

from __future__ import annotations

from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab, scenario, slow_scenario
from amqp_broker.conformance.scenarios.ttl import let_pass

QUORUM = {"x-queue-type": "quorum"}


def _queue(lab: Lab, name: str = "q", **arguments: Any) -> str:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    return lab.queue(name, durable=True, arguments={**QUORUM, **given})


def _declare_each(lab: Lab, *tables: dict[str, Any], **flags: bool) -> None:
    connection = lab.connect()
    for arguments in tables:
        channel = connection.channel()
        channel.call(Queue.Declare, queue=lab.name("q"), durable=True, **flags, arguments={**QUORUM, **arguments})
        if channel.is_open:
            channel.ask(Queue.Delete, queue=lab.name("q"))


# --- declaring


@scenario
def a_quorum_queue_is_durable(lab: Lab) -> None:
    connection = lab.connect()
    for flags in (
        {},
        {"exclusive": True},
        {"durable": True, "exclusive": True},
        {"durable": True, "auto_delete": True},
    ):
        connection.channel().call(Queue.Declare, queue=lab.name("q"), **flags, arguments=QUORUM)


@scenario
def a_quorum_queue_may_be_declared_again(lab: Lab) -> None:
    connection = lab.connect()
    q = _queue(lab)
    connection.channel().call(Queue.Declare, queue=q, durable=True, arguments=QUORUM)
    connection.channel().call(Queue.Declare, queue=q, durable=True)
    connection.channel().call(Queue.Declare, queue=q, durable=True, arguments={"x-queue-type": "classic"})
    connection.channel().call(Queue.Declare, queue=q, arguments=QUORUM)


@scenario
def a_classic_queue_is_not_a_quorum_queue(lab: Lab) -> None:
    q = lab.queue(durable=True)
    lab.channel().call(Queue.Declare, queue=q, durable=True, arguments=QUORUM)


@scenario
def arguments_that_a_quorum_queue_has_not_are_refused(lab: Lab) -> None:
    _declare_each(
        lab,
        {"x-max-priority": 5},
        {"x-queue-mode": "lazy"},
        {"x-max-age": "1D"},
        {"x-stream-max-segment-size-bytes": 1000},
        {"x-initial-cluster-size": 1},
    )


@scenario
def arguments_of_a_quorum_queue_are_checked(lab: Lab) -> None:
    _declare_each(
        lab,
        {"x-delivery-limit": 0},
        {"x-delivery-limit": 5},
        {"x-delivery-limit": -5},
        {"x-max-length": 1, "x-overflow": "reject-publish"},
        {"x-dead-letter-strategy": "at-most-once"},
        {"x-dead-letter-strategy": "nonsense"},
        {"x-quorum-initial-group-size": 1},
        {"x-max-in-memory-length": 10},
        {"x-max-in-memory-bytes": 10},
        {"x-single-active-consumer": True},
        {"x-expires": 600000},
        {"x-message-ttl": 600000},
    )


@scenario
def values_of_the_arguments_of_a_quorum_queue_are_checked(lab: Lab) -> None:
    _declare_each(
        lab,
        {"x-max-in-memory-length": -1},
        {"x-max-in-memory-bytes": "nonsense"},
        {"x-quorum-initial-group-size": 0},
        {"x-quorum-initial-group-size": True},
        {"x-queue-leader-locator": "balanced"},
        {"x-queue-leader-locator": "nonsense"},
        {"x-queue-leader-locator": 1},
        {"x-queue-master-locator": "min-masters"},
        {"x-max-priority": -1},
        {"x-queue-mode": "nonsense"},
        {"x-queue-version": "nonsense"},
        {"x-max-length": -1, "x-dead-letter-strategy": "nonsense"},
        {"x-overflow": "nonsense", "x-max-in-memory-bytes": -1, "x-max-in-memory-length": -2},
        {"x-queue-leader-locator": "nonsense", "x-quorum-initial-group-size": 0, "x-single-active-consumer": 1},
        {"x-max-age": "1D", "x-max-priority": 5},
    )


@scenario
def the_first_differing_argument_of_a_quorum_queue_is_reported(lab: Lab) -> None:
    names = ["x-queue-leader-locator", "x-message-ttl", "x-delivery-limit", "x-overflow", "x-expires"]
    values = {
        "x-queue-leader-locator": "balanced",
        "x-message-ttl": 60000,
        "x-delivery-limit": 5,
        "x-overflow": "drop-head",
        "x-expires": 600000,
    }
    q = _queue(lab)
    connection = lab.connect()
    while names:
        arguments = {**QUORUM, **{name: values[name] for name in names}}
        connection.channel().call(Queue.Declare, queue=q, durable=True, arguments=arguments)
        names.pop()
    connection.channel().call(Queue.Declare, queue=q, durable=True, arguments={**QUORUM, "x-max-priority": 5})


@scenario
def a_quorum_queue_needs_a_name(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, queue="", durable=True, arguments=QUORUM)


@scenario
def a_quorum_queue_is_not_deleted_if_unused_or_if_empty(lab: Lab) -> None:
    q = _queue(lab)
    lab.channel().call(Queue.Delete, queue=q, if_unused=True)
    lab.channel().call(Queue.Delete, queue=q, if_empty=True)
    lab.channel().call(Queue.Delete, queue=q, if_unused=True, if_empty=True)
    lab.channel().call(Queue.Delete, queue=q)


# --- what works as elsewhere


@scenario
def a_quorum_queue_takes_and_delivers(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    lab.put(q, b"1", b"2", content_type="text/plain")
    channel.consume(q)
    channel.deliveries(2)
    channel.ack(2, multiple=True)
    channel.sync(q)
    channel.declare(q, passive=True)


@scenario
def a_message_in_a_quorum_queue_is_confirmed(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    channel.call(Confirm.Select)
    channel.publish(b"1", routing_key=q, delivery_mode=1)
    channel.expect(Basic.Ack)
    channel.publish(b"2", routing_key=q, delivery_mode=2)
    channel.expect(Basic.Ack)


@scenario
def pulling_from_a_quorum_queue(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    lab.put(q, b"1", b"2", b"3")
    channel.get(q)
    channel.get(q, no_ack=True)
    channel.get(q)
    channel.get(q)


@scenario
def purging_a_quorum_queue_counts_ready_messages(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    lab.put(q, b"1", b"2", b"3")
    channel.get(q)
    channel.call(Queue.Purge, queue=q)
    channel.call(Queue.Purge, queue=q)
    channel.get(q)


@scenario
def a_consumer_of_a_quorum_queue_may_not_be_under_a_global_prefetch(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    channel.call(Basic.Qos, prefetch_count=5, global_=True)
    channel.call(Basic.Consume, queue=q, consumer_tag="c")


@scenario
def an_exclusive_consumer_of_a_quorum_queue_is_alone(lab: Lab) -> None:
    q = _queue(lab)
    lab.channel().consume(q, exclusive=True)
    lab.channel().call(Basic.Consume, queue=q, consumer_tag="c")


@scenario
def a_prefetch_limits_a_consumer_of_a_quorum_queue(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    lab.put(q, b"1", b"2", b"3")
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q)
    for tag in (1, 2):
        channel.deliveries(1)
        channel.sync(q)
        channel.ack(tag)
    channel.deliveries(1)


@scenario
def a_deleted_quorum_queue_cancels_its_consumers(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    channel.consume(q)
    lab.channel().ask(Queue.Delete, queue=q)
    channel.expect(Basic.Cancel)


# --- what comes back


@scenario
def a_requeued_message_has_its_delivery_count(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    lab.put(q, b"1", headers={"a": 1})
    channel.consume(q)
    for tag in (1, 2, 3):
        channel.deliveries(1)
        channel.nack(tag)
    channel.deliveries(1)
    channel.ack(4)


@scenario
def a_message_from_a_get_has_its_delivery_count(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    lab.put(q, b"1")
    for tag in (1, 2):
        channel.get(q)
        channel.reject(tag)
        channel.sync(q)
    channel.get(q)


@scenario
def a_closed_channel_counts_as_a_delivery(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    lab.put(q, b"1")
    channel.consume(q)
    channel.deliveries(1)
    channel.call(commands.Channel.Close, reply_code=200)
    again = lab.channel()
    again.consume(q)
    again.deliveries(1)


@scenario
def recovering_counts_as_a_delivery(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    lab.put(q, b"1")
    channel.consume(q)
    channel.deliveries(1)
    channel.call(Basic.Recover, requeue=True)
    channel.deliveries(1)


@scenario
def requeued_messages_come_before_new_ones(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, x_delivery_limit=10)
    lab.put(q, b"1", b"2", b"3")
    channel.get(q)
    channel.get(q)
    channel.nack(1)
    channel.sync(q)
    channel.nack(2)
    channel.sync(q)
    channel.drain(q)


@scenario
def messages_requeued_to_a_quorum_queue_come_in_the_order_of_their_return(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, x_delivery_limit=10)
    lab.put(q, b"1", b"2", b"3", b"4")
    for _ in range(3):
        channel.get(q)
    for tag in (3, 1, 2):
        channel.nack(tag)
        channel.sync(q)
    channel.drain(q)


@scenario
def messages_nacked_at_once_to_a_quorum_queue_keep_their_order(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, x_delivery_limit=10)
    lab.put(q, b"1", b"2", b"3", b"4")
    for _ in range(3):
        channel.get(q)
    channel.nack(3, multiple=True)
    channel.sync(q)
    channel.drain(q)


@scenario
def a_message_delivered_too_often_is_dead_lettered(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = _queue(lab, x_delivery_limit=2, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel.consume(dead, "dead", no_ack=True)
    lab.put(q, b"poison", headers={"a": 1})
    consumer = lab.channel()
    consumer.consume(q)
    for tag in (1, 2, 3):
        consumer.deliveries(1)
        consumer.reject(tag)
    channel.deliveries(1)
    channel.sync(q)
    channel.declare(q, passive=True)


@scenario
def a_message_delivered_too_often_is_gone_without_dead_letter_exchange(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, x_delivery_limit=1)
    lab.put(q, b"poison")
    for tag in (1, 2):
        channel.get(q)
        channel.nack(tag)
        channel.sync(q)
    channel.get(q)


@scenario
def a_delivery_limit_of_0_allows_one_delivery(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, x_delivery_limit=0)
    lab.put(q, b"poison")
    channel.get(q)
    channel.nack(1)
    channel.sync(q)
    channel.get(q)


@scenario
def a_message_returned_under_a_delivery_limit(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, x_delivery_limit=5)
    lab.put(q, b"1", b"2", b"3")
    channel.get(q)
    channel.nack(1)
    channel.sync(q)
    channel.drain(q)


@scenario
def a_message_rejected_by_a_quorum_queue_is_dead_lettered(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = _queue(lab, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel.consume(dead, no_ack=True)
    lab.put(q, b"1")
    consumer = lab.channel()
    consumer.consume(q)
    consumer.deliveries(1)
    consumer.nack(1)
    consumer.deliveries(1)
    consumer.reject(2, requeue=False)
    channel.deliveries(1)


@scenario
def a_full_quorum_queue_drops_its_head(lab: Lab) -> None:
    channel, dead = lab.channel(), lab.queue("dead")
    q = _queue(lab, x_max_length=2, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel.consume(dead, no_ack=True)
    lab.put(q, b"1", b"2", b"3")
    channel.deliveries(1)
    channel.drain(q)


@scenario
def the_next_consumer_of_a_quorum_queue_becomes_the_single_active_one(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = _queue(lab, x_single_active_consumer=True)
    one.consume(q, "one")
    two.consume(q, "two")
    lab.put(q, b"1", b"2")
    one.deliveries(2)
    one.ack(2, multiple=True)
    one.sync(q)
    one.call(Basic.Cancel, consumer_tag="one")
    lab.put(q, b"3")
    two.deliveries(1)


@scenario
def pulling_from_a_quorum_queue_with_a_single_active_consumer_is_refused(lab: Lab) -> None:
    q = _queue(lab, x_single_active_consumer=True)
    lab.channel().get(q)


@slow_scenario
def an_unused_quorum_queue_expires(lab: Lab) -> None:
    q = _queue(lab, x_expires=100)
    # RabbitMQ looks for expired quorum queues every 5 s. A publish may hang if it comes as the queue is deleted.
    let_pass(lab, 7000)
    lab.channel().call(Queue.Declare, queue=q, passive=True)


@scenario
def each_unacked_get_counts_as_a_consumer_of_a_quorum_queue(lab: Lab) -> None:
    one, two, q = lab.channel(), lab.channel(), _queue(lab)
    lab.put(q, b"1", b"2", b"3")
    one.get(q, no_ack=True)
    one.declare(q, passive=True)
    one.get(q)
    one.declare(q, passive=True)
    two.get(q)
    two.declare(q, passive=True)
