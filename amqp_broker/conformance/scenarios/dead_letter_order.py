"""The order in which dead letters arrive in a queue: behind all that the queue does when they die."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Tx

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel

TYPES = ("classic", "quorum")


def _queue(lab: Lab, name: str, kind: str, to: str = "", **arguments: Any) -> str:
    """Declare a queue whose dead letters go to another queue, or without `to` back to itself."""
    target = lab.name(to or name)
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    given = {"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": target, **given}
    return lab.queue(name, durable=True, arguments=given)


def _consumer(lab: Lab, queue: str, prefetch: int) -> Channel:
    channel = lab.channel()
    channel.call(Basic.Qos, prefetch_count=prefetch)
    channel.consume(queue)
    return channel


@scenario
def a_rejected_message_comes_back_when_the_consumer_has_taken_the_next_one(lab: Lab) -> None:
    for kind in TYPES:
        q = _queue(lab, kind, kind, x_max_length=1)
        channel = _consumer(lab, q, 1)
        lab.put(q, b"1", b"2")
        channel.deliveries(1)
        channel.reject(1, requeue=False)
        channel.deliveries(1)
        lab.channel().drain(q)
        channel.call(Basic.Cancel, consumer_tag="c")


@scenario
def rejected_messages_of_high_priority_come_back_when_the_consumer_has_taken_others(lab: Lab) -> None:
    for kind in TYPES:
        arguments: dict[str, Any] = {"x_max_priority": 5} if kind == "classic" else {}
        q = _queue(lab, kind, kind, **arguments)
        channel = _consumer(lab, q, 2)
        lab.put(q, b"1", b"2", priority=5)
        channel.deliveries(2)
        lab.put(q, b"3", b"4", b"5", priority=0)
        channel.nack(0, multiple=True, requeue=False)
        channel.deliveries(2)
        lab.channel().drain(q)
        channel.call(Basic.Cancel, consumer_tag="c")


@scenario
def a_message_reaches_all_queues_before_the_dead_letters_that_it_causes(lab: Lab) -> None:
    for kind in TYPES:
        dead = lab.queue(f"dead.{kind}", durable=True, arguments={"x-queue-type": kind})
        for cause, arguments in (("length", {"x_max_length": 1}), ("ttl", {"x_message_ttl": 0})):
            q = _queue(lab, f"{cause}.{kind}", "classic", f"dead.{kind}", **arguments)
            channel = lab.channel()
            # A quorum queue registers a publisher with its first message, which takes a while.
            channel.publish(b"0", routing_key=dead)
            channel.sync(dead)
            for body in (b"1", b"2"):
                channel.publish(body, routing_key=q, headers={"CC": [dead]})
                channel.sync(q, dead)
            channel.drain(dead)
            channel.drain(q)


@scenario
def all_messages_of_a_commit_precede_the_dead_letters_that_they_cause(lab: Lab) -> None:
    for kind in TYPES:
        dead = lab.queue(f"dead.{kind}", durable=True)
        q = _queue(lab, kind, kind, f"dead.{kind}", x_max_length=1)
        channel = lab.channel()
        channel.call(Tx.Select)
        for body, queue in ((b"1", q), (b"2", q), (b"3", q), (b"4", dead), (b"5", dead)):
            channel.publish(body, routing_key=queue)
        channel.call(Tx.Commit)
        channel.sync(q, dead)
        lab.channel().drain(dead)


@scenario
def all_that_a_lost_channel_held_comes_back_before_a_queue_drops_some(lab: Lab) -> None:
    dead = lab.queue("dead")
    for kind in TYPES:
        q = _queue(lab, kind, kind, "dead", x_max_length=2)
        holder = lab.connect()
        channel = holder.channel()
        channel.consume(q)
        lab.put(q, b"1", expiration="0")
        channel.deliveries(1)
        lab.put(q, b"2", b"3", b"4")
        channel.deliveries(3)
        holder.close()
        lab.rest(q, dead)
        lab.channel().drain(q)
        lab.channel().drain(dead)


@scenario
def all_that_a_consumer_returns_comes_back_before_a_queue_drops_some(lab: Lab) -> None:
    dead = lab.queue("dead")
    for kind in TYPES:
        q = _queue(lab, kind, kind, "dead", x_max_length=2)
        channel = lab.channel()
        channel.call(Basic.Qos, prefetch_count=2)
        channel.consume(q, "c1")
        channel.consume(q, "c2")
        lab.put(q, b"1", b"2", b"3", b"4", expiration="0")
        channel.deliveries(4)
        channel.call(Basic.Cancel, consumer_tag="c1")
        channel.call(Basic.Cancel, consumer_tag="c2")
        channel.nack(0, multiple=True)
        channel.sync(q, dead)
        lab.channel().drain(q)
        lab.channel().drain(dead)


@scenario
def a_dead_letter_brings_the_deliveries_to_lost_channels_along(lab: Lab) -> None:
    for kind in TYPES:
        dead = lab.queue(f"dead.{kind}", durable=True, arguments={"x-queue-type": kind})
        for cause, arguments in (("length", {"x_max_length": 1}), ("ttl", {})):
            q = _queue(lab, f"{cause}.{kind}", "quorum", f"dead.{kind}", **arguments)
            for turn in range(2):
                holder = lab.connect()
                channel = holder.channel()
                channel.call(Basic.Qos, prefetch_count=1)
                channel.consume(q)
                lab.put(q, b"1", **({"expiration": "0"} if cause == "ttl" else {}))
                channel.deliveries(1)
                if turn:
                    channel.reject(1)
                    # One that has not expired comes again before the connection ends.
                    if cause == "length":
                        channel.deliveries(1)
                    else:
                        channel.sync(q)
                elif cause == "length":
                    lab.put(q, b"2")
                holder.close()
                lab.rest(q, dead)
                lab.channel().drain(dead)
                lab.channel().drain(q)
