"""Length limits in messages and octets, and the handling of excess messages."""

from __future__ import annotations

from pamqp.commands import Basic, Confirm, Tx

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel


def _limited(lab: Lab, **arguments: object) -> tuple[Channel, str, str]:
    """Return a channel, a limited queue that dead-letters, and the queue of its dead letters."""
    channel = lab.channel()
    dead = lab.queue("dead")
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    q = lab.queue(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, **given})
    return channel, q, dead


def _publish(channel: Channel, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        channel.publish(body, routing_key=queue)
        channel.expect(Basic.Ack, Basic.Nack)


@scenario
def what_is_beyond_a_length_is_dropped_from_the_head(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length=2)
    lab.put(q, b"1", b"2", b"3", b"4")
    channel.drain(q)
    channel.drain(dead)


@scenario
def what_is_beyond_a_length_in_octets_is_dropped_from_the_head(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length_bytes=10)
    lab.put(q, b"four", b"four", b"threes", b"1")
    channel.drain(q)
    channel.drain(dead)


@scenario
def a_body_longer_than_the_limit_drops_all(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length_bytes=10)
    lab.put(q, b"1", b"2", b"more than ten octets", headers={"not": "counted"})
    channel.drain(q)
    channel.drain(dead)


@scenario
def headers_do_not_count_for_a_length_in_octets(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length_bytes=10)
    lab.put(q, b"1", b"2", headers={"a long header": "of more than ten octets"})
    channel.drain(q)
    channel.drain(dead)


@scenario
def the_first_of_two_limits_counts(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length=2, x_max_length_bytes=5)
    lab.put(q, b"1", b"2", b"3", b"four", b"four")
    channel.drain(q)
    channel.drain(dead)


@scenario
def a_length_of_0_keeps_nothing(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length=0)
    lab.put(q, b"1")
    channel.drain(q)
    channel.drain(dead)


@scenario
def a_length_of_0_reaches_a_consumer_that_waits(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length=0)
    channel.consume(q, no_ack=True)
    lab.put(q, b"1", b"2")
    channel.deliveries(2)
    channel.drain(dead)


@scenario
def unsettled_messages_do_not_count(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length=1)
    for body in (b"1", b"2"):
        lab.put(q, body)
        channel.get(q)
    lab.put(q, b"3")
    channel.drain(dead)
    channel.drain(q)


@scenario
def a_requeued_message_may_be_one_too_many(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length=1)
    lab.put(q, b"1")
    channel.get(q)
    lab.put(q, b"2")
    channel.nack(1)
    channel.sync(q)
    channel.drain(q)
    channel.drain(dead)


@scenario
def a_full_queue_that_rejects_publishes_nacks_them(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length=1, x_overflow="reject-publish")
    channel.call(Confirm.Select)
    _publish(channel, q, b"1", b"2", b"3")
    channel.drain(q)
    channel.drain(dead)
    _publish(channel, q, b"4")
    channel.drain(q)


@scenario
def a_full_queue_may_dead_letter_rejected_publishes(lab: Lab) -> None:
    channel, q, dead = _limited(lab, x_max_length=1, x_overflow="reject-publish-dlx")
    channel.call(Confirm.Select)
    _publish(channel, q, b"1", b"2", b"3")
    channel.drain(q)
    channel.drain(dead)


@scenario
def a_publish_rejected_without_confirms_is_lost(lab: Lab) -> None:
    channel, q, _ = _limited(lab, x_max_length=1, x_overflow="reject-publish")
    for body in (b"1", b"2"):
        channel.publish(body, routing_key=q, mandatory=True)
    channel.sync(q)
    channel.drain(q)


@scenario
def a_length_in_octets_may_reject_publishes(lab: Lab) -> None:
    channel, q, _ = _limited(lab, x_max_length_bytes=10, x_overflow="reject-publish")
    channel.call(Confirm.Select)
    _publish(channel, q, b"four", b"four", b"four", b"1")
    channel.drain(q)


@scenario
def a_length_of_0_rejects_all(lab: Lab) -> None:
    channel, q, _ = _limited(lab, x_max_length=0, x_overflow="reject-publish")
    channel.call(Confirm.Select)
    _publish(channel, q, b"1")
    channel.drain(q)


@scenario
def a_queue_that_rejects_does_not_keep_others_from_taking(lab: Lab) -> None:
    channel, q, _ = _limited(lab, x_max_length=1, x_overflow="reject-publish")
    x, other = lab.name("x"), lab.queue("other")
    channel.exchange(x, "fanout")
    channel.bind(q, x)
    channel.bind(other, x)
    channel.call(Confirm.Select)
    for body in (b"1", b"2"):
        channel.publish(body, exchange=x)
        channel.expect(Basic.Ack, Basic.Nack)
    channel.drain(q)
    channel.drain(other)


@scenario
def a_requeued_message_is_kept_where_publishes_are_rejected(lab: Lab) -> None:
    channel, q, _ = _limited(lab, x_max_length=1, x_overflow="reject-publish")
    lab.put(q, b"1")
    channel.get(q)
    lab.put(q, b"2")
    channel.nack(1)
    channel.sync(q)
    channel.drain(q)


@scenario
def a_transaction_that_is_rejected_in_part_fails(lab: Lab) -> None:
    channel, q, _ = _limited(lab, x_max_length=1, x_overflow="reject-publish")
    channel.call(Tx.Select)
    channel.publish(b"1", routing_key=q)
    channel.publish(b"2", routing_key=q)
    channel.call(Tx.Commit)
    lab.channel().drain(q)


@scenario
def an_ack_makes_room_for_a_publish_that_is_sent_with_it(lab: Lab) -> None:
    for kind in ("classic", "quorum"):
        dead = lab.queue(f"dead.{kind}", durable=True)
        arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        q = lab.queue(kind, durable=True, arguments={"x-queue-type": kind, **arguments})
        channel = lab.channel()
        channel.call(Basic.Qos, prefetch_count=1)
        channel.consume(q)
        lab.put(q, b"1")
        channel.deliveries(1)
        lab.put(q, b"2")
        with channel.connection.at_once():
            channel.ack(1)
            channel.publish(b"3", routing_key=q)
        channel.deliveries(1)
        channel.sync(q, dead)
        lab.channel().drain(dead)
        lab.channel().drain(q)
