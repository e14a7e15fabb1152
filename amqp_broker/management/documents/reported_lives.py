"""The lives of messages in the report of a vhost: what happened to each, and where it is now."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.broker.observe.closest_keys import hint
from amqp_broker.broker.observe.message_fate import ELSEWHERE, Stay, fate, follow
from amqp_broker.broker.queues.reply import REPLY_PREFIX
from amqp_broker.management.documents.logged_events import event_row
from amqp_broker.management.documents.values import text_of

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.observe.event_log import Event, EventLog
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.broker.vhost import VHost

# Lives in a report, events of each, and octets of a body.
LIVES_MAX: Final = 100
EVENTS_MAX: Final = 1000
BODY_BYTES_MAX: Final = 1000
# Places of a life that have a mark, and those of which the report says why the message is there, or is not.
ENDS_MAX: Final = 20
PLACES_MAX: Final = 5
# Different routing keys without a queue for which a report looks for close ones.
HINTS_MAX: Final = 20
# Bindings of a queue, and of an exchange, that are looked at.
BINDINGS_MAX: Final = 200
KEYS_MAX: Final = 1000
# Events, and lives, that are looked at in one step.
STEP: Final = 200
LIVES_AT_ONCE: Final = 20
# Exchanges that compare routing keys.
BY_KEY: Final = ("direct", "topic")
# Events of a message that had difficulties.
DIFFICULT: Final = frozenset(
    {"rollback", "return", "nack", "requeue", "refuse", "expire", "drop", "dead_letter", "fault"}
)


class End(NamedTuple):
    """A place of a message: its queue (None for no queue), a state, words, and the consumers that hold it.

    States are ready, delayed and unacked; acked, lost and gone for a message that is no longer there.
    """

    queue: str | None
    state: str
    words: str
    holders: list[tuple[str, int, str]]

    def row(self) -> dict[str, Any]:
        return {
            "queue": None if self.queue is None else text_of(self.queue),
            "state": self.state,
            "words": text_of(self.words),
            "holders": [[text_of(connection), int(channel), text_of(tag)] for connection, channel, tag in self.holders],
        }


class Lives:
    """The lives of the messages in an event log."""

    def __init__(self, vhost: VHost, log: EventLog) -> None:
        self._vhost = vhost
        self._log = log
        self._hints: dict[tuple[str, str], str] = {}

    def rows(self) -> Steps[tuple[list[dict[str, Any]], int]]:
        """Return the rows of at most LIVES_MAX lives, and how many others there are.

        Lives with difficulties come before messages that are still there, and these before acknowledged ones; the
        newest of each. The rows are in the order of time.
        """
        lives = yield from self._collected()
        ranked: list[tuple[int, int]] = []
        ends: list[list[End]] = []
        for number, life in enumerate(lives):
            if number % LIVES_AT_ONCE == 0:
                yield
            ends.append(self._ends(life))
            ranked.append((_rank(life, ends[-1]), number))
        rows: list[dict[str, Any]] = []
        for number in sorted(number for _, number in sorted(ranked)[-LIVES_MAX:]):
            rows.append(self._row(lives[number], ends[number]))
            yield
        return rows, len(lives) - len(rows)

    def _collected(self) -> Steps[list[list[Event]]]:
        """Return the events of each message with those of its dead letters, by the first event."""
        roots: dict[int, int] = {}
        lives: dict[int, list[Event]] = {}
        for count, event in enumerate(list(self._log.events)):
            if count % STEP == 0:
                yield
            number = event.number
            # Faults of connections, and messages that are older than the log, have no number.
            if not number:
                continue
            if number not in roots:
                former = event.more.get("from_message_number", 0) if event.kind == "dead_letter" else 0
                roots[number] = roots.get(former, number)
            lives.setdefault(roots[number], []).append(event)
        return list(lives.values())

    def _is_whole(self, life: list[Event]) -> bool:
        """Return whether the log has the beginning of a life."""
        return self._log.is_first(life[0]) and self._log.has(life[0].number)

    # Where a message is

    def _ends(self, life: list[Event]) -> list[End]:
        if not self._is_whole(life):
            return [End(None, "gone", "its publish is no longer in the log", [])]
        stays: dict[tuple[int, str], Stay] = {}
        # The end of the message in each queue, and the exchanges that delay it.
        lasts: dict[tuple[int, str], tuple[str, str]] = {}
        waiting: dict[tuple[int, str], None] = {}
        for event in life:
            follow(stays, event)
            _note(lasts, event)
            waiting.update(dict.fromkeys((event.number, name) for name in event.more.get("delayed_in", ())))
            if event.kind == "route" or (event.kind == "drop" and event.queue is None):
                waiting.pop((event.number, event.exchange), None)
        ends = [End(None, "delayed", f"delayed in exchange {name}", []) for _, name in waiting]
        for (number, queue), stay in stays.items():
            ends += _ends_of(stay, queue, lasts.get((number, queue)))
        return ends or [self._without_queue(life)]

    def _without_queue(self, life: list[Event]) -> End:
        """Return the end of a message that no queue got."""
        kinds = {event.kind for event in life}
        if life[0].is_cut_off:
            return End(None, "lost", f"not taken: fault {life[0].more['action']}", [])
        if "rollback" in kinds:
            return End(None, "lost", "not committed", [])
        if "publish" not in kinds and "tx_publish" in kinds:
            return End(None, "unacked", "in an open transaction", [])
        if any(key.startswith(REPLY_PREFIX) for key in life[0].routing_keys):
            return End(None, "gone", "sent as a direct reply", [])
        if any(event.queues or event.more.get("delayed_in") for event in life):
            return End(None, "gone", "gone", [])
        if any(event.more.get("duplicate_in") for event in life):
            return End(None, "gone", "dropped as a duplicate", [])
        faults = [str(event.more["action"]) for event in life if _loses(event)]
        return End(None, "lost", f"in no queue: fault {faults[0]}" if faults else "in no queue", [])

    # Rows

    def _row(self, life: list[Event], ends: list[End]) -> dict[str, Any]:
        first = life[0]
        message = self._log.message_of(first)
        here = [end for end in ends if end.state in ("ready", "unacked", "delayed")]
        queues = dict.fromkeys(end.queue for end in (*here, *ends) if end.queue is not None)
        queues.update(
            dict.fromkeys(name for event in life for name in (event.queue, *event.queues) if name is not None)
        )
        row: dict[str, Any] = {
            "number": int(first.number),
            "exchange": text_of(first.exchange),
            "routing_keys": [text_of(key) for key in first.routing_keys],
            "events": [self._event_row(event) for event in life[:EVENTS_MAX]],
            "events_skipped": max(0, len(life) - EVENTS_MAX),
            "ends": [end.row() for end in ends[:ENDS_MAX]],
            "more_ends": max(0, len(ends) - ENDS_MAX),
            "places": self._places(life, list(islice(queues, PLACES_MAX))),
            "more_places": max(0, len(queues) - PLACES_MAX),
            "hint": text_of(self._hint(life, ends)),
        }
        if message is not None:
            with_body = event_row(first, message, BODY_BYTES_MAX)
            row |= {name: with_body[name] for name in ("properties", "payload", "payload_bytes", "payload_encoding")}
        return row

    def _event_row(self, event: Event) -> dict[str, Any]:
        row = event_row(event, truncate=0)
        if event.exchange and event.kind in ("publish", "route", "dead_letter"):
            row["indirect"] = [text_of(name) for name in event.queues if not self._is_bound(name, event.exchange)]
        return row

    def _is_bound(self, queue: str, exchange: str) -> bool:
        found = self._vhost.queues.get(queue)
        return found is None or any(binding.source.name == exchange for binding in islice(found.incoming, BINDINGS_MAX))

    def _places(self, life: list[Event], queues: list[str]) -> list[dict[str, Any]]:
        """Return why the message is in some queues, or is not."""
        if not self._is_whole(life):
            return []
        rows = []
        for name in queues:
            queue = self._vhost.queues.get(name)
            found = fate(life, name, [] if queue is None else keys_of(queue, life[0].exchange))
            # A queue that is deleted is bound to nothing.
            sentences = found.sentences[:-1] if queue is None and found.state == ELSEWHERE else found.sentences
            rows.append({"queue": text_of(name), "sentences": [text_of(sentence) for sentence in sentences]})
        return rows

    def _hint(self, life: list[Event], ends: list[End]) -> str:
        """Return a hint for a lost message: the keys of today's bindings that are closest to its own."""
        first = life[-1] if life[-1].kind == "dead_letter" else life[0]
        is_lost = ends[0].words == "in no queue" or (first.kind == "dead_letter" and not first.queues)
        if not is_lost or not first.routing_keys:
            return ""
        place = first.exchange, first.routing_keys[0]
        if place not in self._hints and len(self._hints) < HINTS_MAX:
            self._hints[place] = self._found_hint(*place)
        return self._hints.get(place, "")

    def _found_hint(self, exchange: str, key: str) -> str:
        source = self._vhost.exchanges.get(exchange)
        is_by_key = not exchange or (source is not None and source.type in BY_KEY)
        reason = f"no queue was bound with the key '{key}'" if is_by_key else f"no binding of '{exchange}' matched"
        if is_by_key and self._is_key(source, key):
            return f"{reason} then, but one is now"
        found = hint(self._vhost, exchange, key)
        return f"{reason}: {found}" if found else reason

    def _is_key(self, source: Exchange | None, key: str) -> bool:
        """Return whether a binding has exactly this key now; None is a missing exchange."""
        if source is None or not source.name:
            return source is not None and key in self._vhost.queues
        return any(binding.routing_key == key for binding in islice(source.bindings.values(), KEYS_MAX))


