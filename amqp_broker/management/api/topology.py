"""The map of a vhost: exchanges and queues, and how many messages have taken each way between them.

A page asks again and again, and shows what has grown. The counts are those of the lists of queues and exchanges. Queues
that are busy, full or bound come first; beyond a number, queues that the same exchanges lead to are folded into one.
"""

from __future__ import annotations

from collections import Counter
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

# Objects of an answer. A way has its first keys.
QUEUES_MAX: Final = 60
EXCHANGES_MAX: Final = 60
FOLDS_MAX: Final = 20
SOURCES_MAX: Final = 20
# The name of the fold of all queues that are in no other.
REST: Final = "rest"
WAYS_MAX: Final = 500
KEYS_MAX: Final = 3
# A queue is busy if its counts have changed in this time. The map of a broker at work should not change at each look.
BUSY_MS: Final = 600_000
# Objects that are looked at in one step.
STEP: Final = 200

endpoints = Endpoints()


class MapQuery(Struct):
    """A part of the names of queues, or of the exchanges that they are bound to."""

    name: str = ""


@endpoints.on("GET /_broker/topology/{vhost}", tag=MANAGEMENT, query=MapQuery)
def topology(request: Request) -> Steps[dict[str, Any]]:
    """Return the [map](web-page.md) of a vhost: its exchanges, busy queues, and folds of others, with counts by way."""
    wanted = request.read_query(MapQuery).name
    vhost = request.vhost
    now = request.broker.real_now()
    # Ranks, and numbers, so that queues are not compared.
    matching: list[tuple[_Rank, int, Queue]] = []
    looked_at = 0
    for queue in list(vhost.queues.values()):
        looked_at += 1 + len(queue.incoming)
        if looked_at >= STEP:
            looked_at = 0
            yield
        if not wanted or wanted in queue.name or any(wanted in one.source.name for one in queue.incoming):
            matching.append((_rank(queue, now), -len(matching), queue))
    queues = [queue for _, _, queue in nlargest(QUEUES_MAX, matching)]
    folds, fold_of = yield from _folding([queue for _, _, queue in matching], set(queues))
    drawing = _Map(vhost, {queue.name for queue in queues}, fold_of)
    for queue in queues:
        ends = [(binding.source, binding.routing_key) for binding in queue.incoming]
        yield from drawing.add(("queue", queue.name), ends, queue.statistics.published_from)
        drawing.add_letters(("queue", queue.name), queue)
    for fold in folds:
        yield from drawing.add(("fold", fold.name), list(fold.bindings), fold.published_from)
        for queue in fold.dead_lettering:
            drawing.add_letters(("fold", fold.name), queue)
            yield
    exchanges = yield from drawing.exchanges(wanted)
    queues = [queue for queue in queues if not queue.is_deleted]
    drawn = {
        "exchange": {exchange.name for exchange in exchanges},
        "queue": {queue.name for queue in queues},
        "fold": {fold.name for fold in folds},
    }
    ways = yield from drawing.ways(drawn)
    return {
        "exchanges": [_exchange_row(exchange) for exchange in exchanges],
        "queues": [_queue_row(queue, now) for queue in queues],
        "folds": [fold.row() for fold in folds],
        "ways": ways,
        "totals": {"exchanges": len(vhost.exchanges), "queues": len(vhost.queues), "matching_queues": len(matching)},
    }


# The level of a queue that is busy, full, bound or neither, and its messages.
_Rank = tuple[int, int]


