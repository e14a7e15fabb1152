"""Consuming: deliveries, prefetch, exclusivity, priorities, cancelling, pulling."""

from __future__ import annotations

from pamqp import commands
from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_connection import CAPABILITIES


@scenario
def a_consumer_gets_ready_and_later_messages(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"there", content_type="text/plain")
    channel.consume(q)
    channel.deliveries(1)
    lab.put(q, b"later")
    channel.deliveries(1)


@scenario
def an_empty_tag_lets_the_broker_choose_one(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1")
    tag = channel.consume(q, "")
    channel.deliveries(1)
    channel.call(Basic.Cancel, consumer_tag=tag)


@scenario
def delivery_tags_count_for_the_whole_channel(lab: Lab) -> None:
    connection = lab.connect()
    one, two = connection.channel(), connection.channel()
    p, q = lab.queue("p"), lab.queue("q")
    lab.put(p, b"1")
    one.consume(p, "p")
    one.deliveries(1)
    lab.put(q, b"2")
    one.consume(q, "q")
    one.deliveries(1)
    lab.put(q, b"3")
    one.deliveries(1)
    two.get(p)
    one.get(p)


@scenario
def consumers_of_a_queue_take_turns(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    channels = [connection.channel() for _ in range(3)]
    for channel in channels:
        channel.consume(q, f"c{channel.number}")
    for body in (b"1", b"2", b"3", b"4"):
        lab.put(q, body)
    for channel, count in zip(channels, (2, 1, 1), strict=True):
        channel.deliveries(count)


@scenario
def consumers_of_one_channel_take_turns(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.consume(q, "one")
    channel.consume(q, "two")
    for body in (b"1", b"2", b"3", b"4"):
        lab.put(q, body)
        channel.deliveries(1)


# --- tags


@scenario
def a_tag_in_use_on_the_channel_closes_the_connection(lab: Lab) -> None:
    channel = lab.channel()
    channel.consume(lab.queue("p"), "same")
    channel.call(Basic.Consume, queue=lab.queue("q"), consumer_tag="same")


@scenario
def a_tag_may_be_used_on_several_channels(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    connection.channel().consume(q, "same")
    connection.channel().consume(q, "same")


@scenario
def a_cancelled_tag_may_be_used_again(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    for _ in range(2):
        channel.consume(q, "same")
        channel.call(Basic.Cancel, consumer_tag="same")


@scenario
def cancelling_an_unknown_tag_is_answered(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Basic.Cancel, consumer_tag="unknown")
    channel.call(Basic.Cancel, consumer_tag="")


@scenario
def a_tag_is_looked_up_before_the_queue(lab: Lab) -> None:
    channel = lab.channel()
    channel.consume(lab.queue(), "same")
    channel.call(Basic.Consume, queue=lab.name("missing"), consumer_tag="same")


@scenario
def consuming_from_a_missing_queue_is_refused(lab: Lab) -> None:
    lab.channel().call(Basic.Consume, queue=lab.name("missing"), consumer_tag="c")


@scenario
def no_local_is_ignored(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.consume(q, no_local=True)
    channel.publish(b"mine", routing_key=q)
    channel.deliveries(1)


# --- cancelling


@scenario
def a_cancelled_consumer_keeps_its_unsettled_messages(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2")
    channel.consume(q)
    channel.deliveries(2)
    channel.call(Basic.Cancel, consumer_tag="c")
    channel.get(q)
    channel.ack(1)
    channel.nack(2)
    channel.drain(q)


@scenario
def a_deleted_queue_cancels_its_consumers(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.consume(q, "one")
    lab.channel().call(Queue.Delete, queue=q)
    channel.expect(Basic.Cancel)


@scenario
def a_client_that_does_not_know_cancels_gets_none(lab: Lab) -> None:
    channel = lab.connect(capabilities={**CAPABILITIES, "consumer_cancel_notify": False}).channel()
    q = lab.queue()
    channel.consume(q, "one")
    lab.channel().call(Queue.Delete, queue=q)
    channel.call(Queue.Declare, queue=q, passive=True)


@scenario
def answering_the_brokers_cancel_closes_the_connection(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.consume(q, "one")
    lab.channel().call(Queue.Delete, queue=q)
    channel.expect(Basic.Cancel)
    channel.send(Basic.CancelOk, consumer_tag="one")
    channel.expect()


@scenario
def a_consumer_cancelled_by_the_broker_can_begin_again(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.consume(q, "one")
    lab.channel().call(Queue.Delete, queue=q)
    channel.expect(Basic.Cancel)
    channel.declare(q)
    channel.consume(q, "one")


@scenario
def what_a_deleted_queue_has_delivered_can_still_be_acked(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2")
    channel.consume(q, "one")
    channel.deliveries(2)
    lab.channel().call(Queue.Delete, queue=q)
    channel.expect(Basic.Cancel)
    channel.ack(1)
    channel.nack(2)
    channel.sync()


@scenario
def the_next_consumer_becomes_the_single_active_one(lab: Lab) -> None:
    connection = lab.connect()
    one, two = connection.channel(), connection.channel()
    q = one.declare(lab.name("q"), arguments={"x-single-active-consumer": True})
    one.consume(q, "one")
    two.consume(q, "two")
    lab.put(q, b"1")
    one.deliveries(1)
    two.sync(q)
    one.ack(1)
    one.call(Basic.Cancel, consumer_tag="one")
    lab.put(q, b"2")
    two.deliveries(1)


# --- pulling


@scenario
def a_get_reports_the_remaining_messages(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2")
    channel.get(q)
    channel.get(q, no_ack=True)
    channel.get(q)
    channel.nack(1)
    channel.get(q)


@scenario
def pulling_from_a_missing_queue_is_refused(lab: Lab) -> None:
    lab.channel().get(lab.name("missing"))


# --- recover


@scenario
def recover_requeues_all_that_is_unsettled(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3")
    for _ in range(3):
        channel.get(q)
    channel.ack(2)
    channel.call(Basic.Recover, requeue=True)
    channel.drain(q)
    channel.ack(1)
    channel.expect()


@scenario
def recover_delivers_again_to_the_consumer(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2")
    channel.consume(q)
    channel.deliveries(2)
    channel.call(Basic.Recover, requeue=True)
    channel.deliveries(2)


@scenario
def recover_without_anything_unsettled_is_answered(lab: Lab) -> None:
    lab.channel().call(Basic.Recover, requeue=True)


@scenario
def recover_without_requeue_is_not_implemented(lab: Lab) -> None:
    lab.channel().call(Basic.Recover, requeue=False)


@scenario
def the_old_recover_is_not_answered(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1")
    channel.get(q)
    channel.send(Basic.RecoverAsync, requeue=True)
    channel.drain(q)


@scenario
def the_old_recover_without_requeue_is_not_implemented(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(Basic.RecoverAsync, requeue=False)
    channel.expect()


@scenario
def a_closed_channel_stops_its_consumers(lab: Lab) -> None:
    channel, other = lab.channel(), lab.channel()
    q = lab.queue()
    channel.consume(q)
    channel.call(commands.Channel.Close, reply_code=200)
    lab.put(q, b"1")
    other.get(q)
    other.declare(q, passive=True)
