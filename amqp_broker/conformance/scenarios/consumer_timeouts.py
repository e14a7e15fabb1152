"""Timeouts of deliveries that a quorum queue or a consumer sets: RabbitMQ 4.3 is exact, others look once a minute."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import Lab, slow_scenario

TIMEOUT_MS = 700
# Versions that are not exact stay silent, and the scenario ends there.
SILENCE_S = 8.0


def _queue(lab: Lab, **arguments: Any) -> str:
    lab.silence_s = SILENCE_S
    given = {"x-queue-type": "quorum", **{key.replace("_", "-"): value for key, value in arguments.items()}}
    return lab.queue(durable=True, arguments=given)


@slow_scenario
def a_late_consumer_is_cancelled_and_goes_on_when_it_has_settled_all(lab: Lab) -> None:
    q = _queue(lab, x_consumer_timeout=TIMEOUT_MS)
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.consume(q)
    channel.expect(Basic.Deliver)
    channel.expect(Basic.Deliver)
    channel.expect(Basic.Cancel)
    other = lab.channel()
    other.call(Queue.Declare, queue=q, passive=True)
    channel.send(Basic.Ack, delivery_tag=1)
    channel.sync(q)
    channel.send(Basic.Ack, delivery_tag=2)
    channel.expect(Basic.Deliver)
    channel.expect(Basic.Deliver)
    channel.send(Basic.Ack, delivery_tag=4, multiple=True)
    channel.sync(q)
    other.call(Queue.Declare, queue=q, passive=True)


@slow_scenario
def another_consumer_gets_the_messages_of_a_late_one(lab: Lab) -> None:
    q = _queue(lab, x_consumer_timeout=TIMEOUT_MS)
    late, other = lab.channel(), lab.channel()
    lab.put(q, b"1")
    late.consume(q, "late")
    late.expect(Basic.Deliver)
    other.consume(q, "other")
    late.expect(Basic.Cancel)
    other.expect(Basic.Deliver)
    other.send(Basic.Ack, delivery_tag=1)
    late.send(Basic.Nack, delivery_tag=1, requeue=True)
    late.sync(q)
    late.call(Basic.Cancel, consumer_tag="late")
    other.sync(q)


@slow_scenario
def a_late_consumer_keeps_its_tag(lab: Lab) -> None:
    q = _queue(lab)
    channel = lab.channel()
    lab.put(q, b"1")
    channel.consume(q, arguments={"x-consumer-timeout": TIMEOUT_MS})
    channel.expect(Basic.Deliver)
    channel.expect(Basic.Cancel)
    channel.call(Basic.Consume, queue=q, consumer_tag="c")


@slow_scenario
def a_late_message_from_get_closes_its_channel(lab: Lab) -> None:
    q = _queue(lab, x_consumer_timeout=TIMEOUT_MS)
    channel = lab.channel()
    lab.put(q, b"1")
    channel.get(q)
    channel.expect()
    lab.channel().get(q)


@slow_scenario
def a_late_single_active_consumer_hands_over(lab: Lab) -> None:
    q = _queue(lab, x_consumer_timeout=TIMEOUT_MS, x_single_active_consumer=True)
    late, other = lab.channel(), lab.channel()
    lab.put(q, b"1")
    late.consume(q, "late")
    late.expect(Basic.Deliver)
    other.consume(q, "other")
    late.expect(Basic.Cancel)
    other.expect(Basic.Deliver)
    other.send(Basic.Ack, delivery_tag=1)
    lab.put(q, b"2")
    other.expect(Basic.Deliver)
