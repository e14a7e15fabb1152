"""Full quorum queues to which messages come back.

Consumers take what has come back before the queue drops what is too much from its head.
"""

from __future__ import annotations

from functools import partial

from pamqp import commands
from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import SCENARIOS, Lab, Scenario, scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.scenarios.quorum_returns import LIMITS, WAYS, Way, await_return, quorum_queue


class Full:
    """A quorum queue of at most three messages, with dead letters, and a channel that holds earlier ones."""

    def __init__(self, lab: Lab, name: str = "q", **arguments: object) -> None:
        self.lab = lab
        self.dead = lab.queue(f"dead.{name}")
        given = {"x_max_length": 3, "x_dead_letter_exchange": "", "x_dead_letter_routing_key": self.dead, **arguments}
        self.q = quorum_queue(lab, name, **given)
        self.channel = lab.channel()

    def consume(self, prefetch: int, tag: str = "c", channel: Channel | None = None) -> None:
        """Consume as many messages as the prefetch allows."""
        channel = channel or self.channel
        channel.call(Basic.Qos, prefetch_count=prefetch)
        channel.consume(self.q, tag)

    def put(self, *bodies: bytes, **properties: object) -> None:
        self.lab.put(self.q, *bodies, **properties)

    def hold(self, *bodies: bytes) -> None:
        """Have the consumer take these messages, and fill the queue."""
        self.put(*bodies)
        self.channel.deliveries(len(bodies))
        self.put(b"1", b"2", b"3")

    def show(self) -> None:
        """Show what is left, and then what died."""
        self.lab.channel().drain(self.q)
        self.drain_dead()

    def drain_dead(self) -> None:
        channel = self.lab.channel()
        channel.sync(self.q, self.dead)
        channel.drain(self.dead)


def _with_consumer(way: Way, lab: Lab) -> None:
    """The consumer stays, unless it ends with its channel."""
    for number, arguments in enumerate(LIMITS):
        full = Full(lab, f"q{number}", **arguments)
        full.consume(3)
        full.hold(b"a", b"b", b"c")
        way(full.channel)
        if full.channel.is_open:
            full.channel.deliveries(3)
            full.channel.call(commands.Channel.Close)
        await_return(lab, full.q)
        full.show()


def _without_consumer(way: Way, lab: Lab) -> None:
    """The messages were taken by basic.get."""
    for number, arguments in enumerate(LIMITS):
        full = Full(lab, f"q{number}", **arguments)
        full.put(b"a", b"b", b"c")
        for _ in range(3):
            full.channel.get(full.q)
        full.put(b"1", b"2", b"3")
        way(full.channel)
        await_return(lab, full.q)
        full.show()


def _register() -> None:
    names = ("a nack of all", "nacks", "rejects", "recover", "a nack in a transaction", "the close of the channel")
    for name in (*names, "a reset of the connection"):
        for play, kind in ((_with_consumer, "deliveries"), (_without_consumer, "gets")):
            title = f"{name} after {kind} from a full queue"
            SCENARIOS[title] = Scenario(title, "quorum_overflows", partial(play, WAYS[name]))


_register()


@scenario
def a_consumer_gets_its_message_again_before_a_full_quorum_queue_drops_one(lab: Lab) -> None:
    full = Full(lab)
    full.consume(1)
    full.hold(b"0")
    full.channel.nack(1)
    full.channel.deliveries(1)
    full.channel.reject(2)
    full.channel.deliveries(1)
    full.channel.call(Basic.Recover, requeue=True)
    full.channel.deliveries(1)
    full.channel.ack(4)
    full.channel.deliveries(1)
    full.channel.sync(full.q)
    full.show()


@scenario
def another_consumer_gets_a_returned_message_before_a_full_quorum_queue_drops_one(lab: Lab) -> None:
    full = Full(lab)
    full.consume(1)
    full.hold(b"0")
    other = lab.channel()
    other.call(Basic.Qos, prefetch_count=2)
    other.consume(full.q, "other")
    other.deliveries(2)
    full.put(b"4", b"5")
    full.channel.call(commands.Channel.Close)
    other.sync(full.q)
    full.drain_dead()
    other.ack(1)
    other.deliveries(1)
    other.call(commands.Channel.Close)
    await_return(lab, full.q)
    full.show()


