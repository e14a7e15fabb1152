"""The map of a vhost: exchanges and queues, and how many messages have taken each way between them.

A page asks again and again, and shows what has grown. The counts are those of the lists of queues and exchanges.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.portions import Steps
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost

# Objects of an answer: those with the most messages. A way has its first keys.
QUEUES_MAX: Final = 60
EXCHANGES_MAX: Final = 60
WAYS_MAX: Final = 500
KEYS_MAX: Final = 3
# Objects that are looked at in one step.
STEP: Final = 200

endpoints = Endpoints()


class MapQuery(Struct):
    """A part of the names of queues, or of the exchanges that they are bound to."""

    name: str = ""


@endpoints.on("GET /_broker/topology/{vhost}", tag=MANAGEMENT, query=MapQuery)
def topology(request: Request) -> Steps[dict[str, Any]]:
    """Return the [map](web-page.md) of a vhost: the busiest exchanges and queues, with counts of messages by way."""
    wanted = request.read_query(MapQuery).name
    vhost = request.vhost
    matching: list[Queue] = []
    for count, queue in enumerate(list(vhost.queues.values()), 1):
        if count % STEP == 0:
            yield
        if not wanted or wanted in queue.name or any(wanted in one.source.name for one in queue.incoming):
            matching.append(queue)
    queues = [queue for queue in nlargest(QUEUES_MAX, matching, _messages_of_queue) if not queue.is_deleted]
    drawing = _Map(vhost)
    for queue in queues:
        drawing.add_queue(queue)
        yield
    exchanges = drawing.exchanges(wanted)
    return {
        "exchanges": [_exchange_row(exchange) for exchange in exchanges],
        "queues": [_queue_row(queue) for queue in queues],
        "ways": drawing.ways({exchange.name for exchange in exchanges}, {queue.name for queue in queues}),
        "totals": {"exchanges": len(vhost.exchanges), "queues": len(vhost.queues), "matching_queues": len(matching)},
    }


class _Way:
    """A way from an exchange or a queue to another: its routing keys, and how many messages have taken it."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}
        self.messages = 0


# Kind and name of both ends, and "binding" or "dead letters".
_Ends = tuple[str, str, str, str, str]


class _Map:
    """The ways to some queues of a vhost."""

    def __init__(self, vhost: VHost) -> None:
        self._vhost = vhost
        self._ways: dict[_Ends, _Way] = {}
        # The exchanges that lead to the queues, or get their dead letters.
        self._known: dict[Exchange, None] = {}

    def add_queue(self, queue: Queue) -> None:
        """Add a queue, and the exchanges that lead to it."""
        for binding in queue.incoming:
            self._way(binding.source, "queue", queue.name, binding.routing_key)
        for source in dict.fromkeys(binding.source for binding in queue.incoming):
            self._add_sources(source)
        for exchange, count in queue.statistics.published_from.items():
            if not exchange.name:
                self._way(exchange, "queue", queue.name, queue.name)
            for ends in self._path(exchange, queue):
                self._ways[ends].messages += count
        self._add_letters(queue)

    def _way(self, source: Exchange, kind: str, name: str, key: str) -> None:
        self._known[source] = None
        self._ways.setdefault(("exchange", source.name, kind, name, "binding"), _Way()).keys[key] = None

    def _add_sources(self, exchange: Exchange) -> None:
        """Add the exchanges that are bound to an exchange, and so on."""
        waiting, seen = [exchange], {exchange}
        while waiting:
            target = waiting.pop()
            for binding in target.incoming:
                self._way(binding.source, "exchange", target.name, binding.routing_key)
                if binding.source not in seen:
                    seen.add(binding.source)
                    waiting.append(binding.source)

    def _path(self, exchange: Exchange, queue: Queue) -> Iterable[_Ends]:
        """Return the ways on the shortest path from an exchange to a queue; none if it is not bound any more."""
        ends: _Ends = ("exchange", exchange.name, "queue", queue.name, "binding")
        if ends in self._ways:
            return [ends]
        paths: dict[Exchange, list[_Ends]] = {}
        for binding in queue.incoming:
            paths[binding.source] = [("exchange", binding.source.name, "queue", queue.name, "binding")]
        for target in (waiting := list(paths)):
            for source in [binding.source for binding in target.incoming if binding.source not in paths]:
                paths[source] = [("exchange", source.name, "exchange", target.name, "binding"), *paths[target]]
                waiting.append(source)
        return paths.get(exchange, [])

    def _add_letters(self, queue: Queue) -> None:
        name, key = queue.settings.dead_letter_exchange, queue.settings.dead_letter_routing_key
        target = self._vhost.exchanges.get(name) if name is not None else None
        if target is None:
            return
        if target.name:
            self._known[target] = None
            end = ("exchange", target.name)
        else:
            end = ("queue", queue.name if key is None else key)
        way = self._ways.setdefault(("queue", queue.name, *end, "dead letters"), _Way())
        way.keys["" if key is None else key] = None
        given_up = queue.statistics.given_up
        way.messages += sum(given_up.values()) - given_up["purged"]

    def exchanges(self, wanted: str) -> list[Exchange]:
        """Return the exchanges of the queues, and others.

        Others have the text in their names, or are in use if none is wanted.
        """
        others = [
            exchange
            for exchange in self._vhost.exchanges.values()
            if exchange not in self._known and (wanted in exchange.name if wanted else _is_used(exchange))
        ]
        known = nlargest(EXCHANGES_MAX, self._known, _messages_of_exchange)
        return known + nlargest(EXCHANGES_MAX - len(known), others, _messages_of_exchange)

    def ways(self, exchanges: set[str], queues: set[str]) -> list[dict[str, Any]]:
        """Return the ways between these objects."""
        drawn = {"exchange": exchanges, "queue": queues}
        rows: list[dict[str, Any]] = []
        for (source_kind, source, kind, destination, reason), way in self._ways.items():
            if source in drawn[source_kind] and destination in drawn[kind] and len(rows) < WAYS_MAX:
                keys = list(way.keys)
                rows.append(
                    {
                        "source": text_of(source),
                        "source_kind": source_kind,
                        "destination": text_of(destination),
                        "destination_kind": kind,
                        "reason": reason,
                        "keys": [text_of(key) for key in keys[:KEYS_MAX]],
                        "more_keys": max(0, len(keys) - KEYS_MAX),
                        "messages": way.messages,
                    }
                )
        return rows


def _is_used(exchange: Exchange) -> bool:
    """Return whether clients have declared an exchange, or published to it."""
    return exchange.publishes.publish > 0 or not (exchange.name.startswith("amq.") or not exchange.name)


def _messages_of_queue(queue: Queue) -> int:
    deliveries = queue.statistics.deliveries
    return queue.statistics.published + deliveries.deliver_get + len(queue.consumers) + queue.ready_count


def _messages_of_exchange(exchange: Exchange) -> int:
    return exchange.publishes.publish


def _exchange_row(exchange: Exchange) -> dict[str, Any]:
    return {"name": text_of(exchange.name), "type": exchange.type, "messages": exchange.publishes.publish}


def _queue_row(queue: Queue) -> dict[str, Any]:
    return {
        "name": text_of(queue.name),
        "type": queue.type,
        "ready": queue.ready_count,
        "unacked": queue.unacked_count,
        "consumers": len(queue.consumers),
        "delivered": queue.statistics.deliveries.deliver_get,
    }
