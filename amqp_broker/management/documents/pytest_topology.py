"""Declarations for a test: queues, and the exchanges and bindings that lead to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.admin.policies import effective_definition
from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.observe.event_log import Event
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.queue_settings import POLICY_KEYS
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.documents.python_source import with_arguments

OBJECTS_MAX: Final = 100


def topology(vhost: VHost, queues: Sequence[str], events: Sequence[Event]) -> Iterator[str]:
    """Yield lines that use pika. Raise InvalidParameter for a topology that a test cannot have."""
    yield "channel = connection.channel()"
    exchanges = _exchanges(vhost, queues, events)
    if len(exchanges) + len(queues) > OBJECTS_MAX:
        raise InvalidParameter(f"a test has at most {OBJECTS_MAX} exchanges and queues")
    for exchange in exchanges:
        if exchange.name and not exchange.name.startswith("amq."):
            yield _declared_exchange(exchange)
    for name in queues:
        yield from _declared_queue(vhost, name, events)
    kept = {exchange.name for exchange in exchanges}
    for exchange in exchanges:
        for binding in exchange.bindings.values():
            target = binding.destination
            is_queue = isinstance(target, Queue)
            if target.name in (queues if is_queue else kept):
                kind = "queue" if is_queue else "exchange"
                name = declared_name(target.name) if is_queue else target.name
                yield _bound(kind, name, exchange.name, binding.routing_key, binding.arguments)


def declared_name(queue: str) -> str:
    """Return the name of a queue in a test, where names that the broker makes cannot be declared."""
    return queue.removeprefix("amq.")


def _declared_exchange(exchange: Exchange) -> str:
    options = _options(durable=exchange.is_durable, internal=exchange.is_internal)
    arguments = {"arguments": dict(exchange.arguments)} if exchange.arguments else {}
    given = {"exchange": exchange.name, "exchange_type": exchange.type, **options, **arguments}
    return f"channel.exchange_declare({with_arguments(given)[2:]})"


def _declared_queue(vhost: VHost, name: str, events: Sequence[Event]) -> Iterator[str]:
    queue = vhost.queues.get(name)
    if isinstance(queue, StreamQueue) and any(event.queue == name for event in events):
        raise InvalidParameter(f"a test cannot repeat what the consumers of a stream did, here '{name}'")
    if queue is not None:
        definition = effective_definition(queue)
        policies = {POLICY_KEYS[key]: value for key, value in definition.items() if key in POLICY_KEYS}
        arguments = {**policies, **queue.arguments}
        options = _options(durable=queue.is_durable, exclusive=queue.owner is not None or not queue.is_durable)
        given = {"queue": declared_name(name), **options, **({"arguments": arguments} if arguments else {})}
        yield f"channel.queue_declare({with_arguments(given)[2:]})"
        return
    if any(event.queue == name and event.kind in ("expire", "dead_letter") for event in events):
        raise InvalidParameter(f"queue '{name}' was deleted, so its arguments are not known")
    yield f"channel.queue_declare({with_arguments({'queue': declared_name(name), 'durable': True})[2:]})"
    # Its bindings are not known, either.
    for event in events:
        if name in event.queues and event.exchange:
            yield _bound("queue", declared_name(name), event.exchange, event.routing_keys[0], {})


def _exchanges(vhost: VHost, queues: Sequence[str], events: Sequence[Event]) -> list[Exchange]:
    """Return the exchanges of the events, and those that lead from them to the queues."""
    names = [event.exchange for event in events if event.kind in ("publish", "dead_letter")]
    for name in names:
        if name not in vhost.exchanges:
            raise InvalidParameter(f"exchange '{name}' was deleted, so its type is not known")
    dead = (queue.settings.dead_letter_exchange for name in queues if (queue := vhost.queues.get(name)))
    names += [letters for letters in dead if letters]
    found = {name: vhost.exchanges[name] for name in names if name in vhost.exchanges}
    waiting = list(found.values())
    while waiting and len(found) <= OBJECTS_MAX:
        for end in _ends(vhost, waiting.pop()):
            if end.name not in found:
                found[end.name] = end
                waiting.append(end)
    return list(found.values())


def _ends(vhost: VHost, exchange: Exchange) -> Iterator[Exchange]:
    for binding in exchange.bindings.values():
        if isinstance(binding.destination, Exchange):
            yield binding.destination
    if exchange.alternate in vhost.exchanges:
        yield vhost.exchanges[exchange.alternate]


def _bound(kind: str, name: str, exchange: str, key: str, arguments: Any) -> str:
    ends = {"queue": name, "exchange": exchange} if kind == "queue" else {"destination": name, "source": exchange}
    given = {**ends, "routing_key": key, **({"arguments": dict(arguments)} if arguments else {})}
    return f"channel.{kind}_bind({with_arguments(given)[2:]})"


def _options(**options: bool) -> dict[str, bool]:
    return {name: True for name, is_on in options.items() if is_on}