@scenario
def a_returned_message_and_octets_beyond_the_limit(lab: Lab) -> None:
    full = Full(lab, x_max_length=None, x_max_length_bytes=250)
    full.consume(1)
    full.put(b"0" * 60)
    full.channel.deliveries(1)
    full.put(b"1" * 60, b"2" * 60)
    full.channel.nack(1)
    full.channel.deliveries(1)
    full.channel.call(commands.Channel.Close)
    await_return(lab, full.q)
    full.show()


@scenario
def a_returned_message_of_a_full_queue_that_rejects_publishes(lab: Lab) -> None:
    full = Full(lab, x_overflow="reject-publish")
    full.consume(1)
    full.hold(b"0")
    full.channel.nack(1)
    full.channel.deliveries(1)
    full.channel.call(commands.Channel.Close)
    await_return(lab, full.q)
    full.show()


@scenario
def a_message_beyond_the_delivery_limit_makes_room_in_a_full_queue(lab: Lab) -> None:
    full = Full(lab, x_delivery_limit=0)
    full.put(b"0")
    full.channel.get(full.q)
    full.put(b"1", b"2", b"3")
    full.channel.reject(1)
    await_return(lab, full.q)
    full.show()


@scenario
def a_returned_message_of_high_priority_in_a_full_queue(lab: Lab) -> None:
    full = Full(lab)
    full.consume(1)
    full.put(b"0", priority=9)
    full.channel.deliveries(1)
    full.put(b"low", priority=0)
    full.put(b"high", priority=9)
    full.put(b"none")
    full.channel.nack(1)
    full.channel.deliveries(1)
    full.channel.call(Basic.Cancel, consumer_tag="c")
    full.channel.nack(2)
    await_return(lab, full.q)
    full.show()


@scenario
def a_message_returned_to_a_full_queue_with_a_single_active_consumer(lab: Lab) -> None:
    full = Full(lab, x_single_active_consumer=True)
    full.consume(1, "first")
    full.hold(b"0")
    other = lab.channel()
    full.consume(2, "second", other)
    full.channel.nack(1)
    full.channel.deliveries(1)
    full.channel.call(commands.Channel.Close)
    other.deliveries(2)
    other.call(commands.Channel.Close)
    await_return(lab, full.q)
    last = lab.channel()
    last.consume(full.q, "last", no_ack=True)
    last.sync(full.q)
    full.drain_dead()


@scenario
def several_consumers_return_their_messages_to_a_full_queue(lab: Lab) -> None:
    full = Full(lab)
    for tag in ("b", "a"):
        full.consume(1, tag)
    full.hold(b"x", b"y")
    full.channel.nack(0, multiple=True)
    full.channel.deliveries(2)
    full.channel.call(Basic.Cancel, consumer_tag="a")
    full.channel.nack(0, multiple=True)
    full.channel.deliveries(1)
    full.channel.sync(full.q)
    full.drain_dead()
    full.channel.call(commands.Channel.Close)
    await_return(lab, full.q)
    full.show()


@scenario
def a_full_queue_without_dead_letters_drops_what_comes_back_too_much(lab: Lab) -> None:
    q = quorum_queue(lab, x_max_length=1)
    lab.put(q, b"0")
    channel = lab.channel()
    channel.get(q)
    lab.put(q, b"1")
    channel.nack(1)
    await_return(lab, q)
    channel.drain(q)


@scenario
def a_delayed_message_makes_a_queue_full_after_the_next_delivery(lab: Lab) -> None:
    full = Full(lab, x_delayed_retry_type="all", x_delayed_retry_min=400)
    full.consume(1)
    full.hold(b"0")
    full.channel.reject(1)
    full.channel.deliveries(1)
    full.channel.sync(full.q)
    full.drain_dead()
    full.channel.call(Queue.Declare, queue=full.q, passive=True)
