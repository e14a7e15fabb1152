"""Moving ready messages of a queue to another queue or an exchange, in order and without loss.

A message leaves one queue and enters the other in the same step, and so in the same batch of the journal: it survives a
crash in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, SpecialMessage, routing_keys
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.scheduling.portions import Steps

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost

# Limits of one call; the caller repeats it.
MESSAGES_MAX: Final = 50_000
BYTES_MAX: Final = 64 * 1024 * 1024


class Moved(NamedTuple):
    """The number of moved messages, and the reason if fewer were moved than requested and ready."""

    messages: int
    reason: str = ""


# The number of messages from the head of a queue on, or the positions of some.
Choice = int | frozenset[int]


def move_to_queue(source: Queue, choice: Choice, destination: Queue) -> Steps[Moved]:
    """Move the chosen messages, until the other queue refuses one."""

    def send(message: Message) -> str:
        if destination.is_deleted:
            return f"{destination} was deleted"
        if destination.will_reject(message):
            return f"{destination} is full"
        moved = SpecialMessage.rebuilt(message, message.properties())
        if source.vhost.trace is not None:
            source.vhost.trace.moved(source, moved, [destination])
        destination.offer(moved)
        return ""

    return _move(source, choice, send)


def move_to_exchange(source: Queue, choice: Choice, vhost: VHost, exchange: Exchange) -> Steps[Moved]:
    """Move the chosen messages with their routing keys, until one is unroutable or refused."""
    delaying = [found for found in vhost.exchanges.values() if isinstance(found, DelayedExchange)]

    def send(message: Message) -> str:
        properties = message.properties()
        moved = SpecialMessage.rebuilt(message, properties)
        moved.address = Address(exchange.name, message.routing_key)
        delayed_count = sum(found.messages_delayed for found in delaying)
        if vhost.exchanges.get(exchange.name) is not exchange:
            return f"{exchange} was deleted"
        queues = vhost.route(exchange, routing_keys(message, properties), properties.headers or {}, moved)[0]
        if not queues and delayed_count == sum(found.messages_delayed for found in delaying):
            return f"{exchange} routes '{message.routing_key}' to no queue"
        full = next((queue for queue in queues if queue.will_reject(moved)), None)
        if full is not None:
            return f"{full} is full"
        if vhost.trace is not None:
            vhost.trace.moved(source, moved, list(queues))
        for queue in queues:
            queue.offer(moved)
        return ""

    return _move(source, choice, send)


def move_home(source: Queue, choice: Choice) -> Steps[Moved]:
    """Move the chosen dead letters to the queues that gave them up last, until one is gone or refuses."""

    def send(message: Message) -> str:
        properties = message.properties()
        name = _origin(properties.headers or {}, source.name)
        if name is None:
            return "a message has no x-death header that names another queue"
        home = source.vhost.queues.get(name)
        if home is None:
            return f"there is no queue '{name}' in vhost '{source.vhost.name}'"
        if home.will_reject(message):
            return f"{home} is full"
        moved = SpecialMessage.rebuilt(message, properties)
        if source.vhost.trace is not None:
            source.vhost.trace.moved(source, moved, [home])
        home.offer(moved)
        return ""

    return _move(source, choice, send)


def _origin(headers: fields.Table, queue: str) -> str | None:
    """Return the queue of the last death of a message that was not in `queue`; None if there is none."""
    deaths = headers.get("x-death")
    for death in deaths if isinstance(deaths, list) else []:
        name = death.get("queue") if isinstance(death, dict) else None
        if isinstance(name, str) and name != queue:
            return name
    return None


def _move(source: Queue, choice: Choice, send: Callable[[Message], str]) -> Steps[Moved]:
    """Move messages with `send`, which returns the reason if it refuses one."""
    if isinstance(choice, int):
        return _move_first(source, choice, send)
    return _move_chosen(source, choice, send)


def _move_chosen(source: Queue, positions: frozenset[int], send: Callable[[Message], str]) -> Steps[Moved]:
    """Move the messages at some positions, in the order in which they arrived."""
    if not isinstance(source, BacklogQueue):
        # A stream gives no message away, and says so.
        source.pull()
        return Moved(0)
    moved = missing = 0
    for position in sorted(positions):
        source.expire()
        yield from source.held()
        while not source.backlog.reach(position):
            yield
            yield from source.held()
        taken = source.pull_at(position)
        if taken is None:
            missing += 1
            continue
        message, redelivered = taken
        reason = send(message)
        if reason:
            source.return_at(position, message, redelivered)
            source.drain()
            return Moved(moved, reason)
        source.forget(position, message)
        moved += 1
        yield
    return Moved(
        moved, f"not ready here any more, or too far behind others: {missing} of the chosen" if missing else ""
    )


def _move_first(source: Queue, count: int, send: Callable[[Message], str]) -> Steps[Moved]:
    wanted, moved, bytes_left = min(count, source.ready_count), 0, BYTES_MAX
    while moved < wanted:
        if moved == MESSAGES_MAX or bytes_left < 0:
            return Moved(moved, "the limit of messages per request is reached")
        source.expire()
        yield from source.held()
        pulled = source.pull()
        if pulled is None:
            break
        message, position, _ = pulled
        reason = send(message)
        if reason:
            source.return_to_head(position, message)
            source.drain()
            return Moved(moved, reason)
        source.forget(position, message)
        bytes_left -= len(message.content)
        moved += 1
        yield
    return Moved(moved)
