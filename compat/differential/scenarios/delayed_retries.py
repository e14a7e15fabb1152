"""Delayed retries of quorum queues (RabbitMQ 4.3); earlier versions ignore the arguments."""

from __future__ import annotations

from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Queue

from compat.differential.lab import Lab, scenario, slow_scenario

# Long enough that a delayed message is never ready before the scenario has looked.
LONG_MS = 600_000


def _queue(lab: Lab, kind: str, min_ms: int, name: str = "q", **arguments: Any) -> str:
    given = {
        "x-queue-type": "quorum",
        "x-delayed-retry-type": kind,
        "x-delayed-retry-min": min_ms,
        **{key.replace("_", "-"): value for key, value in arguments.items()},
    }
    return lab.queue(name, durable=True, arguments=given)


@slow_scenario
def a_rejected_message_comes_back_after_a_delay(lab: Lab) -> None:
    lab.silence_s = 8.0  # other versions, without the delay, send nothing more
    channel = lab.channel()
    q = _queue(lab, "all", 2000, x_delayed_retry_max=2500)
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.drain(q)
    channel.consume(q)
    channel.expect(Basic.Deliver)
    channel.send(Basic.Reject, delivery_tag=3, requeue=True)
    channel.expect(Basic.Deliver)


@slow_scenario
def a_message_that_was_given_back_comes_after_the_same_delay_each_time(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, "returned", 300)
    lab.put(q, b"1")
    channel.consume(q)
    for tag in (1, 2, 3):
        channel.expect(Basic.Deliver)
        channel.send(Basic.Nack, delivery_tag=tag, requeue=True)
    channel.expect(Basic.Deliver)


@slow_scenario
def messages_come_back_in_the_order_of_their_delays(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab, "all", 500, x_delayed_retry_max=5000)
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.consume(q)
    channel.expect(Basic.Deliver)
    # A second failure doubles the delay; the first return of the other message is sooner.
    channel.send(Basic.Reject, delivery_tag=3, requeue=True)
    channel.send(Basic.Reject, delivery_tag=2, requeue=True)
    channel.expect(Basic.Deliver)
    channel.expect(Basic.Deliver)


@scenario
def only_failures_are_delayed_by_the_type_failed(lab: Lab) -> None:
    q = _queue(lab, "failed", LONG_MS)
    lab.put(q, b"nacked", b"recovered", b"rejected", b"lost")
    channel = lab.channel()
    channel.get(q)
    channel.send(Basic.Nack, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.get(q)
    channel.send(Basic.Ack, delivery_tag=2)
    channel.get(q)
    channel.call(Basic.Recover, requeue=True)
    channel.sync(q)
    channel.get(q)
    channel.send(Basic.Ack, delivery_tag=4)
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=5, requeue=True)
    channel.get(q)
    channel.call(commands.Channel.Close, reply_code=200)
    again = lab.channel()
    again.sync(q)
    again.drain(q)


@scenario
def only_what_has_not_failed_is_delayed_by_the_type_returned(lab: Lab) -> None:
    q = _queue(lab, "returned", LONG_MS)
    lab.put(q, b"nacked", b"rejected", b"lost")
    channel = lab.channel()
    channel.get(q)
    channel.send(Basic.Nack, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=2, requeue=True)
    channel.sync(q)
    channel.get(q)
    channel.get(q)
    channel.call(commands.Channel.Close, reply_code=200)
    again = lab.channel()
    again.sync(q)
    again.drain(q)


@scenario
def a_retry_without_a_minimum_is_not_delayed(lab: Lab) -> None:
    q = lab.queue(durable=True, arguments={"x-queue-type": "quorum", "x-delayed-retry-type": "all"})
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.get(q)


@scenario
def a_delayed_message_counts_for_the_maximum_length(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS, x_max_length=2)
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    lab.put(q, b"3", b"4")
    channel.drain(q)


@scenario
def a_queue_full_of_delayed_messages_drops_new_ones(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS, x_max_length=1)
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    lab.put(q, b"2", b"3")
    channel.drain(q)


@scenario
def a_purge_counts_delayed_messages(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS)
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.call(Queue.Purge, queue=q)
    channel.get(q)


@scenario
def a_deleted_queue_does_not_count_delayed_messages(lab: Lab) -> None:
    q = _queue(lab, "all", LONG_MS)
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.sync(q)
    channel.call(Queue.Delete, queue=q)


@slow_scenario
def a_delayed_message_expires_when_its_delay_is_over(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, "all", 600, x_message_ttl=300, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.consume(dead)
    channel.expect(Basic.Deliver)


@scenario
def a_message_beyond_the_delivery_limit_is_not_delayed(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, "all", LONG_MS, x_delivery_limit=0, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel = lab.channel()
    channel.consume(dead)
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    channel.expect(Basic.Deliver)


@scenario
def the_arguments_of_delayed_retries_are_compared(lab: Lab) -> None:
    q = _queue(lab, "all", 500)
    connection = lab.connect()
    for changed in ({}, {"x-delayed-retry-type": "failed"}, {"x-delayed-retry-min": 501}, {"x-delayed-retry-max": 500}):
        arguments = {
            "x-queue-type": "quorum",
            "x-delayed-retry-type": "all",
            "x-delayed-retry-min": 500,
            **changed,
        }
        connection.channel().call(Queue.Declare, queue=q, durable=True, arguments=arguments)
    connection.channel().call(Queue.Declare, queue=q, durable=True, arguments={"x-queue-type": "quorum"})


@scenario
def messages_return_to_a_queue_without_a_delivery_limit(lab: Lab) -> None:
    q = lab.queue(durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": -1})
    channel = lab.channel()
    lab.put(q, b"1", b"2", b"3")
    channel.get(q)
    channel.get(q)
    channel.send(Basic.Nack, delivery_tag=1, requeue=True)
    channel.send(Basic.Reject, delivery_tag=2, requeue=True)
    channel.sync(q)
    channel.drain(q)
