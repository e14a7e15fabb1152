"""Full quorum queues that refuse publishes.

A quorum queue takes one message beyond its limit. Then the channels that have published to it are refused until four
fifths of the limit are left; others may fill it again.
"""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel


def _full(lab: Lab, name: str = "q", **arguments: Any) -> str:
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    return lab.queue(name, durable=True, arguments={"x-queue-type": "quorum", "x-overflow": "reject-publish", **given})


def _confirming(lab: Lab) -> Channel:
    channel = lab.channel()
    channel.call(Confirm.Select)
    return channel


def _publish(channel: Channel, queue: str, *bodies: bytes, **properties: Any) -> None:
    """Publish messages, each after the confirm of the former."""
    for body in bodies:
        channel.publish(body, routing_key=queue, **properties)
        channel.expect(Basic.Ack, Basic.Nack)


@scenario
def a_full_quorum_queue_takes_one_message_more(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length=2), _confirming(lab)
    _publish(channel, q, b"1", b"2", b"3", b"4")
    channel.drain(q)


@scenario
def a_quorum_queue_without_room_takes_one_message(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length=0), _confirming(lab)
    _publish(channel, q, b"1", b"2")
    channel.drain(q)


@scenario
def a_publisher_is_refused_until_four_fifths_of_the_limit_are_left(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length=5), _confirming(lab)
    _publish(channel, q, *(b"%d" % number for number in range(7)))
    channel.get(q, no_ack=True)
    channel.sync(q)
    _publish(channel, q, b"at the limit")
    channel.get(q, no_ack=True)
    channel.sync(q)
    _publish(channel, q, b"four fifths", b"again", b"one more", b"too much")
    channel.drain(q)


@scenario
def another_channel_fills_a_quorum_queue_again(lab: Lab) -> None:
    q, channel, other = _full(lab, x_max_length=5), _confirming(lab), _confirming(lab)
    _publish(channel, q, *(b"%d" % number for number in range(7)))
    _publish(other, q, b"too much")
    channel.get(q, no_ack=True)
    channel.sync(q)
    _publish(other, q, b"still too much")
    third = _confirming(lab)
    _publish(third, q, b"one more", b"too much")
    channel.drain(q)


@scenario
def a_quorum_queue_of_limited_octets_takes_one_message_more(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length_bytes=100), _confirming(lab)
    _publish(channel, q, b"-" * 70, b"+" * 70, b"1")
    channel.get(q, no_ack=True)
    channel.sync(q)
    _publish(channel, q, b"2", b"*" * 50, b"3")
    channel.drain(q)


@scenario
def a_body_larger_than_the_limit_enters_a_quorum_queue(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length_bytes=10), _confirming(lab)
    _publish(channel, q, b"more than ten octets", b"1")
    channel.drain(q)


@scenario
def the_properties_of_a_message_may_fill_a_quorum_queue(lab: Lab) -> None:
    """Since 4.3, the octets of a message are those of its properties and its body."""
    q, channel = _full(lab, x_max_length_bytes=100), _confirming(lab)
    _publish(channel, q, b"-" * 50, b"+" * 49, b"1", b"2", app_id="a long application id")
    channel.drain(q)


@scenario
def the_flags_of_absent_properties_may_fill_a_quorum_queue(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length_bytes=100, x_overflow="drop-head"), _confirming(lab)
    _publish(channel, q, b"-" * 48, b"+" * 48)
    channel.sync(q)
    _publish(channel, q, b"", b"1")
    channel.drain(q)


@scenario
def the_counts_of_a_returned_message_do_not_fill_a_quorum_queue(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length_bytes=100, x_overflow="drop-head"), _confirming(lab)
    _publish(channel, q, b"-" * 48, b"+" * 48)
    channel.get(q)
    channel.nack(1)
    channel.sync(q)
    channel.get(q)
    channel.reject(2)
    channel.sync(q)
    channel.drain(q)


@scenario
def the_deaths_of_a_message_do_not_fill_a_quorum_queue(lab: Lab) -> None:
    """A dead letter has the size that it was published with."""
    dead = _full(lab, "dead", x_max_length_bytes=78, x_overflow="drop-head")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, "x-message-ttl": 0}
    source = lab.queue("source", durable=True, arguments=arguments)
    channel = lab.channel()
    for body in (b"-" * 23, b"+" * 23, b"*" * 24):
        lab.put(source, body, headers={"a": "b"}, expiration="0")
        channel.sync(source, dead)
    channel.drain(dead)


@scenario
def unacked_messages_leave_room_in_a_quorum_queue(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length=1), _confirming(lab)
    consumer = lab.channel()
    consumer.consume(q)
    _publish(channel, q, b"1", b"2", b"3")
    consumer.deliveries(3)
    consumer.nack(3, multiple=True)
    consumer.deliveries(3)
    consumer.send(Basic.Cancel, consumer_tag="c", nowait=True)
    consumer.nack(6, multiple=True)
    # A get comes after the return of the messages, and what it takes leaves too many.
    consumer.get(q)
    channel.sync()
    _publish(channel, q, b"4")
    channel.drain(q)


@scenario
def a_purged_quorum_queue_takes_publishes_again(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length=2), _confirming(lab)
    _publish(channel, q, b"1", b"2", b"3", b"4")
    channel.call(Queue.Purge, queue=q)
    channel.sync(q)
    _publish(channel, q, b"5")
    channel.drain(q)


@scenario
def a_dead_letter_enters_a_full_quorum_queue(lab: Lab) -> None:
    """RabbitMQ does not watch which dead letters arrive, so the queue cannot refuse them."""
    dead = _full(lab, "dead", x_max_length=1)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    classic = lab.queue("classic", durable=True, arguments=arguments)
    quorum = lab.queue("quorum", durable=True, arguments={"x-queue-type": "quorum", **arguments})
    lab.put(dead, b"1", b"2")
    channel = lab.channel()
    for tag, source in enumerate((classic, quorum), 1):
        lab.put(source, b"dead")
        channel.get(source)
        channel.reject(tag, requeue=False)
        channel.sync(source, dead)
    consumer = lab.channel()
    consumer.consume(dead, no_ack=True)
    consumer.deliveries(4)


@scenario
def a_full_quorum_queue_refuses_a_message_for_two_queues(lab: Lab) -> None:
    q, channel = _full(lab, x_max_length=1), _confirming(lab)
    other = lab.queue("other", durable=True)
    _publish(channel, q, b"1", b"2")
    _publish(channel, q, b"3", headers={"CC": [other]})
    channel.drain(q)
    channel.drain(other)


@scenario
def an_empty_table_of_headers_fills_a_quorum_queue_after_the_death_of_its_message(lab: Lab) -> None:
    other = lab.queue("other", durable=True)
    for number, headers in enumerate((None, {}, {"BCC": [other]})):
        dead = _full(lab, f"dead{number}", x_max_length_bytes=8, x_overflow="drop-head")
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        q = lab.queue(f"q{number}", durable=True, arguments=arguments)
        channel = lab.channel()
        for body in (b"1", b"2"):
            lab.put(q, body, **({} if headers is None else {"headers": headers}))
        lab.rest(q)
        for tag in (1, 2):
            channel.get(q, no_ack=False)
            channel.reject(tag, requeue=False)
            lab.rest(q, dead)
        lab.channel().drain(dead)
