"""The report of a failed test: the last events of its vhost, a line each."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message

EVENTS_MAX: Final = 200
# Beginning of a body that is shown.
BODY_BYTES_MAX: Final = 60


class ReportedEvent(NamedTuple):
    """An event of the extended trace (broker/observe/trace.py); `name` is that of its exchange or queue."""

    kind: str
    name: str
    headers: dict[str, Any]
    body: bytes
    body_bytes: int


class FailureReport:
    """The last events of a vhost; `skipped` is the number of earlier ones."""

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self.events: deque[ReportedEvent] = deque(maxlen=events_max)
        self.skipped = 0

    def add(self, kind: str, name: str, headers: dict[str, Any], message: Message, body: bytes) -> None:
        """Add an event (an `Observer`)."""
        if len(self.events) == self.events.maxlen:
            self.skipped += 1
        self.events.append(ReportedEvent(kind, name, headers, body[:BODY_BYTES_MAX], len(body)))

    def text(self) -> str:
        """Return a line for each event, oldest first; "" if there are none."""
        lines = [f"({self.skipped} earlier events)"] if self.skipped else []
        return "\n".join([*lines, *map(_line, self.events)])


def _line(event: ReportedEvent) -> str:
    headers, kind = event.headers, event.kind
    keys = ", ".join(map(repr, headers.get("routing_keys", [])))
    number = f"#{headers['message_number']}"
    if kind in ("publish", "return", "confirm"):
        place = f"exchange '{event.name}', routing key {keys}"
    else:
        place = f"queue '{event.name}'"
    return f"{number:>5} {kind:<11} {place}{_details(event)}"


def _details(event: ReportedEvent) -> str:
    headers, kind = event.headers, event.kind
    if kind == "publish":
        routed = ", ".join(f"'{name}'" for name in headers["routed_queues"]) or "no queue"
        return f" -> {routed}: {_body(event)}"
    if kind == "deliver":
        again = " again" if headers["redelivered"] else ""
        return f"{again} to {headers['connection']} channel {headers['channel']}: {_body(event)}"
    if kind == "dead_letter":
        routed = ", ".join(f"'{name}'" for name in headers["routed_queues"]) or "no queue"
        return f" (was #{headers['from_message_number']}), {headers['reason']} -> {routed}"
    if kind == "nack":
        return ", requeued" if headers["requeue"] else ", not requeued"
    if kind == "confirm":
        return ": " + ("ack" if headers["ack"] else "nack")
    if kind == "return":
        return f": {headers['reply_code']} {headers['reply_text']}"
    if kind == "drop":
        return f": {headers['reason']}"
    return ""


def _body(event: ReportedEvent) -> str:
    if event.body_bytes > len(event.body):
        return f"{event.body!r}… ({event.body_bytes} bytes)"
    return repr(event.body)
