"""Messages that come back to a quorum queue: where they go, and how often they count as delivered.

Each scenario is one way to give three of six messages back, from a consumer or from basic.get.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pamqp import commands
from pamqp.commands import Basic, Queue, Tx

from amqp_broker.conformance.lab import SCENARIOS, Lab, Scenario, scenario
from amqp_broker.conformance.scenario_channel import Channel

Way = Callable[[Channel], None]
# The delivery limit of the version, one of its own, and none from 4.0 on.
LIMITS: tuple[dict[str, int], ...] = ({}, {"x_delivery_limit": 5}, {"x_delivery_limit": -1})


def quorum_queue(lab: Lab, name: str = "q", **arguments: object) -> str:
    """Declare a quorum queue; `x_max_length` stands for x-max-length."""
    given = {key.replace("_", "-"): value for key, value in arguments.items() if value is not None}
    return lab.queue(name, durable=True, arguments={"x-queue-type": "quorum", **given})


def await_return(lab: Lab, queue: str) -> None:
    """Wait until nothing is unacked: RabbitMQ has a consumer for each that holds messages. Not recorded."""
    with lab.transcript.muted():
        channel = lab.channel()
        while channel.call(Queue.Declare, queue=queue, passive=True)["consumer_count"]:
            pass


def _nack_each(channel: Channel) -> None:
    for tag in (1, 2, 3):
        channel.nack(tag)


def _nack_backwards(channel: Channel) -> None:
    for tag in (3, 2, 1):
        channel.nack(tag)


def _reject_each(channel: Channel) -> None:
    for tag in (1, 2, 3):
        channel.reject(tag)


def _recover(channel: Channel) -> None:
    channel.call(Basic.Recover, requeue=True)


def _nack_in_transaction(channel: Channel) -> None:
    channel.call(Tx.Select)
    channel.nack(3, multiple=True)
    channel.call(Tx.Commit)


def _close_in_transaction(channel: Channel) -> None:
    channel.call(Tx.Select)
    channel.nack(2, multiple=True)
    channel.call(commands.Channel.Close)


def _close(channel: Channel) -> None:
    channel.call(commands.Channel.Close)


def _fail(channel: Channel) -> None:
    channel.ack(77)
    channel.expect(commands.Channel.Close)


def _nack_one_and_close(channel: Channel) -> None:
    channel.nack(2)
    channel.call(commands.Channel.Close)


WAYS: dict[str, Way] = {
    "nacks": _nack_each,
    "nacks in reverse": _nack_backwards,
    "a nack of all": lambda channel: channel.nack(3, multiple=True),
    "rejects": _reject_each,
    "recover": _recover,
    "a nack in a transaction": _nack_in_transaction,
    "a close in a transaction": _close_in_transaction,
    "the close of the channel": _close,
    "an error of the channel": _fail,
    "the close of the connection": lambda channel: channel.connection.close(),
    "a reset of the connection": lambda channel: channel.connection.abort(),
    "a nack and the close of the channel": _nack_one_and_close,
}


def _order(from_get: bool, way: Way, lab: Lab) -> None:
    for number, arguments in enumerate(LIMITS):
        q = quorum_queue(lab, f"q{number}", **arguments)
        lab.put(q, *(b"%d" % body for body in range(1, 7)))
        channel = lab.channel()
        _take(channel, q, from_get)
        way(channel)
        await_return(lab, q)
        lab.channel().drain(q)


def _take(channel: Channel, queue: str, from_get: bool) -> None:
    """Take three messages, and no more."""
    if from_get:
        for _ in range(3):
            channel.get(queue)
        return
    channel.call(Basic.Qos, prefetch_count=3)
    channel.consume(queue)
    channel.deliveries(3)
    channel.call(Basic.Cancel, consumer_tag="c")


def _register() -> None:
    for from_get in (False, True):
        for way_name, way in WAYS.items():
            name = f"{way_name} after {'gets' if from_get else 'deliveries'}"
            SCENARIOS[name] = Scenario(name, "quorum_returns", partial(_order, from_get, way))


_register()


# --- several consumers


def _three_consumers(lab: Lab) -> tuple[Channel, str]:
    """Return a channel whose consumers b, a and c have two messages each, and their queue."""
    q, channel = quorum_queue(lab), lab.channel()
    channel.call(Basic.Qos, prefetch_count=2)
    for tag in ("b", "a", "c"):
        channel.consume(q, tag)
    for number in range(6):
        lab.put(q, b"%d" % number)
        channel.deliveries(1)
    return channel, q


def _cancel(channel: Channel, *tags: str) -> None:
    for tag in tags:
        channel.call(Basic.Cancel, consumer_tag=tag)


@scenario
def the_consumers_of_a_lost_channel_return_their_messages_one_after_the_other(lab: Lab) -> None:
    channel, q = _three_consumers(lab)
    _close(channel)
    await_return(lab, q)
    lab.channel().drain(q)


@scenario
def a_consumer_that_resumes_keeps_its_turn_among_those_of_a_lost_channel(lab: Lab) -> None:
    q, channel = quorum_queue(lab), lab.channel()
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q, "a")
    lab.put(q, b"1")
    channel.deliveries(1)
    _cancel(channel, "a")
    channel.consume(q, "b")
    channel.consume(q, "a")
    lab.put(q, b"2")
    channel.deliveries(1)
    _close(channel)
    await_return(lab, q)
    lab.channel().drain(q)


@scenario
def a_consumer_that_begins_anew_has_the_last_turn_among_those_of_a_lost_channel(lab: Lab) -> None:
    q, channel = quorum_queue(lab), lab.channel()
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q, "a")
    lab.put(q, b"0")
    (tag,) = channel.deliveries(1)
    _cancel(channel, "a")
    channel.ack(tag)
    channel.sync()
    channel.consume(q, "b")
    lab.put(q, b"2")
    channel.deliveries(1)
    channel.consume(q, "a")
    lab.put(q, b"1")
    channel.deliveries(1)
    _close(channel)
    await_return(lab, q)
    lab.channel().drain(q)


@scenario
def a_nack_of_all_returns_messages_consumer_by_consumer(lab: Lab) -> None:
    channel, q = _three_consumers(lab)
    _cancel(channel, "b", "a", "c")
    channel.nack(0, multiple=True)
    await_return(lab, q)
    lab.channel().drain(q)


@scenario
def recover_returns_messages_consumer_by_consumer(lab: Lab) -> None:
    channel, q = _three_consumers(lab)
    _cancel(channel, "b", "a", "c")
    _recover(channel)
    await_return(lab, q)
    lab.channel().drain(q)


@scenario
def messages_of_several_consumers_are_dead_lettered_consumer_by_consumer(lab: Lab) -> None:
    for kind in ("classic", "quorum"):
        dead = lab.queue(f"dead.{kind}")
        arguments = {"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        q = lab.queue(kind, durable=True, arguments=arguments)
        channel = lab.channel()
        channel.call(Basic.Qos, prefetch_count=2)
        for tag in ("b", "a", "c"):
            channel.consume(q, tag)
        for number in range(6):
            lab.put(q, b"%d" % number)
            channel.deliveries(1)
        channel.nack(0, multiple=True, requeue=False)
        channel.sync(q, dead)
        lab.channel().drain(dead)


@scenario
def many_gets_of_a_lost_channel_return_in_the_order_of_the_text_of_their_tags(lab: Lab) -> None:
    q = quorum_queue(lab)
    lab.put(q, *(b"%d" % number for number in range(1, 13)))
    channel = lab.channel()
    for _ in range(12):
        channel.get(q)
    _close(channel)
    await_return(lab, q)
    lab.channel().drain(q)


@scenario
def gets_and_a_consumer_of_a_lost_channel(lab: Lab) -> None:
    q = quorum_queue(lab)
    lab.put(q, *(b"%d" % number for number in range(1, 5)))
    channel = lab.channel()
    channel.get(q)
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q, "2a")
    channel.deliveries(1)
    channel.get(q)
    channel.get(q)
    _close(channel)
    await_return(lab, q)
    lab.channel().drain(q)


@scenario
def gets_and_a_consumer_nacked_at_once(lab: Lab) -> None:
    q = quorum_queue(lab)
    lab.put(q, *(b"%d" % number for number in range(1, 14)))
    channel = lab.channel()
    for _ in range(11):
        channel.get(q)
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q, "2a")
    channel.deliveries(1)
    _cancel(channel, "2a")
    channel.get(q)
    channel.nack(0, multiple=True)
    await_return(lab, q)
    lab.channel().drain(q)


@scenario
def a_return_of_a_lost_channel_counts_for_the_delivery_limit(lab: Lab) -> None:
    q = quorum_queue(lab, x_delivery_limit=1)
    lab.put(q, b"1", b"2")
    for _ in range(2):
        channel = lab.channel()
        channel.get(q)
        channel.call(Basic.Qos, prefetch_count=1)
        channel.consume(q)
        channel.deliveries(1)
        _close(channel)
        await_return(lab, q)
    lab.channel().drain(q)