class _Fold:
    """Queues that the same exchanges lead to, drawn as one. Without `sources` it is the rest, to which no way is known.

    `row` has `members`, which differs if other queues are in it: only while it stays, its counts can be compared.
    """

    def __init__(self, sources: tuple[str, ...] | None) -> None:
        self._sources = sources
        self._members = 0
        self.name = REST if sources is None else f"{hash(sources) & 0xFFFF_FFFF_FFFF_FFFF:x}"
        self.bindings: dict[tuple[Exchange, str], None] = {}
        self.published_from: Counter[Exchange] = Counter()
        self.dead_lettering: list[Queue] = []
        self._counts = Counter[str](queues=0, ready=0, unacked=0, consumers=0, delivered=0)

    def add(self, queue: Queue) -> None:
        self._members ^= hash(queue.name)
        self._counts["queues"] += 1
        self._counts.update(_counts_of(queue))
        if self._sources is None:
            return
        for binding in queue.incoming:
            self.bindings[binding.source, binding.routing_key] = None
        self.published_from.update(queue.statistics.published_from)
        if queue.settings.dead_letter_exchange is not None:
            self.dead_lettering.append(queue)

    def row(self) -> dict[str, Any]:
        sources = self._sources
        return {
            "name": self.name,
            "sources": None if sources is None else [text_of(name) for name in sources[:SOURCES_MAX]],
            "members": f"{self._members & 0xFFFF_FFFF_FFFF_FFFF:x}",
            **self._counts,
        }


def _folding(queues: list[Queue], drawn: set[Queue]) -> Steps[tuple[list[_Fold], dict[str, str]]]:
    """Return folds of the queues that are not drawn, the largest first, and the fold of each by names."""
    groups: dict[tuple[str, ...], list[Queue]] = {}
    looked_at = 0
    for queue in queues:
        looked_at += 1 + len(queue.incoming)
        if queue not in drawn and not queue.is_deleted:
            sources = tuple(sorted({binding.source.name for binding in queue.incoming}))
            groups.setdefault(sources, []).append(queue)
        if looked_at >= STEP:
            looked_at = 0
            yield
    sizes: list[tuple[int, int, tuple[str, ...]]] = []
    for number, (sources, group) in enumerate(groups.items()):
        sizes.append((len(group), -number, sources))
        if number % STEP == 0:
            yield
    is_all = len(groups) <= FOLDS_MAX
    folds = {sources: _Fold(sources) for _, _, sources in nlargest(FOLDS_MAX if is_all else FOLDS_MAX - 1, sizes)}
    rest, fold_of = _Fold(None), dict[str, str]()
    for sources, group in groups.items():
        fold = folds.get(sources, rest)
        for queue in group:
            fold.add(queue)
            fold_of[queue.name] = fold.name
            looked_at += 10 + len(queue.incoming)
            if looked_at >= STEP:
                looked_at = 0
                yield
    return [*folds.values()] if is_all else [*folds.values(), rest], fold_of