def keys_of(queue: Queue, exchange: str) -> list[str]:
    """Return the routing keys that bind a queue to an exchange, by the first bindings of the queue."""
    if not exchange:
        # Each queue is bound to the default exchange with its name.
        return [queue.name]
    found = islice(queue.incoming, BINDINGS_MAX)
    return [binding.routing_key for binding in found if binding.source.name == exchange]


def _note(lasts: dict[tuple[int, str], tuple[str, str]], event: Event) -> None:
    """Note what an event means for the end of a message in a queue: a state and words."""
    kind, more = event.kind, event.more
    if kind == "dead_letter":
        # Its dead letter has ends of its own, unless it came to no queue.
        place = more["from_message_number"], event.queue or ""
        lasts[place] = (
            ("letter", "") if event.queues or more.get("delayed_in") else ("lost", "dead letter to no queue from")
        )
    elif event.queue is None or kind == "fault" or more.get("is_stream"):
        return
    elif kind == "deliver" and more["no_ack"]:
        lasts[event.number, event.queue] = "acked", "taken without ack from"
    elif kind == "ack":
        lasts[event.number, event.queue] = "acked", "acknowledged in"
    elif kind == "nack" and not more["requeue"]:
        lasts[event.number, event.queue] = "lost", "rejected in"
    elif kind in _LAST:
        lasts[event.number, event.queue] = _LAST[kind]


