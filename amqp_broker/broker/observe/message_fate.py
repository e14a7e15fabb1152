"""The fate of a message in a queue, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.broker.observe.event_log import Event

READY: Final = "ready"
UNACKED: Final = "unacked"
GONE: Final = "gone"
# It never came to the queue.
ELSEWHERE: Final = "elsewhere"
NAMES_MAX: Final = 5
# Reasons for which a queue drops a message.
DROPS: Final = {
    "maxlen": "The queue was full and dropped it.",
    "delivery_limit": "It was delivered too often, and the queue gave it up.",
    "purged": "The queue was purged.",
    "queue_deleted": "The queue was deleted.",
}


@dataclass(frozen=True)
class Fate:
    """Where a message is from the view of a queue; `sentences` say why."""

    state: str
    sentences: tuple[str, ...]


def fate(events: Sequence[Event], queue: str, keys: Iterable[str] = ()) -> Fate:
    """Return the fate of a message in a queue, by all events of the message and its dead letters.

    `keys` are the routing keys that bind the queue to the exchange of the publish.
    """
    visit = _Visit(queue)
    for event in events:
        visit.take(event)
    faults = _faults(events)
    if visit.state == ELSEWHERE:
        return Fate(ELSEWHERE, ("It never came here.", *_ways(events), *_bound(events, list(keys)), *faults))
    return Fate(visit.state, (*visit.sentences(), *_letters(events, queue, visit.number), *faults))


class _Visit:
    """The last stay of a message in a queue."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.state = ELSEWHERE
        self.number = 0
        self.deliveries = 0
        self._cause = ""

    def take(self, event: Event) -> None:
        if event.kind in ("publish", "dead_letter") and self.queue in event.queues:
            self.state, self.number, self.deliveries, self._cause = READY, event.number, 0, ""
        elif event.kind == "confirm" and event.number == self.number and not event.more["ack"] and not self.deliveries:
            # A refused publish is in no queue.
            self.state, self._cause = GONE, "The broker refused it with a nack."
        elif event.queue == self.queue and event.kind not in ("dead_letter", "fault"):
            self.number = event.number
            self._at_queue(event)

    def _at_queue(self, event: Event) -> None:
        who = _who(event)
        if event.kind == "deliver":
            self.deliveries += 1
            self.state, self._cause = UNACKED, f"It was delivered to {who}, which has not settled it."
            if event.more.get("no_ack"):
                self.state, self._cause = GONE, f"It was sent to {who}, which takes messages without acks."
        elif event.kind == "ack":
            self.state, self._cause = GONE, f"It was acknowledged by {who}."
        elif event.kind == "nack" and event.more["requeue"]:
            self.state, self._cause = READY, f"It was delivered to {who}, and came back."
        elif event.kind == "nack":
            self.state, self._cause = GONE, f"It was rejected by {who}, without requeue."
        elif event.kind == "expire":
            self.state, self._cause = GONE, "Its time to live ended."
        elif event.kind == "drop":
            reason = event.more["reason"]
            self.state, self._cause = GONE, DROPS.get(reason, f"The queue dropped it ({reason}).")

    def sentences(self) -> list[str]:
        begin = {READY: "It is here, ready.", UNACKED: "It is here, unacked.", GONE: "It was here."}[self.state]
        found = [begin, self._cause] if self._cause else [begin]
        if self.deliveries > 1:
            found.append(f"It was delivered {self.deliveries} times.")
        return found


def _who(event: Event) -> str:
    return f"{event.more.get('connection', 'a client')}, channel {event.more.get('channel', '?')}"


def _letters(events: Sequence[Event], queue: str, number: int) -> list[str]:
    """Return where the dead letter of a message in the queue went."""
    for event in events:
        if event.kind == "dead_letter" and event.queue == queue and event.more["from_message_number"] == number:
            targets = named(event.queues)
            return [f"Its dead letter ({event.more['reason']}) went to {targets}."]
    return []


def _faults(events: Sequence[Event]) -> list[str]:
    actions = dict.fromkeys(str(event.more["action"]) for event in events if event.kind == "fault")
    return [f"Faults hit it: {', '.join(actions)}."] if actions else []


def _ways(events: Sequence[Event]) -> list[str]:
    """Return where a message went instead."""
    found = []
    for event in events:
        if event.kind == "publish":
            keys = ", ".join(f"'{key}'" for key in event.routing_keys)
            found.append(
                f"It was published to {_exchange(event)} with routing key {keys}, which led to {named(event.queues)}."
            )
        elif event.kind == "dead_letter":
            found.append(
                f"Its dead letter from '{event.queue}' ({event.more['reason']}) went to {named(event.queues)}."
            )
        elif event.kind == "return":
            found.append("It was returned to its publisher.")
        elif event.kind == "confirm" and not event.more["ack"]:
            found.append("It was refused with a nack.")
    return found


def _bound(events: Sequence[Event], keys: list[str]) -> list[str]:
    if not events or events[0].kind != "publish":
        return []
    if not keys:
        return [f"This queue is not bound to {_exchange(events[0])}."]
    return [f"This queue is bound to {_exchange(events[0])} with {named(keys, 'no key')}."]


def _exchange(event: Event) -> str:
    return f"the exchange '{event.exchange}'" if event.exchange else "the default exchange"


def named(names: Sequence[str], none: str = "no queue") -> str:
    """Return some names in words."""
    shown = [f"'{name}'" for name in names[:NAMES_MAX]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") if shown else none
