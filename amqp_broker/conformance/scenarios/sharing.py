"""Distribution of messages among consumers: prefetch, exclusive consumers, priorities."""

from __future__ import annotations

from pamqp.commands import Basic, Queue, Tx

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.wire import Field

# --- prefetch


@scenario
def a_consumer_gets_no_more_than_its_prefetch(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3", b"4")
    channel.call(Basic.Qos, prefetch_count=2)
    channel.consume(q)
    channel.deliveries(2)
    channel.sync(q)
    channel.ack(1)
    channel.deliveries(1)
    channel.sync(q)
    channel.ack(3, multiple=True)
    channel.deliveries(1)


@scenario
def prefetch_counts_for_each_consumer(lab: Lab) -> None:
    channel = lab.channel()
    p, q = lab.queue("p"), lab.queue("q")
    lab.put(p, b"p1", b"p2")
    lab.put(q, b"q1", b"q2")
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(p, "p")
    channel.deliveries(1)
    channel.consume(q, "q")
    channel.deliveries(1)
    channel.sync(p, q)


@scenario
def prefetch_is_fixed_when_the_consumer_begins(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3")
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q)
    channel.deliveries(1)
    channel.call(Basic.Qos, prefetch_count=10)
    channel.sync(q)
    channel.ack(1)
    channel.deliveries(1)


@scenario
def prefetch_does_not_hold_back_consumers_without_acks(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3")
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q, no_ack=True)
    channel.deliveries(3)
    channel.declare(q, passive=True)


@scenario
def prefetch_does_not_count_gets(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3")
    channel.call(Basic.Qos, prefetch_count=1)
    channel.get(q)
    channel.get(q)
    channel.consume(q)
    channel.deliveries(1)


@scenario
def a_global_prefetch_counts_for_the_channel(lab: Lab) -> None:
    channel = lab.channel()
    p, q = lab.queue("p"), lab.queue("q")
    lab.put(p, b"p1", b"p2")
    lab.put(q, b"q1")
    channel.call(Basic.Qos, prefetch_count=2, global_=True)
    channel.consume(p, "p")
    channel.deliveries(2)
    channel.consume(q, "q")
    channel.sync(p, q)
    channel.ack(1)
    channel.sync(p, q)


@scenario
def a_global_prefetch_holds_for_consumers_that_are_there(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.consume(q)
    channel.call(Basic.Qos, prefetch_count=1, global_=True)
    lab.put(q, b"1", b"2")
    channel.deliveries(1)
    channel.sync(q)
    channel.ack(1)
    channel.sync(q)


@scenario
def a_global_prefetch_of_0_lifts_the_limit(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3")
    channel.call(Basic.Qos, prefetch_count=1, global_=True)
    channel.consume(q)
    channel.deliveries(1)
    channel.call(Basic.Qos, prefetch_count=0, global_=True)
    channel.sync(q)


@scenario
def the_smaller_of_both_prefetches_holds(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3")
    channel.call(Basic.Qos, prefetch_count=2, global_=True)
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q)
    channel.deliveries(1)
    channel.sync(q)


@scenario
def a_consumer_that_is_full_is_passed_over(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    full, free = connection.channel(), connection.channel()
    full.call(Basic.Qos, prefetch_count=1)
    full.consume(q)
    free.consume(q)
    for body in (b"1", b"2", b"3", b"4"):
        lab.put(q, body)
    full.deliveries(1)
    free.deliveries(3)


# --- exclusive consumers


@scenario
def an_exclusive_consumer_keeps_others_out(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    connection.channel().consume(q, exclusive=True)
    connection.channel().call(Basic.Consume, queue=q)
    connection.channel().call(Basic.Consume, queue=q, exclusive=True)
    connection.channel().get(q)
    lab.channel().call(Queue.Declare, queue=q)


@scenario
def a_queue_with_consumers_takes_no_exclusive_one(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    connection.channel().consume(q)
    connection.channel().call(Basic.Consume, queue=q, exclusive=True)


@scenario
def an_exclusive_consumer_that_leaves_lets_others_in(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    channel = connection.channel()
    channel.consume(q, exclusive=True)
    channel.call(Basic.Cancel, consumer_tag="c")
    connection.channel().consume(q, exclusive=True)


@scenario
def an_exclusive_consumer_is_refused_with_single_active_consumer(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), arguments={"x-single-active-consumer": True})
    channel.call(Basic.Consume, queue=q, exclusive=True)


# --- priorities


@scenario
def consumers_of_higher_priority_come_first(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    low, high = connection.channel(), connection.channel()
    low.consume(q, "low", arguments={"x-priority": -1})
    high.call(Basic.Qos, prefetch_count=2)
    high.consume(q, "high", arguments={"x-priority": 10})
    for body in (b"1", b"2", b"3"):
        lab.put(q, body)
    high.deliveries(2)
    low.deliveries(1)


@scenario
def a_consumer_priority_must_be_a_number(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    for value in ("high", 1.5, True, None, Field("l", 2**40)):
        connection.channel().call(Basic.Consume, queue=q, arguments={"x-priority": value})


@scenario
def unknown_consumer_arguments_are_ignored(lab: Lab) -> None:
    lab.channel().consume(lab.queue(), arguments={"x-unknown": 1, "unknown": "x"})


@scenario
def consumer_arguments_of_other_queue_types_are_refused(lab: Lab) -> None:
    lab.channel().call(Basic.Consume, queue=lab.queue(), arguments={"x-stream-offset": "first"})


@scenario
def a_consumer_whose_messages_come_back_takes_its_turn_behind_others(lab: Lab) -> None:
    for kind in ("classic", "quorum"):
        q = lab.queue(kind, durable=True, arguments={"x-queue-type": kind})
        limited, other = lab.channel(), lab.channel()
        limited.call(Basic.Qos, prefetch_count=1)
        limited.consume(q, "limited")
        other.consume(q, "other")
        lab.put(q, b"1", b"2", b"3")
        limited.deliveries(1)
        other.deliveries(2)
        limited.nack(1)
        lab.rest(q)
        lab.put(q, b"4", b"5")
        lab.rest(q)
        for channel, tag in ((limited, "limited"), (other, "other")):
            channel.call(Basic.Cancel, consumer_tag=tag)


@scenario
def a_full_consumer_keeps_its_turn_in_a_classic_queue_only(lab: Lab) -> None:
    for kind in ("classic", "quorum"):
        q = lab.queue(kind, durable=True, arguments={"x-queue-type": kind})
        limited, other = lab.channel(), lab.channel()
        limited.call(Basic.Qos, prefetch_count=2)
        limited.consume(q, "limited")
        other.consume(q, "other")
        lab.put(q, b"1", b"2", b"3", b"4")
        limited.deliveries(2)
        other.deliveries(2)
        limited.call(Basic.Recover, requeue=True)
        lab.rest(q)
        lab.put(q, b"5", b"6")
        lab.rest(q)
        for channel, tag in ((limited, "limited"), (other, "other")):
            channel.call(Basic.Cancel, consumer_tag=tag)


# --- settling messages of several consumers at once

TYPES = ("classic", "quorum")


def _shared(lab: Lab, kind: str, name: str, *consumers: tuple[str, int]) -> tuple[str, Channel]:
    """Return a queue of five messages and the channel of its consumers, which hold one each.

    The consumers are given by tag and priority.
    """
    q = lab.queue(f"{kind}.{name}", durable=True, arguments={"x-queue-type": kind})
    channel = lab.channel()
    channel.call(Basic.Qos, prefetch_count=1)
    for tag, priority in consumers:
        channel.consume(q, tag, arguments={"x-priority": priority})
    for body in (b"1", b"2", b"3", b"4", b"5"):
        lab.put(q, body)
        lab.rest(q)
    return q, channel


@scenario
def an_ack_of_several_consumers_serves_them_in_the_order_of_their_tags(lab: Lab) -> None:
    orders = {"c": (("c", 0), ("d", 0)), "d": (("d", 0), ("c", 0)), "d-first": (("d", 1), ("c", 0))}
    for kind in TYPES:
        for name, consumers in orders.items():
            q, channel = _shared(lab, kind, name, *consumers)
            channel.ack(2, multiple=True)
            lab.rest(q)
            channel.ack(0, multiple=True)
            lab.rest(q)


@scenario
def a_commit_serves_consumers_in_the_order_of_their_tags(lab: Lab) -> None:
    for kind in TYPES:
        for name, tags in {"up": (1, 2), "down": (2, 1)}.items():
            q, channel = _shared(lab, kind, name, ("d", 0), ("c", 0))
            channel.call(Tx.Select)
            for tag in tags:
                channel.ack(tag)
            channel.call(Tx.Commit)
            lab.rest(q)


@scenario
def each_consumer_is_served_as_soon_as_its_messages_are_back(lab: Lab) -> None:
    for kind in TYPES:
        q, channel = _shared(lab, kind, "q", ("d", 0), ("c", 0))
        channel.nack(2, multiple=True, requeue=True)
        lab.rest(q)
        channel.call(Basic.Recover, requeue=True)
        lab.rest(q)


@scenario
def a_consumer_takes_again_before_messages_of_another_one_are_back(lab: Lab) -> None:
    for kind in TYPES:
        for first, second in ((3, 1), (1, 3)):
            q = lab.queue(f"{kind}.{first}", durable=True, arguments={"x-queue-type": kind})
            channel = lab.channel()
            for tag, prefetch in (("c", first), ("d", second)):
                channel.call(Basic.Qos, prefetch_count=prefetch)
                channel.consume(q, tag)
            for body in (b"1", b"2"):
                lab.put(q, body)
                lab.rest(q)
            channel.nack(0, multiple=True, requeue=True)
            lab.rest(q)
