"""Queues with x-max-priority. Priorities of consumers are in `sharing`."""

from __future__ import annotations

from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.wire import Field


def _priority_queue(lab: Lab, highest: object = 10, **arguments: object) -> tuple[Channel, str]:
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    return lab.channel(), lab.queue(arguments={"x-max-priority": highest, **given})


@scenario
def higher_priorities_are_delivered_first(lab: Lab) -> None:
    channel, q = _priority_queue(lab)
    for priority in (1, 9, 5, 9, 0):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    channel.drain(q)


@scenario
def equal_priorities_keep_their_order(lab: Lab) -> None:
    channel, q = _priority_queue(lab)
    for number in range(4):
        lab.put(q, b"%d" % number, priority=3)
    channel.drain(q)


@scenario
def no_priority_is_priority_0(lab: Lab) -> None:
    channel, q = _priority_queue(lab)
    lab.put(q, b"none")
    lab.put(q, b"zero", priority=0)
    lab.put(q, b"none again")
    lab.put(q, b"one", priority=1)
    channel.drain(q)


@scenario
def a_priority_above_the_highest_counts_as_the_highest(lab: Lab) -> None:
    channel, q = _priority_queue(lab, 3)
    for priority in (3, 255, 4, 2):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    channel.drain(q)


@scenario
def a_highest_priority_of_0_is_a_plain_queue(lab: Lab) -> None:
    channel, q = _priority_queue(lab, 0)
    for priority in (1, 9, 5):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    channel.drain(q)


@scenario
def a_highest_priority_may_be_255(lab: Lab) -> None:
    channel, q = _priority_queue(lab, 255)
    for priority in (254, 255, 0):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    channel.drain(q)


@scenario
def a_highest_priority_may_be_any_integer(lab: Lab) -> None:
    channel, q = _priority_queue(lab, Field("b", 5))
    for priority in (1, 5):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    channel.drain(q)


@scenario
def a_queue_without_priorities_ignores_them(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    for priority in (1, 9, 5):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    channel.drain(q)


@scenario
def a_requeued_message_keeps_its_priority(lab: Lab) -> None:
    channel, q = _priority_queue(lab)
    lab.put(q, b"low", priority=1)
    lab.put(q, b"high", priority=9)
    for _ in range(2):
        channel.get(q)
    channel.nack(2)
    channel.nack(1)
    lab.put(q, b"between", priority=5)
    channel.drain(q)


@scenario
def a_requeued_message_goes_before_its_equals(lab: Lab) -> None:
    channel, q = _priority_queue(lab)
    lab.put(q, b"1", b"2", b"3", priority=4)
    channel.get(q)
    channel.nack(1)
    channel.drain(q)


@scenario
def a_full_priority_queue_drops_its_highest_priority(lab: Lab) -> None:
    channel, q = _priority_queue(lab, x_max_length=2)
    for priority in (9, 1, 5):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    channel.drain(q)


@scenario
def messages_of_a_priority_queue_expire(lab: Lab) -> None:
    dead = lab.queue("dead")
    channel, q = _priority_queue(lab, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    channel.consume(dead, no_ack=True)
    lab.put(q, b"high", priority=9, expiration="20")
    channel.deliveries(1)
    lab.put(q, b"low", priority=1, expiration="20")
    channel.deliveries(1)


@scenario
def only_the_head_of_the_highest_priority_expires(lab: Lab) -> None:
    dead = lab.queue("dead")
    channel, q = _priority_queue(lab, x_dead_letter_exchange="", x_dead_letter_routing_key=dead)
    puller = lab.channel()
    channel.consume(dead, no_ack=True)
    lab.put(q, b"low", priority=1, expiration="100")
    lab.put(q, b"high", priority=9)
    lab.put(q, b"highest", priority=10, expiration="100")
    channel.deliveries(1)
    puller.get(q)
    channel.deliveries(1)


@scenario
def what_waits_is_delivered_by_priority_to_a_consumer(lab: Lab) -> None:
    channel, q = _priority_queue(lab)
    for priority in (1, 9, 5):
        lab.put(q, b"of priority %d" % priority, priority=priority)
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q)
    for tag in channel.deliveries(1):
        channel.ack(tag)
    for tag in channel.deliveries(1):
        lab.put(q, b"of priority 7", priority=7)
        channel.ack(tag)
    channel.deliveries(1)


@scenario
def purging_a_quorum_queue_begins_the_turns_of_its_priorities_anew(lab: Lab) -> None:
    q = lab.queue(durable=True, arguments={"x-queue-type": "quorum"})
    lab.put(q, b"1", b"2")
    channel = lab.channel()
    channel.get(q, no_ack=True)
    channel.get(q, no_ack=True)
    channel.call(Queue.Purge, queue=q)
    publisher = lab.channel()
    publisher.call(Confirm.Select)
    publisher.publish(b"normal", routing_key=q)
    publisher.publish(b"high", routing_key=q, priority=5)
    publisher.confirms(1, 2)
    channel.drain(q)
