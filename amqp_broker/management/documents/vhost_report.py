"""The report of a vhost after a failed test: messages, topology, clients, faults and clock.

The lives are those of the event log. The reports of pytest and of `amqp-broker run` show them (`run_report/`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp.fields import printable
from amqp_broker.management.documents.reported_lives import Lives
from amqp_broker.management.documents.values import shown, text_of

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.broker.vhost import VHost

# Exchanges, queues and connections of a report; bindings of a queue or an exchange, and their keys by source.
OBJECTS_MAX: Final = 100
BINDINGS_MAX: Final = 500
KEYS_MAX: Final = 20
# Consumers of a connection that are named.
CONSUMERS_MAX: Final = 20
# Objects that are looked at in one step.
STEP: Final = 200


def vhost_report(vhost: VHost, *, now_ms: int, moved_ms: int, is_frozen: bool) -> Steps[dict[str, Any]]:
    """Return the report of a vhost as JSON. Without an event log it has no lives.

    The clock shows `now_ms` (since the epoch), and was moved by `moved_ms`.
    """
    log = vhost.broker.event_logs.of(vhost)
    lives: list[dict[str, Any]] = []
    lives_skipped = 0
    if log is not None:
        lives, lives_skipped = yield from Lives(vhost, log).rows()
    shown_connections = sorted(islice(vhost.connections, OBJECTS_MAX), key=lambda one: one.name)
    connections = yield from described(vhost, shown_connections)
    queues = list(islice(vhost.queues.values(), OBJECTS_MAX))
    exchanges = list(islice(_exchanges(vhost, queues, lives), OBJECTS_MAX))
    faults: list[dict[str, Any]] = []
    for rule in list(vhost.broker.faults):
        if rule.vhost in (None, vhost.name) and len(faults) < OBJECTS_MAX:
            faults.append(shown(rule.as_dict()))
            yield
    bindings: list[dict[str, Any]] = []
    for exchange in exchanges:
        bindings += _binding_rows("exchange", exchange)
        yield
    for queue in queues:
        bindings += _binding_rows("queue", queue)
        yield
    return {
        "vhost": text_of(vhost.name),
        "has_log": log is not None,
        "events_skipped": 0 if log is None else log.skipped,
        "lives": lives,
        "lives_skipped": lives_skipped,
        "exchanges": sorted((_exchange_row(exchange) for exchange in exchanges), key=lambda row: row["name"]),
        "queues": [_queue_row(queue) for queue in queues],
        "bindings": bindings,
        "more_queues": len(vhost.queues) - len(queues),
        "connections": connections,
        "clock": {"now_ms": now_ms, "moved_ms": moved_ms, "is_frozen": is_frozen},
        "faults": faults,
    }


def _is_used(exchange: Exchange) -> bool:
    """Return whether clients have declared or bound an exchange, or published to it."""
    if exchange.publishes.publish or exchange.bindings or exchange.incoming:
        return True
    return not exchange.name.startswith("amq.") and exchange.name != ""


def _exchanges(vhost: VHost, queues: list[Queue], lives: list[dict[str, Any]]) -> dict[Exchange, None]:
    """Return the exchanges that are used, those of messages, and those that queues or exchanges name."""
    used = {exchange: None for exchange in islice(vhost.exchanges.values(), STEP) if _is_used(exchange)}
    names = [str(event["exchange"]) for life in lives for event in life["events"]]
    names += [queue.settings.dead_letter_exchange or "" for queue in queues]
    names += [exchange.alternate or "" for exchange in used]
    used.update((vhost.exchanges[name], None) for name in names if name and name in vhost.exchanges)
    return used


def _exchange_row(exchange: Exchange) -> dict[str, Any]:
    alternate = exchange.alternate
    return {
        "name": text_of(exchange.name),
        "type": exchange.type,
        "alternate_exchange": None if alternate is None else text_of(alternate),
    }


def _queue_row(queue: Queue) -> dict[str, Any]:
    settings = queue.settings
    key = settings.dead_letter_routing_key
    return {
        "name": text_of(queue.name),
        "type": queue.type,
        "ready": queue.ready_count,
        "unacked": queue.unacked_count,
        "consumers": len(queue.consumers),
        "arguments": shown(queue.arguments),
        "dead_letter_exchange": None
        if settings.dead_letter_exchange is None
        else text_of(settings.dead_letter_exchange),
        "dead_letter_routing_key": None if key is None else text_of(key),
    }


def _binding_rows(kind: str, end: Queue | Exchange) -> list[dict[str, Any]]:
    """Return the bindings that lead to a queue or an exchange, with their keys by source."""
    keys: dict[str, list[str]] = {}
    for binding in islice(end.incoming, BINDINGS_MAX):
        keys.setdefault(binding.source.name, []).append(binding.routing_key)
    return [
        {
            "source": text_of(source),
            "destination": text_of(end.name),
            "destination_kind": kind,
            "routing_keys": [text_of(key) for key in found[:KEYS_MAX]],
            "more_keys": max(0, len(found) - KEYS_MAX),
        }
        for source, found in keys.items()
    ]


def described(vhost: VHost, connections: Iterable[Connection]) -> Steps[list[str]]:
    """Describe open connections, in their order, with their consumers and unacknowledged messages."""
    consumed: dict[Connection, list[str]] = {one: [] for one in connections}
    looked_at = 0
    for queue in list(vhost.queues.values()):
        for consumer in list(queue.consumers):
            if consumer.connection in consumed:
                consumed[consumer.connection].append(f"consumer '{consumer.tag}' of {queue.name!r}")
            looked_at += 1
            if looked_at % STEP == 0:
                yield
        looked_at += 1
        if looked_at % STEP == 0:
            yield
    return [_description(connection, sorted(found)) for connection, found in consumed.items()]


def _description(connection: Connection, consumed: list[str]) -> str:
    properties = connection.client_properties
    given = connection.given_name
    name = f"'{printable(given)}' ({connection.name})" if given else connection.name
    product = properties.get("product")
    client = f" of {printable(product)}" if isinstance(product, str) else ""
    unacked = sum(len(channel.unacked.deliveries) for channel in connection.channels.values())
    channels, more = len(connection.channels), len(consumed) - CONSUMERS_MAX
    parts = [f"{channels} channel{'s' if channels > 1 else ''}"] if channels else []
    parts += [*consumed[:CONSUMERS_MAX], *([f"{more} more consumers"] if more > 0 else [])]
    parts += [f"{unacked} unacknowledged message{'s' if unacked > 1 else ''}"] if unacked else []
    return f"connection {name}{client} is open" + (f", with {', '.join(parts)}" if parts else "")
