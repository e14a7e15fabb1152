"""Ack, nack and reject: effects, requeues, and invalid tags."""

from __future__ import annotations

from pamqp import commands
from pamqp.commands import Basic

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel

BODIES = (b"1", b"2", b"3", b"4")


def _with_four_pulled(lab: Lab) -> tuple[Channel, str]:
    """Return a channel that has got four of five messages of a queue, with tags 1 to 4."""
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, *BODIES, b"5")
    with lab.transcript.muted():
        for _ in BODIES:
            channel.get(q)
    return channel, q


@scenario
def an_acked_message_is_gone(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(1)
    channel.ack(3)
    channel.call(Basic.Recover, requeue=True)
    channel.drain(q)


@scenario
def a_multiple_ack_settles_all_up_to_its_tag(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(3, multiple=True)
    channel.call(Basic.Recover, requeue=True)
    channel.drain(q)


@scenario
def a_multiple_ack_of_tag_0_settles_all(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(0, multiple=True)
    channel.call(Basic.Recover, requeue=True)
    channel.drain(q)


@scenario
def a_multiple_ack_of_tag_0_without_anything_unsettled_is_fine(lab: Lab) -> None:
    channel = lab.channel()
    channel.ack(0, multiple=True)
    channel.nack(0, multiple=True)
    channel.sync()


@scenario
def a_single_ack_of_tag_0_is_refused(lab: Lab) -> None:
    channel, _ = _with_four_pulled(lab)
    channel.ack(0)
    channel.expect()


@scenario
def an_unknown_tag_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    for settle in (Basic.Ack, Basic.Nack, Basic.Reject):
        channel = connection.channel()
        channel.send(settle, delivery_tag=42)
        channel.expect()


@scenario
def an_unknown_tag_is_refused_although_multiple(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(5, multiple=True)
    channel.expect()
    channel.connection.channel().drain(q)


@scenario
def a_tag_settled_twice_is_refused(lab: Lab) -> None:
    channel, _ = _with_four_pulled(lab)
    channel.ack(2)
    channel.ack(2)
    channel.expect()


@scenario
def a_multiple_ack_of_a_settled_tag_is_refused(lab: Lab) -> None:
    channel, _ = _with_four_pulled(lab)
    channel.ack(2)
    channel.ack(2, multiple=True)
    channel.expect()


@scenario
def a_multiple_ack_between_settled_tags_settles_the_rest(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(2)
    channel.ack(3, multiple=True)
    channel.call(Basic.Recover, requeue=True)
    channel.drain(q)


@scenario
def the_largest_tag_is_unknown(lab: Lab) -> None:
    channel = lab.channel()
    channel.ack(2**64 - 1)
    channel.expect()


@scenario
def a_tag_belongs_to_its_channel(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    other = channel.connection.channel()
    other.ack(1)
    other.expect()
    channel.ack(1)
    channel.sync(q)


@scenario
def what_needs_no_ack_cannot_be_acked(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1")
    channel.get(q, no_ack=True)
    channel.ack(1)
    channel.expect()


# --- requeueing


@scenario
def a_message_requeued_goes_back_to_its_place(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.nack(2)
    channel.reject(4)
    channel.drain(q)


@scenario
def messages_requeued_in_any_order_come_in_their_own(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    for tag in (3, 1, 4, 2):
        channel.reject(tag)
    channel.drain(q)


@scenario
def a_multiple_nack_requeues_all_up_to_its_tag(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.nack(3, multiple=True)
    channel.drain(q)


@scenario
def a_multiple_nack_of_tag_0_requeues_all(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.nack(0, multiple=True)
    channel.drain(q)


@scenario
def what_is_rejected_without_requeue_is_gone(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.reject(1, requeue=False)
    channel.nack(3, multiple=True, requeue=False)
    channel.call(Basic.Recover, requeue=True)
    channel.drain(q)


@scenario
def a_requeued_message_is_delivered_again_as_redelivered(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1")
    channel.consume(q)
    channel.deliveries(1)
    channel.reject(1)
    channel.deliveries(1)
    channel.nack(2)
    channel.deliveries(1)
    channel.ack(3)
    channel.sync(q)
    channel.declare(q, passive=True)


@scenario
def only_delivered_messages_are_redelivered(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.nack(0, multiple=True)
    channel.drain(q)


def _with_two_pulled_in_reverse(lab: Lab, **arguments: str) -> tuple[Channel, str]:
    """Return a channel that has got two messages in reverse, and their queue, which has a consumer."""
    q = lab.queue(durable=True, arguments=arguments)
    lab.put(q, b"1", b"2")
    channel, other = lab.channel(), lab.channel()
    other.get(q)
    channel.get(q)
    other.reject(1)
    lab.rest(q)
    channel.get(q)
    lab.channel().consume(q)
    lab.rest(q)
    return channel, q


@scenario
def messages_of_gets_that_recover_returns_come_one_after_the_other(lab: Lab) -> None:
    channel, q = _with_two_pulled_in_reverse(lab)
    channel.call(Basic.Recover, requeue=True)
    lab.rest(q)


@scenario
def messages_of_gets_that_nack_returns_come_one_after_the_other(lab: Lab) -> None:
    channel, q = _with_two_pulled_in_reverse(lab)
    channel.nack(0, multiple=True)
    lab.rest(q)


@scenario
def messages_of_gets_that_a_lost_channel_returns_come_in_their_order(lab: Lab) -> None:
    channel, q = _with_two_pulled_in_reverse(lab)
    channel.call(commands.Channel.Close, reply_code=200)
    lab.rest(q)


@scenario
def messages_of_gets_return_to_a_quorum_queue_one_after_the_other(lab: Lab) -> None:
    channel, q = _with_two_pulled_in_reverse(lab, **{"x-queue-type": "quorum"})
    channel.call(Basic.Recover, requeue=True)
    lab.rest(q)


@scenario
def a_consumer_keeps_its_turn_before_those_that_come_later(lab: Lab) -> None:
    connection = lab.connect()
    one, two = connection.channel(), connection.channel()
    q = lab.queue()
    one.consume(q, "one")
    lab.put(q, b"1")
    one.deliveries(1)
    two.consume(q, "two")
    one.nack(1)
    one.deliveries(1)
    lab.put(q, b"2")
    two.deliveries(1)


@scenario
def a_consumer_that_was_full_keeps_its_turn_if_nothing_came_meanwhile(lab: Lab) -> None:
    connection = lab.connect()
    one, two = connection.channel(), connection.channel()
    q = lab.queue()
    one.call(Basic.Qos, prefetch_count=1)
    one.consume(q, "one")
    lab.put(q, b"1")
    one.deliveries(1)
    two.consume(q, "two")
    one.nack(1)
    one.sync(q)
    two.sync(q)


@scenario
def a_consumer_that_was_passed_over_loses_its_turn(lab: Lab) -> None:
    connection = lab.connect()
    one, two = connection.channel(), connection.channel()
    q = lab.queue()
    one.call(Basic.Qos, prefetch_count=1)
    one.consume(q, "one")
    lab.put(q, b"1")
    one.deliveries(1)
    two.consume(q, "two")
    lab.put(q, b"2")
    two.deliveries(1)
    one.nack(1)
    two.sync(q)
    one.sync(q)
    two.sync(q)


# --- requeues after a disconnect


@scenario
def a_closed_channel_requeues_its_unsettled_messages(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(2)
    channel.call(commands.Channel.Close, reply_code=200)
    channel.connection.channel().drain(q)


@scenario
def a_channel_closed_by_an_error_requeues_its_unsettled_messages(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(2)
    channel.ack(99)
    channel.expect()
    channel.connection.channel().drain(q)


@scenario
def a_closed_connection_requeues_its_unsettled_messages(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(2)
    channel.connection.close()
    lab.channel().drain(q)


@scenario
def a_reset_socket_requeues_unsettled_messages(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(2)
    channel.sync(q)
    channel.connection.abort()
    waiting = lab.channel()
    waiting.consume(q, no_ack=True)
    waiting.deliveries(4)


@scenario
def a_consumers_messages_go_to_the_next_when_its_socket_is_reset(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2")
    one.consume(q)
    one.deliveries(2)
    two.consume(q)
    one.connection.abort()
    two.deliveries(2)
    two.ack(2, multiple=True)


@scenario
def what_was_settled_before_the_channel_closed_stays_settled(lab: Lab) -> None:
    channel, q = _with_four_pulled(lab)
    channel.ack(4, multiple=True)
    channel.call(commands.Channel.Close, reply_code=200)
    channel.connection.channel().drain(q)
