"""The report of a failed test: what happened to the messages of its vhost, a line for each event.

The confirm of a publish and the ack of a delivery are parts of its line. Effects of fault rules are marked.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.broker.lab.fault_rules import DEAD_LETTER, DELIVER
from amqp_broker.broker.observe.closest_keys import hint

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.vhost import VHost

# Events that are kept, and lines that a report has if it is not verbose.
EVENTS_MAX: Final = 200
LINES_MAX: Final = 20
# Beginning of a body that is shown.
BODY_BYTES_MAX: Final = 60
# Different routing keys without a queue for which a report looks for close ones.
HINTS_MAX: Final = 20
# Faults that change an event; others have lines of their own.
MARKING: Final = frozenset(
    {
        "confirm_nack",
        "confirm_drop",
        "confirm_delay",
        "return",
        "duplicate",
        "delay_delivery",
        "hold_delivery",
        "drop_dead_letter",
    }
)
# The event that a fault changes, by its moment; a publish otherwise.
MARKED: Final = {DELIVER: "deliver", DEAD_LETTER: "dead_letter"}


# Events that join the line of another one.
BEGINNINGS: Final = {"confirm": "publish", "ack": "deliver", "rollback": "tx_publish"}
AT_EXCHANGES: Final = ("publish", "tx_publish", "rollback", "route", "return", "confirm")


class ReportedEvent(NamedTuple):
    """An event of the trace (broker/observe/trace.py), or a fault.

    `number` counts the messages of the vhost from 1; 0 is no message, or one that is older than the report. `name` is
    that of the exchange or queue, or of the connection of a fault. `remark` explains the event.
    """

    kind: str
    name: str
    number: int
    headers: dict[str, Any]
    body: bytes
    body_bytes: int
    remark: str


class FailureReport:
    """The last events of a vhost; `skipped` is the number of earlier ones."""

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self.events: deque[ReportedEvent] = deque(maxlen=events_max)
        self.skipped = 0
        self._vhost: VHost | None = None
        # Number of messages that the broker had seen before the first one of this report.
        self.earlier_count = 0
        # The actions that have hit a message, by its number and the kind of the event.
        self._hits: dict[tuple[int, str], list[str]] = {}
        # Hints at routing keys without a queue, by exchange and routing key, while the topology stays as it is.
        self._hints: dict[tuple[str, str], str] = {}
        self._hinted_version = 0

    def begin(self, vhost: VHost) -> None:
        """Report the events of a vhost from now on, until it is deleted."""
        self._vhost = vhost
        self.earlier_count = vhost.broker.message_count
        vhost.tracing.observe(self.add)

    def add(self, kind: str, name: str, headers: dict[str, Any], message: Message | None, body: bytes) -> None:
        """Add an event (an `Observer`)."""
        number = self._number(headers["message_number"])
        if kind == "fault":
            self._add_fault(number, headers)
            return
        faults = self._hits.get((number, "publish"), []) if kind == "confirm" else self._hits.pop((number, kind), [])
        remark = _remark(faults)
        if not remark and kind in ("publish", "dead_letter", "route") and not _places(headers):
            remark = self._hint(headers["exchange_name"], headers["routing_keys"])
        self._append(ReportedEvent(kind, name, number, headers, body[:BODY_BYTES_MAX], len(body), remark))

    def _add_fault(self, number: int, facts: dict[str, Any]) -> None:
        """Add a fault. It follows the publish that it has hit, and is before a delivery or a dead letter."""
        action = facts["action"]
        if action not in MARKING:
            self._append(ReportedEvent("fault", facts["connection"], number, facts, b"", 0, action))
            return
        kind = MARKED.get(facts["on"], "publish")
        faults = self._hits.setdefault((number, kind), [])
        faults.append(action)
        if len(self._hits) > EVENTS_MAX:
            del self._hits[next(iter(self._hits))]
        for at in range(len(self.events) - 1, -1, -1) if kind == "publish" else ():
            event = self.events[at]
            if (event.kind, event.number) == (kind, number):
                self.events[at] = event._replace(remark=_remark(faults))
                break

    def _append(self, event: ReportedEvent) -> None:
        if len(self.events) == self.events.maxlen:
            self.skipped += 1
        self.events.append(event)

    def _number(self, number: int) -> int:
        return max(0, number - self.earlier_count)

    def _hint(self, exchange: str, keys: list[str]) -> str:
        place, vhost = (exchange, keys[0] if keys else ""), self._vhost
        if vhost is not None and vhost.topology_version != self._hinted_version:
            self._hinted_version = vhost.topology_version
            self._hints.clear()
        if place not in self._hints and (vhost is None or len(self._hints) >= HINTS_MAX):
            return ""
        if place not in self._hints:
            assert vhost is not None
            found = hint(vhost, *place)
            self._hints[place] = f" ({found})" if found else ""
        return self._hints[place]

    def text(self, lines_max: int = LINES_MAX) -> str:
        """Return a line for each of the last events, oldest first; "" if there are none."""
        lines = _lines(self.events)
        shown = lines[-lines_max:]
        hidden = len(lines) - len(shown)
        advice = "; pytest -v shows more" if hidden else ""
        head = [f"({self.skipped + hidden} earlier events{advice})"] if self.skipped or hidden else []
        return "\n".join(head + shown)


def _remark(faults: list[str]) -> str:
    return "".join(f" (fault {action})" for action in faults)


def _lines(events: deque[ReportedEvent]) -> list[str]:
    """Describe events; a confirm joins the line of its publish, and an ack that of its delivery."""
    shown: list[tuple[ReportedEvent, list[str]]] = []
    awaiting: dict[tuple[Any, ...], list[str]] = {}
    for event in events:
        # A stream delivers a message to several consumers.
        who = tuple(event.headers.get(name) for name in ("connection", "channel", "consumer_tag"))
        outcomes = awaiting.pop((BEGINNINGS.get(event.kind), event.number, event.name, who), None)
        if outcomes is not None:
            outcomes.append(_outcome(event))
        else:
            shown.append((event, []))
            if event.number:
                awaiting[event.kind, event.number, event.name, who] = shown[-1][1]
    return [_line(event, outcomes) for event, outcomes in shown]


def _outcome(event: ReportedEvent) -> str:
    if event.kind == "ack":
        return ", acked"
    if event.kind == "rollback":
        return f", not committed ({event.headers['reason']})"
    return ", confirmed" if event.headers["ack"] else f", nacked{event.remark}"


def _line(event: ReportedEvent, outcomes: list[str]) -> str:
    headers, kind = event.headers, event.kind
    number = f"#{event.number}" if event.number else ""
    if kind in AT_EXCHANGES or (kind == "drop" and event.headers.get("queue", "") is None):
        place = f"exchange '{event.name}', routing key {', '.join(map(repr, headers['routing_keys']))}"
    elif kind == "fault":
        place = f"connection {event.name}"
    else:
        place = f"queue '{event.name}'"
    return f"{number:>5} {kind:<11} {place}{_details(event, ''.join(outcomes))}"


def _details(event: ReportedEvent, outcome: str) -> str:
    headers, kind = event.headers, event.kind
    if kind == "publish":
        # A nack has the mark of its fault.
        remark = "" if event.remark and event.remark in outcome else event.remark
        return f" -> {_routed(headers)}{remark}{outcome}: {_body(event)}"
    if kind == "deliver":
        again = " again" if headers["redelivered"] else ""
        client = f"{headers['connection']} channel {headers['channel']}"
        return f"{again} to {client}{event.remark}{outcome}: {_body(event)}"
    if kind == "tx_publish":
        delayed = f" -> {_routed(headers)}" if headers.get("delayed_in") else ""
        return f"{delayed}{event.remark}{outcome}: {_body(event)}"
    if kind in ("route", "move"):
        reason = f", {headers['reason']}" if "reason" in headers else ""
        return f"{reason} -> {_routed(headers)}{event.remark}"
    if kind == "dead_letter":
        return f" (was {_former(event)}), {headers['reason']} -> {_routed(headers)}{event.remark}"
    if kind == "nack":
        return ", requeued" if headers["requeue"] else ", not requeued"
    if kind == "confirm":
        return ": ack" if headers["ack"] else f": nack{event.remark}"
    if kind == "return":
        return f": {headers['reply_code']} {headers['reply_text']}"
    if kind in ("drop", "refuse", "requeue", "rollback"):
        return f": {headers['reason']}"
    if kind == "fault":
        keys = headers["routing_keys"]
        key = f", exchange '{headers['exchange_name']}', routing key {keys[0]!r}" if keys else ""
        return f"{key} (fault {event.remark})"
    return ""


def _routed(headers: dict[str, Any]) -> str:
    return ", ".join(_places(headers)) or "no queue"


def _places(headers: dict[str, Any]) -> list[str]:
    """Return the queues that a message goes to, and the exchanges that delay it."""
    return [
        *(f"'{name}'" for name in headers.get("routed_queues", ())),
        *(f"delayed in '{name}'" for name in headers.get("delayed_in", ())),
    ]


def _former(event: ReportedEvent) -> str:
    """Return the number of the message that was dead-lettered, from its distance to the new one."""
    number = event.number - (event.headers["message_number"] - event.headers["from_message_number"])
    return f"#{number}" if number > 0 else "an earlier message"


def _body(event: ReportedEvent) -> str:
    if event.body_bytes > len(event.body):
        return f"{event.body!r}… ({event.body_bytes} bytes)"
    return repr(event.body)
