"""At-least-once dead-lettering: a quorum queue keeps its dead letters until their targets have them."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab, scenario, slow_scenario


def _queue(lab: Lab, target: str, **arguments: Any) -> str:
    given = {
        "x-queue-type": "quorum",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": target,
        **{key.replace("_", "-"): value for key, value in arguments.items()},
    }
    return lab.queue(durable=True, arguments=given)


@scenario
def a_rejected_message_reaches_a_classic_target(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, dead)
    channel, target = lab.channel(), lab.channel()
    target.consume(dead)
    lab.put(q, b"rejected", b"nacked")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1)
    target.expect(Basic.Deliver)
    channel.get(q)
    channel.send(Basic.Nack, delivery_tag=2)
    target.expect(Basic.Deliver)


@scenario
def a_rejected_message_reaches_a_quorum_target(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True, arguments={"x-queue-type": "quorum"})
    q = _queue(lab, dead)
    channel, target = lab.channel(), lab.channel()
    target.consume(dead)
    lab.put(q, b"rejected")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1)
    target.expect(Basic.Deliver)


@slow_scenario
def an_expired_message_reaches_its_target_at_least_once(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, dead, x_message_ttl=100)
    target = lab.channel()
    target.consume(dead)
    lab.put(q, b"1")
    target.expect(Basic.Deliver)


@scenario
def a_message_beyond_the_delivery_limit_reaches_its_target_at_least_once(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    q = _queue(lab, dead, x_delivery_limit=0)
    channel, target = lab.channel(), lab.channel()
    target.consume(dead)
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1, requeue=True)
    target.expect(Basic.Deliver)


@scenario
def a_dead_letter_without_a_target_is_not_ready_in_its_queue(lab: Lab) -> None:
    q = _queue(lab, lab.name("dead"))
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1)
    channel.sync(q)
    channel.drain(q)
    channel.call(Queue.Delete, queue=q)


@scenario
def a_full_target_gets_no_dead_letter(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    q = _queue(lab, dead)
    channel = lab.channel()
    lab.put(dead, b"x")
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1)
    channel.sync(q)
    channel.drain(q)
    channel.drain(dead)


@scenario
def a_purge_of_dead_letters_without_a_target(lab: Lab) -> None:
    q = _queue(lab, lab.name("dead"))
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1)
    channel.sync(q)
    channel.call(Queue.Purge, queue=q)


@scenario
def a_queue_that_drops_its_head_loses_dead_letters_without_a_target(lab: Lab) -> None:
    q = _queue(lab, lab.name("dead"), x_overflow="drop-head")
    channel = lab.channel()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1)
    channel.sync(q)
    channel.call(Queue.Purge, queue=q)


@scenario
def a_queue_full_of_dead_letters_refuses_publishes(lab: Lab) -> None:
    q = _queue(lab, lab.name("dead"), x_max_length=1)
    channel = lab.channel()
    channel.call(Confirm.Select)
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=1)
    channel.get(q)
    channel.send(Basic.Reject, delivery_tag=2)
    channel.sync(q)
    channel.publish(b"3", routing_key=q)
    channel.expect(Basic.Ack, Basic.Nack)