class _Way:
    """A way from an exchange or a queue to another: its routing keys, and how many messages have taken it."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}
        self.messages = 0


# Kind and name of an end of a way: an exchange, a queue or a fold.
_End = tuple[str, str]
# Both ends, and "binding" or "dead letters".
_Ends = tuple[str, str, str, str, str]
# The way from an exchange towards a queue, and the exchange to which it leads, if any.
_Hop = tuple[_Ends, Exchange | None]


class _Map:
    """The ways to some queues and folds of a vhost."""

    def __init__(self, vhost: VHost, drawn: set[str], fold_of: dict[str, str]) -> None:
        """Begin a map, given the names of the queues that are drawn, and the folds of the others by name."""
        self._vhost = vhost
        self._drawn = drawn
        self._fold_of = fold_of
        self._ways: dict[_Ends, _Way] = {}
        # The exchanges that lead to the queues, or get their dead letters.
        self._known: dict[Exchange, None] = {}
        # Exchanges whose own sources are known.
        self._walked: set[Exchange] = set()

    def add(self, end: _End, bindings: list[tuple[Exchange, str]], published: dict[Exchange, int]) -> Steps[None]:
        """Add a queue or a fold, given its bindings and publishes, and the exchanges that lead there."""
        paths: dict[Exchange, _Hop] = {}
        for number, (source, key) in enumerate(bindings):
            self._way(source, end, key)
            paths[source] = ("exchange", source.name, *end, "binding"), None
            if number % STEP == 0:
                yield
        # The first path to an exchange is a shortest one.
        looked_at = 0
        for target in (waiting := list(paths)):
            is_new = target not in self._walked
            self._walked.add(target)
            for binding in list(target.incoming):
                source = binding.source
                if is_new:
                    self._way(source, ("exchange", target.name), binding.routing_key)
                if source not in paths:
                    paths[source] = ("exchange", source.name, "exchange", target.name, "binding"), target
                    waiting.append(source)
            looked_at += 1 + len(target.incoming)
            if looked_at >= STEP:
                looked_at = 0
                yield
        yield from self._count(end, dict(published), paths)

    def _count(self, end: _End, counts: dict[Exchange, int], paths: dict[Exchange, _Hop]) -> Steps[None]:
        """Add messages to the ways on their paths. An exchange that is not bound any more has no path."""
        kind, name = end
        for exchange, count in counts.items():
            if not exchange.name:
                self._way(exchange, end, name if kind == "queue" else None)
                self._ways["exchange", "", *end, "binding"].messages += count
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

    def _way(self, source: Exchange, end: _End, key: str | None) -> None:
        self._known[source] = None
        way = self._ways.setdefault(("exchange", source.name, *end, "binding"), _Way())
        if key is not None:
            way.keys[key] = None

    def add_letters(self, start: _End, queue: Queue) -> None:
        """Add the dead letters of a queue, which is drawn alone or in a fold."""
        name, key = queue.settings.dead_letter_exchange, queue.settings.dead_letter_routing_key
        target = self._vhost.exchanges.get(name) if name is not None else None
        if target is None:
            return
        if target.name:
            self._known[target] = None
            end = ("exchange", target.name)
        else:
            letters = queue.name if key is None else key
            if letters not in self._drawn and letters not in self._fold_of:
                return
            end = ("queue", letters) if letters in self._drawn else ("fold", self._fold_of[letters])
        way = self._ways.setdefault((*start, *end, "dead letters"), _Way())
        way.keys["" if key is None else key] = None
        given_up = queue.statistics.given_up
        way.messages += sum(given_up.values()) - given_up["purged"]

    def exchanges(self, wanted: str) -> Steps[list[Exchange]]:
        """Return the exchanges of the queues, and others.

        Others have the text in their names, or are in use if none is wanted.
        """
        others: list[Exchange] = []
        for number, exchange in enumerate(list(self._vhost.exchanges.values())):
            is_other = wanted in exchange.name if wanted else _is_used(exchange)
            if is_other and exchange not in self._known:
                others.append(exchange)
            if number % STEP == 0:
                yield
        known = nlargest(EXCHANGES_MAX, self._known, _messages_of_exchange)
        yield
        return known + nlargest(EXCHANGES_MAX - len(known), others, _messages_of_exchange)

    def ways(self, drawn: dict[str, set[str]]) -> Steps[list[dict[str, Any]]]:
        """Return the ways between objects, whose names are given by kind."""
        rows: list[dict[str, Any]] = []
        for number, ((source_kind, source, kind, destination, reason), way) in enumerate(self._ways.items()):
            if number % STEP == 0:
                yield
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


def _rank(queue: Queue, now: int) -> _Rank:
    """Return the rank of a queue: 3 if it is busy, 2 if full, 1 if bound or consumed; then its messages."""
    statistics = queue.statistics
    messages, history = statistics.published + statistics.deliveries.deliver_get, statistics.history
    if messages and (queue.is_changed or (history is not None and now - history.newest_ms < BUSY_MS)):
        level = 3
    elif queue.message_count:
        level = 2
    else:
        level = 1 if queue.incoming or queue.consumers else 0
    return level, messages + queue.ready_count


def _messages_of_exchange(exchange: Exchange) -> int:
    return exchange.publishes.publish


def _exchange_row(exchange: Exchange) -> dict[str, Any]:
    return {"name": text_of(exchange.name), "type": exchange.type, "messages": exchange.publishes.publish}


def _queue_row(queue: Queue, now: int) -> dict[str, Any]:
    level, _ = _rank(queue, now)
    return {"name": text_of(queue.name), "type": queue.type, "level": level, **_counts_of(queue)}


def _counts_of(queue: Queue) -> dict[str, int]:
    return {
        "ready": queue.ready_count,
        "unacked": queue.unacked_count,
        "consumers": len(queue.consumers),
        "delivered": queue.statistics.deliveries.deliver_get,
    }
