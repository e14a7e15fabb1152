"""Criteria for the events of a log, and a description of the closest events if none matches.

All given criteria must hold. Texts must be equal, but `routing_key` is a glob (broker/admin/globs.py), and the exchange
`amq.default` is the default one. JSON, headers and properties must contain the wanted values; lists must have the same
length. A regular expression is searched in the beginning of the body, for a limited time (broker/admin/patterns.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

import msgspec

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.message import PROPERTIES, Message
from amqp_broker.broker.admin import globs, patterns
from amqp_broker.broker.observe.closest_keys import hint
from amqp_broker.broker.observe.message_fate import kept_from_by_fault

if TYPE_CHECKING:
    from amqp_broker.broker.observe.event_log import Event, EventLog
    from amqp_broker.broker.vhost import VHost

EVENTS: Final = (
    *("publish", "tx_publish", "rollback", "route", "refuse", "confirm", "return", "deliver", "ack", "nack", "requeue"),
    *("delay", "move", "expire", "drop", "dead_letter", "fault"),
)
# Beginning of a body in which regular expressions are searched.
REGEX_BYTES_MAX: Final = 64 * 1024
# Newest events that are checked for near misses, and near misses that are reported.
MISSES_SCANNED_MAX: Final = 2000
MISSES_MAX: Final = 3
# Events that should not have been found, and are named.
FOUND_MAX: Final = 3
SHOWN_MAX: Final = 60

# Events that tell where a message went.
ROUTED: Final = ("publish", "route", "move", "dead_letter")

_PROPERTIES: Final = tuple(name for name, _, _ in PROPERTIES)

# No criterion; None is JSON's null.
UNSET: Final = object()


@dataclass(frozen=True, repr=False)
class Criteria:
    """Conditions on an event and its message; None matches anything."""

    event: str | None = "publish"
    exchange: str | None = None
    routing_key: str | None = None
    queue: str | None = None
    body: bytes | None = None
    body_json: Any = UNSET
    body_regex: str | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    # Only events after this sequence.
    since: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidParameter; see `check`."""
        self.check()

    def check(self) -> None:
        """Raise InvalidParameter for criteria that no event can meet, and for a slow regular expression."""
        if self.event not in (None, *EVENTS):
            raise InvalidParameter(
                f"event {self.event!r} is not one of {', '.join(EVENTS)}; for every event, give None in Python, and "
                "any over HTTP and on the command line"
            )
        for name in ("exchange", "routing_key", "queue"):
            if not isinstance(value := getattr(self, name), str | None):
                raise InvalidParameter(f"{name} is {value!r}, which is not a text")
        for name in ("headers", "properties"):
            if not isinstance(value := getattr(self, name), Mapping):
                raise InvalidParameter(f"{name} is {value!r}, which is not a mapping")
        if not isinstance(self.body, bytes | None):
            raise InvalidParameter(f"body is {self.body!r}, which is not bytes")
        if unknown := [name for name in self.properties if name not in _PROPERTIES]:
            raise InvalidParameter(f"property {unknown[0]!r} is not one of {', '.join(_PROPERTIES)}")
        if self.body_regex is not None:
            patterns.check(self.body_regex)
            if patterns.is_slow(self.body_regex):
                raise InvalidParameter(f"regular expression '{self.body_regex}' takes too long")

    def match(self, event: Event, message: Message | None) -> bool:
        """Return True if all criteria hold."""
        return next(self.differences(event, message), None) is None

    def differences(self, event: Event, message: Message | None) -> Iterator[str]:
        """Describe the criteria that do not hold, cheap ones first."""
        if event.sequence <= self.since:
            yield f"it is not after event {self.since}"
        if self.event not in (None, event.kind):
            yield f"event is {event.kind}, not {self.event}"
        if self.exchange is not None and globs.exchange_name(self.exchange) != event.exchange:
            yield f"exchange is {event.exchange!r}, not {self.exchange!r}"
        if self.routing_key is not None and not any(globs.matches(self.routing_key, key) for key in event.routing_keys):
            keys = ", ".join(map(repr, event.routing_keys))
            yield f"routing_key is {keys}, not {self.routing_key!r}"
        if self.queue is not None and self.queue != event.queue and self.queue not in event.queues:
            queues = ", ".join(map(repr, [event.queue] if event.queue is not None else event.queues))
            yield f"queue is {queues or 'none'}, not {self.queue!r}"
        if self.body is not None or self.body_json is not UNSET or self.body_regex is not None:
            yield from self._body_differences(message)
        if self.headers or self.properties:
            yield from self._property_differences(message)

    def _body_differences(self, message: Message | None) -> Iterator[str]:
        if message is None:
            yield "body is no longer in the log"
            return
        body = message.body
        if self.body is not None and body != self.body:
            yield f"body is {shown(body)}, not {shown(self.body)}"
        if self.body_json is not UNSET:
            try:
                value = msgspec.json.decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                yield f"body {shown(body)} is not JSON"
            else:
                if (difference := subset_difference(self.body_json, value)) is not None:
                    yield f"body{difference}"
        if self.body_regex is not None:
            text = body[:REGEX_BYTES_MAX].decode("utf-8", "surrogateescape")
            # A slow expression would be slow for each of thousands of bodies, so it matches none.
            if patterns.is_slow(self.body_regex) or not patterns.matches(self.body_regex, text):
                yield f"body is {shown(body)}, without {self.body_regex!r}"

    def _property_differences(self, message: Message | None) -> Iterator[str]:
        if message is None:
            yield "properties are no longer in the log"
            return
        properties = message.properties().as_dict()
        if self.headers:
            difference = subset_difference(dict(self.headers), properties.get("headers", {}))
            if difference is not None:
                yield f"headers{difference}"
        if self.properties and (difference := subset_difference(dict(self.properties), properties)) is not None:
            yield f"properties{difference}"

    def __repr__(self) -> str:
        """Return the criteria that differ from the defaults, as they were given."""
        given = ((one.name, getattr(self, one.name)) for one in fields(self))
        defaults = {"event": "publish", "body_json": UNSET, "headers": {}, "properties": {}, "since": 0}
        shown = [f"{name}={value!r}" for name, value in given if value != defaults.get(name)]
        return f"Criteria({', '.join(shown)})"

    def __str__(self) -> str:
        """Describe the criteria."""
        words = [f"event {self.event}" if self.event else "any event"]
        for name in ("exchange", "routing_key", "queue", "body", "body_regex"):
            value = getattr(self, name)
            if value is not None:
                words.append(f"{name} {shown(value) if isinstance(value, bytes) else repr(value)}")
        if self.body_json is not UNSET:
            words.append(f"body_json {msgspec.json.encode(self.body_json).decode()}")
        words += [f"{name} {dict(value)!r}" for name in ("headers", "properties") if (value := getattr(self, name))]
        if self.since:
            words.append(f"since {self.since}")
        return ", ".join(words)


