"""The map of a vhost: exchanges and queues, and how many messages have taken each way between them.

A page asks again and again, and shows what has grown. The counts are those of the lists of queues and exchanges.
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.scheduling.portions import Steps
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
    looked_at = 0
    for queue in list(vhost.queues.values()):
        looked_at += 1 + len(queue.incoming)
        if looked_at >= STEP:
            looked_at = 0
            yield
        if not wanted or wanted in queue.name or any(wanted in one.source.name for one in queue.incoming):
            matching.append(queue)
    queues = [queue for queue in nlargest(QUEUES_MAX, matching, _messages_of_queue) if not queue.is_deleted]
    drawing = _Map(vhost)
    for queue in queues:
        yield from drawing.add_queue(queue)
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
# The way from an exchange towards a queue, and the exchange to which it leads, if any.
_Hop = tuple[_Ends, Exchange | None]


class _Map:
    """The ways to some queues of a vhost."""

    def __init__(self, vhost: VHost) -> None:
        self._vhost = vhost
        self._ways: dict[_Ends, _Way] = {}
        # The exchanges that lead to the queues, or get their dead letters.
        self._known: dict[Exchange, None] = {}
        # Exchanges whose own sources are known.
        self._walked: set[Exchange] = set()

    def add_queue(self, queue: Queue) -> Steps[None]:
        """Add a queue, and the exchanges that lead to it."""
        paths: dict[Exchange, _Hop] = {}
        for binding in list(queue.incoming):
            source = binding.source
            self._way(source, "queue", queue.name, binding.routing_key)
            paths[source] = ("exchange", source.name, "queue", queue.name, "binding"), None
        yield
        # The first path to an exchange is a shortest one.
        looked_at = 0
        for target in (waiting := list(paths)):
            is_new = target not in self._walked
            self._walked.add(target)
            for binding in list(target.incoming):
                source = binding.source
                if is_new:
                    self._way(source, "exchange", target.name, binding.routing_key)
                if source not in paths:
                    paths[source] = ("exchange", source.name, "exchange", target.name, "binding"), target
                    waiting.append(source)
            looked_at += 1 + len(target.incoming)
            if looked_at >= STEP:
                looked_at = 0
                yield
        yield from self._count(queue, paths)
        self._add_letters(queue)

    def _count(self, queue: Queue, paths: dict[Exchange, _Hop]) -> Steps[None]:
        """Add the messages of a queue to the ways on their paths.

        An exchange that is not bound any more has no path.
        """
        counts = dict(queue.statistics.published_from)
        for exchange, count in counts.items():
            if not exchange.name:
                self._way(exchange, "queue", queue.name, queue.name)
                self._ways["exchange", "", "queue", queue.name, "binding"].messages += count
        # Those far from the queue come first, and add theirs to the next ones.
        for number, (exchange, (ends, target)) in enumerate(reversed(paths.items())):
            # Between two steps a new binding may have led there.
            way = self._ways.get(ends)
            if way is not None and exchange.name and (count := counts.get(exchange, 0)):
                way.messages += count
                if target is not None:
                    counts[target] = counts.get(target, 0) + count
            if number % STEP == 0:
                yield

    def _way(self, source: Exchange, kind: str, name: str, key: str) -> None:
        self._known[source] = None
        self._ways.setdefault(("exchange", source.name, kind, name, "binding"), _Way()).keys[key] = None

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
