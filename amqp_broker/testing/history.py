"""What happened to the messages of a vhost, for the report of a test that failed: the last events, and no more."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from amqp_broker.message import Message

EVENTS_MAX: Final = 200
# How much of a body is shown.
BODY_BYTES_MAX: Final = 60


class Event(NamedTuple):
    """As the extended trace tells it (broker/trace.py): of a publish, for one, `name` is the exchange."""

    kind: str
    name: str
    headers: dict[str, Any]
    body: bytes
    body_bytes: int


class History:
    """The last events of a vhost; `forgotten` is how many came before them."""

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self.events: deque[Event] = deque(maxlen=events_max)
        self.forgotten = 0

    def tell(self, kind: str, name: str, headers: dict[str, Any], message: Message, body: bytes) -> None:
        """The tap of a vhost."""
        if len(self.events) == self.events.maxlen:
            self.forgotten += 1
        self.events.append(Event(kind, name, headers, body[:BODY_BYTES_MAX], len(body)))


def what_happened(history: History) -> str:
    """A line for each event, in the order in which they happened; "" if there were none.

    The one place that knows where a test's report takes this from.
    """
    lines = [f"({history.forgotten} earlier events)"] if history.forgotten else []
    return "\n".join([*lines, *map(_line, history.events)])


def _line(event: Event) -> str:
    headers, kind = event.headers, event.kind
    keys = ", ".join(map(repr, headers.get("routing_keys", [])))
    number = f"#{headers['message_number']}"
    if kind in ("publish", "return", "confirm"):
        place = f"exchange '{event.name}', routing key {keys}"
    else:
        place = f"queue '{event.name}'"
    return f"{number:>5} {kind:<11} {place}{_more(event)}"


def _more(event: Event) -> str:
    headers, kind = event.headers, event.kind
    if kind == "publish":
        routed = ", ".join(f"'{name}'" for name in headers["routed_queues"]) or "no queue"
        return f" -> {routed}: {_shown(event)}"
    if kind == "deliver":
        again = " again" if headers["redelivered"] else ""
        return f"{again} to {headers['connection']} channel {headers['channel']}: {_shown(event)}"
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


def _shown(event: Event) -> str:
    if event.body_bytes > len(event.body):
        return f"{event.body!r}… ({event.body_bytes} bytes)"
    return repr(event.body)