_LAST: Final = {
    "expire": ("lost", "expired in"),
    "drop": ("lost", "dropped by"),
    "refuse": ("lost", "refused by"),
    "move": ("letter", ""),
}


def _ends_of(stay: Stay, queue: str, last: tuple[str, str] | None) -> list[End]:
    """Return the ends of a message in a queue."""
    if stay.is_here:
        states = ("ready", stay.ready), ("unacked", stay.unacked), ("delayed", stay.delayed)
        return [
            End(queue, state, f"{state} in {queue}", stay.holders if state == "unacked" else [])
            for state, count in states
            if count > 0
        ]
    state, words = last or ("gone", "gone from")
    return [] if state == "letter" else [End(queue, state, f"{words} {queue}", [])]


def _loses(event: Event) -> bool:
    """Return whether an event is a fault by which a publish comes to no queue."""
    action = event.more.get("action") if event.kind == "fault" else None
    return action in ("confirm_nack", "return", "drop_dead_letter")


def _rank(life: list[Event], ends: list[End]) -> int:
    """Return 2 for a life with difficulties, 1 for a message that is still there, 0 for others."""
    if any(end.state == "lost" for end in ends) or any(
        event.kind in DIFFICULT or event.more.get("ack") is False for event in islice(life, EVENTS_MAX)
    ):
        return 2
    return int(any(end.state in ("ready", "unacked", "delayed") for end in ends))