def subset_difference(wanted: Any, value: Any) -> str | None:
    """Describe the first wanted part that a value lacks, with its path; None if it lacks nothing."""
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return f" is {_literal(value)}, not an object"
        for key, item in wanted.items():
            if key not in value:
                return f".{key} is missing"
            if (difference := subset_difference(item, value[key])) is not None:
                return f".{key}{difference}"
        return None
    if isinstance(wanted, list):
        if not isinstance(value, list) or len(value) != len(wanted):
            return f" is {_literal(value)}, not {_literal(wanted)}"
        differences = (
            f"[{at}]{difference}"
            for at, (item, other) in enumerate(zip(wanted, value, strict=True))
            if (difference := subset_difference(item, other)) is not None
        )
        return next(differences, None)
    # In JSON, true differs from 1.
    if isinstance(wanted, bool) is not isinstance(value, bool) or wanted != value:
        return f" is {_literal(value)}, not {_literal(wanted)}"
    return None


def _literal(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return "a value that is nested too deeply to be shown"


def shown(octets: bytes) -> str:
    """Return the beginning of a body for messages."""
    return repr(octets[:SHOWN_MAX]).removeprefix("b") + ("…" if len(octets) > SHOWN_MAX else "")


def near_misses(log: EventLog, criteria: Criteria) -> list[tuple[Event, list[str]]]:
    """Return the closest events with their differences: fewest differences first, then newest first."""
    newest: Iterable[Event] = (event for event, _ in zip(reversed(log.events), range(MISSES_SCANNED_MAX), strict=False))
    misses = [(event, list(criteria.differences(event, log.message_of(event)))) for event in newest]
    return sorted((miss for miss in misses if miss[1]), key=lambda miss: len(miss[1]))[:MISSES_MAX]


def described(event: Event, vhost: VHost) -> str:
    """Describe an event of a vhost in a few words. Its sequence is no message number, which reports write as #1."""
    number = f" of message {event.number}" if event.number else ""
    place = f" in queue {event.queue!r}" if event.queue is not None else ""
    delayed = f", delayed in {', '.join(event.more['delayed_in'])}" if event.more.get("delayed_in") else ""
    if event.more.get("duplicate_in"):
        delayed += f", a duplicate in {', '.join(event.more['duplicate_in'])}"
    routed = ""
    if event.kind in ROUTED and (event.queues or not delayed):
        routed = f", routed to {', '.join(event.queues) or _no_queue(event, vhost)}"
    ways = routed + delayed
    keys = ", ".join(map(repr, event.routing_keys))
    address = f"(exchange {event.exchange!r}, routing key {keys}{ways})"
    return f"event {event.sequence}: {event.kind}{number}{place} {address}"


def _no_queue(event: Event, vhost: VHost) -> str:
    if kept_from := kept_from_by_fault(event.more):
        return f"no queue; fault {event.more['discarded_by']} kept it from {kept_from}"
    # Present bindings say nothing about those of the publish.
    is_as_then = event.topology_version == vhost.topology_version
    found = is_as_then and hint(vhost, event.exchange, event.routing_keys[0] if event.routing_keys else "")
    return f"no queue; {found}" if found else "no queue"


def failure(log: EventLog, criteria: Criteria, wanted: str) -> str:
    """Describe a failed expectation: the wanted and found numbers, the criteria, and the closest events.

    If none is wanted, the events that were found stand instead of the closest ones.
    """
    count = log.count(criteria)
    lines = [
        f"{wanted} wanted, {count} found: {criteria}",
        f"in vhost {log.vhost.name!r}, of {len(log.events)} events in the log"
        + (f" (and {log.skipped} skipped)" if log.skipped else ""),
    ]
    if log.beginning:
        lines.append(log.beginning)
    if wanted == "none":
        shown_events = log.matching(criteria, FOUND_MAX)
        more = [f"  and {count - len(shown_events)} more"] if count > len(shown_events) else []
        return "\n".join([*lines, "found:", *(f"  {described(event, log.vhost)}" for event in shown_events), *more])
    misses = near_misses(log, criteria)
    if misses:
        lines.append("closest:")
    for event, differences in misses:
        lines.append(f"  {described(event, log.vhost)}")
        lines += [f"      {difference}" for difference in differences]
    return "\n".join(lines)
