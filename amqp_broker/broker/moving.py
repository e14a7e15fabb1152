"""Moving what is ready in a queue to another queue, or through an exchange: nothing is lost, copied or reordered.

Each message leaves its queue in the same batch of the journal in which it arrives: a crash finds it in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.broker.delayed_exchange import DelayedExchange
from amqp_broker.message import Address, Message, SpecialMessage, routing_keys

if TYPE_CHECKING:
    from amqp_broker.broker.exchange import Exchange
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.vhost import VHost

# What is moved at once, so that others are served in between: whoever has more asks again.
MESSAGES_MAX: Final = 50_000
BYTES_MAX: Final = 64 * 1024 * 1024


class Moved(NamedTuple):
    """How many messages were moved, and why no more were; nothing where all were that there are to be."""

    messages: int
    reason: str = ""


def move_to_queue(source: Queue, count: int, destination: Queue) -> Moved:
    """Move the first `count` messages, or as many as there are, until the other queue will have no more."""

    def send(message: Message) -> str:
        if destination.will_reject(message):
            return f"{destination} is full"
        destination.accept(SpecialMessage.anew(message, message.properties()))
        return ""

    return _move(source, count, send)


def move_to_exchange(source: Queue, count: int, vhost: VHost, exchange: Exchange) -> Moved:
    """As `move_to_queue`; messages keep their routing keys, and one that finds no queue stays where it is."""
    delaying = [found for found in vhost.exchanges.values() if isinstance(found, DelayedExchange)]

    def send(message: Message) -> str:
        properties = message.properties()
        moved = SpecialMessage.anew(message, properties)
        moved.address = Address(exchange.name, message.routing_key)
        delayed_count = sum(found.messages_delayed for found in delaying)
        queues = vhost.route(exchange, routing_keys(message, properties), properties.headers or {}, moved)[0]
        if not queues and delayed_count == sum(found.messages_delayed for found in delaying):
            return f"{exchange} routes '{message.routing_key}' to no queue"
        full = next((queue for queue in queues if queue.will_reject(moved)), None)
        if full is not None:
            return f"{full} is full"
        for queue in queues:
            queue.accept(moved)
        return ""

    return _move(source, count, send)


def _move(source: Queue, count: int, send: Callable[[Message], str]) -> Moved:
    """`send` says why a message cannot go, or nothing once it went."""
    wanted, moved, bytes_left = min(count, source.ready_count), 0, BYTES_MAX
    while moved < wanted:
        if moved == MESSAGES_MAX or bytes_left < 0:
            return Moved(moved, "there are more than are moved at once")
        pulled = source.pull()
        if pulled is None:
            break
        message, position, _ = pulled
        reason = send(message)
        if reason:
            source.untake(position, message)
            source.drain()
            return Moved(moved, reason)
        source.forget(position, message)
        bytes_left -= len(message.content)
        moved += 1
    return Moved(moved)
