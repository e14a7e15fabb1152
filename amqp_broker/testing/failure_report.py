"""The report of a failed test: what happened to the messages of its vhost, a line for each event.

The return and the confirm of a publish, and the ack of a delivery, are parts of its line. Effects of fault rules are
marked. Messages have their numbers in the event log.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.broker.lab.fault_rules import DEAD_LETTER, DELIVER, KEEPING_BACK
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
# Characters of the arguments of a Celery task that are shown.
ARGUMENTS_CHARS_MAX: Final = 100
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
BEGINNINGS: Final = {"return": "publish", "confirm": "publish", "ack": "deliver", "rollback": "tx_publish"}
AT_EXCHANGES: Final = ("publish", "tx_publish", "rollback", "route", "return", "confirm")


class ReportedEvent(NamedTuple):
    """An event of the trace (broker/observe/trace.py), or a fault.

    `number` is that of the message; 0 is no message, or one that is older than the trace. `name` is that of the
    exchange or queue, or of the connection of a fault. `remark` explains the event.
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
        # The actions that have hit a message, by its number and the kind of the event.
        self._hits: dict[tuple[int, str], list[str]] = {}
        # Hints at routing keys without a queue, by exchange and routing key, while the topology stays as it is.
        self._hints: dict[tuple[str, str], str] = {}
        self._hinted_version = 0

    def begin(self, vhost: VHost) -> None:
        """Report the events of a vhost from now on, until it is deleted."""
        self._vhost = vhost
        vhost.tracing.observe(self.add)

    def add(self, kind: str, name: str, headers: dict[str, Any], message: Message | None, body: bytes) -> None:
        """Add an event (an `Observer`)."""
        number = int(headers["message_number"])
        if kind == "fault":
            self._add_fault(number, headers, message)
            return
        faults = self._hits.get((number, "publish"), []) if kind == "confirm" else self._hits.pop((number, kind), [])
        remark = _remark(faults)
        if not remark and kind in ("publish", "dead_letter", "route") and not _places(headers):
            remark = self._hint(headers["exchange_name"], headers["routing_keys"])
        self._append(ReportedEvent(kind, name, number, headers, body[:BODY_BYTES_MAX], len(body), remark))

    def _add_fault(self, number: int, facts: dict[str, Any], message: Message | None) -> None:
        """Add a fault. It follows the publish that it has hit, and is before a delivery or a dead letter."""
        action = facts["action"]
        if action not in MARKING:
            # A publish that was cut off has no other line.
            body = b"" if message is None or facts.get("is_taken", True) else message.body
            fault = ReportedEvent("fault", facts["connection"], number, facts, body[:BODY_BYTES_MAX], len(body), action)
            self._append(fault)
            return
        if action in KEEPING_BACK:
            # The delivery may never come.
            self._append(ReportedEvent("fault", facts["connection"], number, facts, b"", 0, action))
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

    def note_log(self, beginning: str) -> None:
        """Note that the event log of the vhost begins now, after messages were published."""
        self._append(ReportedEvent("event_log", "", 0, {}, b"", 0, beginning))

    def _append(self, event: ReportedEvent) -> None:
        if len(self.events) == self.events.maxlen:
            self.skipped += 1
        self.events.append(event)

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
    """Describe events. Answers join the line of what they answer: a return and a confirm, or an ack."""
    shown: list[tuple[ReportedEvent, list[str]]] = []
    awaiting: dict[tuple[Any, ...], list[str]] = {}
    for event in events:
        # A stream delivers a message to several consumers.
        who = tuple(event.headers.get(name) for name in ("connection", "channel", "consumer_tag"))
        beginning = BEGINNINGS.get(event.kind), event.number, event.name, who
        if beginning in awaiting:
            awaiting[beginning].append(_outcome(event))
            # A confirm follows a return.
            if event.kind != "return":
                del awaiting[beginning]
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
    if event.kind == "return":
        return f", returned ({event.headers['reply_code']} {event.headers['reply_text']})"
    return ", confirmed" if event.headers["ack"] else f", nacked{event.remark}"


def _line(event: ReportedEvent, outcomes: list[str]) -> str:
    headers, kind = event.headers, event.kind
    if kind == "event_log":
        return f"{'':>5} {kind:<11} {event.remark}"
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
        delayed = f" -> {_routed(headers)}" if headers.get("delayed_in") or headers.get("duplicate_in") else ""
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
        kept = f": a delivery from '{headers['queue']}' is kept back" if event.remark in KEEPING_BACK else ""
        cut_off = "" if headers.get("is_taken", True) else f", before the broker took it: {_octets(event)}"
        return f"{key} (fault {event.remark}){kept}{cut_off}"
    return ""


def _routed(headers: dict[str, Any]) -> str:
    return ", ".join(_places(headers)) or "no queue"


def _places(headers: dict[str, Any]) -> list[str]:
    """Return the queues that a message goes to, and the exchanges that delay it."""
    return [
        *(f"'{name}'" for name in headers.get("routed_queues", ())),
        *(f"delayed in '{name}'" for name in headers.get("delayed_in", ())),
        *(f"a duplicate in '{name}'" for name in headers.get("duplicate_in", ())),
    ]


def _former(event: ReportedEvent) -> str:
    number = event.headers["from_message_number"]
    return f"#{number}" if number else "an earlier message"


def _body(event: ReportedEvent) -> str:
    properties = event.headers["properties"]
    shown, message_id = _task(properties.get("headers", {})) or _octets(event), properties.get("message_id")
    return f"{shown}, id {message_id!r}" if message_id else shown


def _task(headers: dict[str, Any]) -> str:
    """Return the call of a Celery task, which its headers describe; "" for other messages.

    Source: Celery, "Message Protocol", version 2.
    """
    name, retries = headers.get("task"), headers.get("retries")
    arguments = [headers.get("argsrepr"), headers.get("kwargsrepr")]
    if not isinstance(name, str) or not all(isinstance(one, str) for one in arguments):
        return ""
    shown = [f"{one[:ARGUMENTS_CHARS_MAX]}…" if len(one) > ARGUMENTS_CHARS_MAX else one for one in map(str, arguments)]
    return f"task {name}, args {shown[0]}, kwargs {shown[1]}" + (f", retry {retries}" if retries else "")


def _octets(event: ReportedEvent) -> str:
    if event.body_bytes > len(event.body):
        return f"{event.body!r}… ({event.body_bytes} bytes)"
    return repr(event.body)
