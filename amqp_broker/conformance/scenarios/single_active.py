"""Queues with x-single-active-consumer: the active consumer and its successor."""

from __future__ import annotations

from pamqp import commands
from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import Lab, scenario


def _queue(lab: Lab, **flags: object) -> str:
    return lab.queue(arguments={"x-single-active-consumer": True, **flags})


@scenario
def only_one_consumer_is_active(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = _queue(lab)
    one.consume(q, "one")
    two.consume(q, "two")
    lab.put(q, b"1", b"2", b"3")
    one.deliveries(3)
    two.sync(q)


@scenario
def the_active_consumer_hands_over_when_its_channel_closes(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = _queue(lab)
    one.consume(q, "one")
    two.consume(q, "two")
    lab.put(q, b"1", b"2")
    one.deliveries(2)
    one.ack(1)
    one.call(commands.Channel.Close, reply_code=200)
    two.deliveries(1)
    lab.put(q, b"3")
    two.deliveries(1)


@scenario
def the_active_consumer_hands_over_when_its_socket_is_reset(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = _queue(lab)
    one.consume(q, "one")
    two.consume(q, "two")
    lab.put(q, b"1")
    one.deliveries(1)
    one.connection.abort()
    two.deliveries(1)


@scenario
def a_cancelled_active_consumer_keeps_its_messages(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = _queue(lab)
    one.consume(q, "one")
    two.consume(q, "two")
    lab.put(q, b"1")
    one.deliveries(1)
    one.call(Basic.Cancel, consumer_tag="one")
    lab.put(q, b"2")
    two.deliveries(1)
    one.nack(1)
    two.deliveries(1)


@scenario
def the_next_active_consumer_is_the_one_that_came_first(lab: Lab) -> None:
    channels = [lab.channel() for _ in range(3)]
    q = _queue(lab)
    for number, channel in enumerate(channels):
        channel.consume(q, f"c{number}")
    for number, channel in enumerate(channels):
        lab.put(q, b"%d" % number)
        channel.deliveries(1)
        channel.ack(1)
        channel.sync(q)
        channel.call(Basic.Cancel, consumer_tag=f"c{number}")


@scenario
def a_waiting_consumer_may_be_cancelled(lab: Lab) -> None:
    channels = [lab.channel() for _ in range(3)]
    q = _queue(lab)
    for number, channel in enumerate(channels):
        channel.consume(q, f"c{number}")
    channels[1].call(Basic.Cancel, consumer_tag="c1")
    channels[0].call(Basic.Cancel, consumer_tag="c0")
    lab.put(q, b"1")
    channels[2].deliveries(1)


@scenario
def a_full_active_consumer_is_not_replaced(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = _queue(lab)
    one.call(Basic.Qos, prefetch_count=1)
    one.consume(q, "one")
    two.consume(q, "two")
    lab.put(q, b"1", b"2")
    one.deliveries(1)
    two.sync(q)
    two.declare(q, passive=True)
    one.ack(1)
    one.deliveries(1)


@scenario
def the_priority_of_a_consumer_does_not_make_it_active(lab: Lab) -> None:
    one, two, three = lab.channel(), lab.channel(), lab.channel()
    q = _queue(lab)
    one.consume(q, "one")
    two.consume(q, "two")
    three.consume(q, "three", arguments={"x-priority": 10})
    lab.put(q, b"1")
    one.deliveries(1)
    one.ack(1)
    one.sync(q)
    one.call(Basic.Cancel, consumer_tag="one")
    lab.put(q, b"2")
    lab.channel().sync(q)
    two.sync()
    three.sync()
    two.flush()
    three.flush()


def _follow_by_priority(lab: Lab, kind: str) -> None:
    """Cancel the active consumer; those that wait have a lower priority, a higher and the highest one."""
    first, q = (
        lab.channel(),
        lab.queue(durable=True, arguments={"x-single-active-consumer": True, "x-queue-type": kind}),
    )
    waiting = [lab.channel() for _ in range(4)]
    first.consume(q, "first")
    for channel, priority in zip(waiting, (-1, 0, 5, 5), strict=True):
        channel.consume(q, f"{priority}", arguments={"x-priority": priority})
    first.sync(q)
    first.call(Basic.Cancel, consumer_tag="first")
    lab.put(q, b"1")
    lab.channel().sync(q)
    for channel in waiting:
        channel.sync()
        channel.flush()


@scenario
def the_priority_of_waiting_consumers_decides_which_follows(lab: Lab) -> None:
    _follow_by_priority(lab, "classic")


@scenario
def the_priority_of_waiting_consumers_of_a_quorum_queue_decides_which_follows(lab: Lab) -> None:
    _follow_by_priority(lab, "quorum")


@scenario
def an_exclusive_consumer_of_such_a_queue_is_refused(lab: Lab) -> None:
    q = _queue(lab)
    lab.channel().call(Basic.Consume, queue=q, consumer_tag="c", exclusive=True)


@scenario
def anybody_may_pull_from_such_a_queue(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = _queue(lab)
    lab.put(q, b"1")
    two.get(q)
    one.consume(q, "one")
    two.nack(1)
    one.deliveries(1)


@scenario
def a_queue_without_a_single_active_consumer_says_so(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = lab.queue(arguments={"x-single-active-consumer": False})
    one.consume(q, "one")
    two.consume(q, "two")
    for body in (b"1", b"2"):
        lab.put(q, body)
    one.deliveries(1)
    two.deliveries(1)


@scenario
def all_consumers_of_such_a_queue_count(lab: Lab) -> None:
    channel = lab.channel()
    q = _queue(lab)
    for tag in ("one", "two", "three"):
        channel.consume(q, tag)
    lab.channel().declare(q, passive=True)
    channel.call(Queue.Delete, queue=q, if_unused=True)


@scenario
def the_waiting_consumers_of_a_queue_may_be_counted(lab: Lab) -> None:
    for kind in ("classic", "quorum"):
        q = lab.queue(kind, durable=True, arguments={"x-queue-type": kind, "x-single-active-consumer": True})
        first, second = lab.channel(), lab.channel()
        first.consume(q, "first")
        second.consume(q, "second")
        second.call(Queue.Declare, queue=q, passive=True)
        second.call(Queue.Purge, queue=q)
        first.connection.close()
        lab.rest(q)
        second.call(Queue.Declare, queue=q, passive=True)
        second.call(Queue.Delete, queue=q, if_unused=True)
