"""The fault rules of a test that have hit nothing, and what came closest.

    fault 1 (confirm_nack on publish, routing_key='order.payed') hit nothing: 3 publishes had routing_key 'order.paid'

It reads the last events of the failure report (failure_report.py) and the open connections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.admin import globs
from amqp_broker.broker.lab.fault_rules import (
    ACK,
    CONFIRM,
    DEAD_LETTER,
    DELIVER,
    METHOD,
    OF_METHOD,
    PUBLISH,
    Rule,
    can_hit,
    fits,
)

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.lab.method_faults import SentMethod
    from amqp_broker.testing.failure_report import ReportedEvent

# The events of each moment, and the words for one and several of them. The other moments concern connections.
MOMENTS: Final = {
    PUBLISH: (("publish", "tx_publish"), "publish", "publishes"),
    CONFIRM: (("publish", "tx_publish"), "publish", "publishes"),
    DELIVER: (("deliver",), "delivery", "deliveries"),
    ACK: (("ack",), "ack", "acks"),
    DEAD_LETTER: (("dead_letter",), "dead letter", "dead letters"),
    METHOD: ((), "method", "methods"),
}
OF_CONNECTION: Final = ((), "connection", "connections")
# Different near misses that a sentence names, and values of a field; and characters of a value.
SHOWN_MAX: Final = 3
VALUE_CHARS_MAX: Final = 100

# The fields of an event or a connection by their names in a rule; a field with several values matches by any of them.
Facts = dict[str, list[str]]


def unused(
    rules: Iterable[Rule],
    events: Iterable[ReportedEvent],
    connections: Iterable[Connection],
    methods: Iterable[SentMethod] = (),
) -> list[str]:
    """Return a sentence for each rule that has never hit; `methods` are the last that clients have sent."""
    idle = [rule for rule in rules if not rule.hits]
    if not idle:
        return []
    opened = {connection.name: _facts_of(connection) for connection in connections}
    seen, sent = list(events), list(methods)
    happened = {
        rule: list(_facts_of_methods(sent, opened) if rule.on == METHOD else _facts(rule, seen, opened))
        for rule in idle
    }
    return [f"{_described(rule)} hit nothing: {_reason(rule, happened[rule])}" for rule in idle]


def _described(rule: Rule) -> str:
    given = rule.as_dict()
    fields = "".join(f", {name}={given[name]!r}" for name in OF_METHOD if name in given and name != "vhost")
    return f"fault {rule.id} ({rule.action} on {rule.on}{fields})"


def _facts(rule: Rule, events: list[ReportedEvent], opened: dict[str, Facts]) -> Iterator[Facts]:
    """Yield the fields of everything that happened at the moment of a rule."""
    kinds = MOMENTS.get(rule.on, OF_CONNECTION)[0]
    if not kinds:
        yield from opened.values()
    for event in events:
        if event.kind not in kinds:
            continue
        headers = event.headers
        # The broker dead-letters messages, and no client.
        yield _client(headers.get("connection", ""), opened) | {
            "vhost": [headers["vhost"]],
            "user": [headers.get("user", "")],
            "exchange": [headers["exchange_name"]],
            "routing_key": headers["routing_keys"][:1] or [""],
            "queue": _queues(event),
        }


def _queues(event: ReportedEvent) -> list[str]:
    """Return the queues that a message goes to or comes from."""
    targets: list[str] = event.headers.get("routed_queues", [])
    return targets if event.kind in ("publish", "tx_publish") else [event.name, *targets]


def _facts_of_methods(methods: list[SentMethod], opened: dict[str, Facts]) -> Iterator[Facts]:
    """Yield the fields of the methods that clients have sent."""
    for sent in methods:
        yield _client(sent.connection, opened) | {
            "vhost": [sent.vhost],
            "user": [sent.user],
            "exchange": list(sent.exchanges),
            "routing_key": list(sent.routing_keys),
            "queue": list(sent.queues),
            "method": [sent.name],
        }


def _client(connection: str, opened: dict[str, Facts]) -> Facts:
    """Return the fields of a connection by its name; one that has ended is known by its address alone."""
    return {"connection": [connection], "client_property": []} | opened.get(connection, {})


def _facts_of(connection: Connection) -> Facts:
    properties = connection.client_properties
    return {
        "vhost": [] if connection.vhost is None else [connection.vhost.name],
        "user": [] if connection.user is None else [connection.user.name],
        "connection": [str(properties["connection_name"]), connection.name]
        if "connection_name" in properties
        else [connection.name],
        "client_property": [f"{name}={value}" for name, value in properties.items() if not isinstance(value, dict)],
    }


def _reason(rule: Rule, happened: list[Facts]) -> str:
    one, several = MOMENTS.get(rule.on, OF_CONNECTION)[1:]
    if not rule.is_active and (before := rule.follows) is not None:
        return f"it follows fault {before.id}, which hit {before.hits} of {before.times} times"
    if rule.matched:
        passed = (
            f"the first {rule.after} are passed over" if rule.matched <= rule.after else "none with its probability"
        )
        return f"{_counted(rule.matched, one, several)} matched, but {passed}"
    missed = [misses(rule, facts) for facts in happened]
    if not missed:
        return "no connection is open now" if one == "connection" else f"there was no {one}"
    fewest = min(map(len, missed))
    closest = Counter(tuple(found.items()) for found in missed if len(found) == fewest).most_common(SHOWN_MAX)
    if not fewest:
        count = _counted(closest[0][1], one, several)
        return f"{count} matched, but could show no effect (docs/faults.md#where-rules-apply)"
    return "; ".join(
        f"{_counted(count, one, several)} had {' and '.join(f'{name} {value}' for name, value in found)}"
        for found, count in closest
    )


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _shown(value: str) -> str:
    return repr(value) if len(value) <= VALUE_CHARS_MAX else f"{value[:VALUE_CHARS_MAX]!r}…"


def misses(rule: Rule, facts: Facts) -> dict[str, str]:
    """Return the fields that a rule's patterns do not match, with their values as a sentence shows them."""
    found: dict[str, str] = {}
    for name in OF_METHOD:
        wanted: Any = getattr(rule, name)
        if wanted in (None, {}) or name not in facts:
            continue
        values = facts[name]
        if name == "client_property":
            is_met = all(
                any(key == given.partition("=")[0] and fits(pattern, given.partition("=")[2]) for given in values)
                for key, pattern in wanted.items()
            )
            values = [value for value in values if value.partition("=")[0] in wanted]
        elif name == "vhost":
            is_met = wanted in values
        elif name == "method":
            is_met = any(can_hit(rule.action, wanted, value) for value in values)
        else:
            pattern = globs.exchange_name(wanted) if name == "exchange" else wanted
            is_met = any(fits(pattern, value) for value in values)
        if not is_met:
            found[name] = ", ".join(map(_shown, values[:SHOWN_MAX])) or "none"
    return found
