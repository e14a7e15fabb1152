"""The fate of a message in a queue, with the reason, by the history of the message in the event log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.queues import leaving_reasons as why
from amqp_broker.broker.queues.dead_letter_reasons import DELIVERY_LIMIT, MAXLEN

if TYPE_CHECKING:
    from amqp_broker.broker.observe.event_log import Event

READY: Final = "ready"
UNACKED: Final = "unacked"
# It is in the queue, and waits for the end of a delay.
DELAYED: Final = "delayed"
GONE: Final = "gone"
# It never came to the queue.
ELSEWHERE: Final = "elsewhere"
NAMES_MAX: Final = 5
# Reasons for which a queue drops a message.
DROPS: Final = {
    MAXLEN: "The queue was full and dropped it.",
    DELIVERY_LIMIT: "It was delivered too often, and the queue gave it up.",
    why.PURGED: "The queue was purged.",
    why.QUEUE_DELETED: "The queue was deleted.",
    why.RETENTION: "It was beyond the retention of the stream.",
    why.DUPLICATE: "It was dropped as a duplicate: the queue had a message with the same deduplication header.",
}
# Reasons for which a message is ready again although its consumer has not returned it.
RETURNS: Final = {
    why.CHANNEL_CLOSED: "whose channel was closed: it came back",
    why.CONNECTION_CLOSED: "whose connection ended: it came back",
    why.TIMED_OUT: "which did not settle it in time: it came back",
}
ROLLBACKS: Final = {
    why.ROLLBACK: "The transaction was rolled back.",
    why.COMMIT_FAILED: "The commit failed.",
    why.CHANNEL_CLOSED: "The channel was closed before the commit.",
    why.CONNECTION_CLOSED: "The connection ended before the commit.",
}
# Faults, in words; an action that is not here ends something, at its moment.
FAULTS: Final = {
    "confirm_nack": "The fault confirm_nack made the broker refuse it.",
    "return": "The fault return made the broker return it.",
    "confirm_drop": "The fault confirm_drop lost its confirm: the publisher never got one.",
    "confirm_delay": "The fault confirm_delay sent its confirm {delay_ms} ms late.",
    "block": "The fault block blocked its connection.",
    "duplicate": "The fault duplicate delivered it twice.",
    "delay_delivery": "The fault delay_delivery kept its delivery back, for up to {delay_ms} ms.",
    "hold_delivery": "The fault hold_delivery kept its delivery back.",
    "drop_ack": "The fault drop_ack lost its ack: for the broker, it is still unacked.",
    "drop_dead_letter": "The fault drop_dead_letter lost its dead letter.",
}
MOMENTS: Final = {
    "publish": "before the broker took it",
    "confirm": "in place of its confirm",
    "deliver": "with its delivery",
}
_HERE: Final = {
    READY: "It is here, ready.",
    UNACKED: "It is here, unacked.",
    DELAYED: "It is here, but not ready.",
    GONE: "It was here.",
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
    visits: dict[int, _Visit] = {}
    for event in events:
        _follow(visits, queue, event)
    faults = _faults(events)
    # Of several dead letters, one that is here counts, or else the last.
    visit = max(reversed(visits.values()), key=lambda one: one.stay.is_here, default=None)
    if visit is not None and (visit.stay.is_here or any(not one.is_refused for one in visits.values())):
        return Fate(visit.state, (*visit.sentences(), *_letters(events, queue, visit.number), *faults))
    ways, is_open = _ways(events)
    begin = "It has not come here yet." if is_open else "It never came here."
    refusal = [] if visit is None else [visit.cause, *_letters(events, queue, visit.number)]
    return Fate(ELSEWHERE, (begin, *refusal, *ways, *_bound(events, list(keys)), *faults))


class Stay:
    """How often a message is in a queue: ready, unacked and delayed.

    Most are there once at most. An exchange with a history sends one again. `holders` are connection, channel and
    consumer tag of the unacked ones, and `kept` are those of the delayed ones whose delivery a fault keeps back.
    """

    def __init__(self) -> None:
        self.ready = self.unacked = self.delayed = self.kept = 0
        self.holders: list[tuple[str, int, str]] = []

    @property
    def is_here(self) -> bool:
        return bool(self.ready or self.unacked or self.delayed)

    def arrive(self) -> None:
        self.ready += 1

    def take(self, event: Event) -> None:
        """Follow an event of the message in the queue."""
        kind, more = event.kind, event.more
        if more.get("is_stream"):
            return
        if kind == "fault":
            self.ready -= 1
            self.delayed += 1
            self.kept += 1
        elif kind == "deliver":
            self._leave()
            if not more["no_ack"]:
                self.unacked += 1
                self.holders.append((more["connection"], more["channel"], more["consumer_tag"]))
        elif kind == "requeue" and more["reason"] == why.CANCELLED:
            # A fault kept the delivery back, and the consumer left.
            self._leave()
            self.ready += 1
        elif kind in ("ack", "nack") or (kind == "requeue" and more["reason"] != why.DUE):
            self._release(event)
            self.unacked -= 1
            self.ready += kind == "requeue" or bool(more.get("requeue"))
        elif kind == "delay":
            self.ready -= 1
            self.delayed += 1
        elif kind == "requeue":
            self.delayed -= 1
            self.ready += 1
        elif kind in ("refuse", "expire", "move") or (kind == "drop" and self.ready):
            self.ready -= 1
        elif kind == "drop" and self.delayed:
            self.delayed -= 1
            self.kept = min(self.kept, self.delayed)
        elif kind == "drop":
            self._release(event)
            self.unacked -= 1

    def _leave(self) -> None:
        """Take one that was kept back, or that was ready."""
        if self.kept:
            self.kept -= 1
            self.delayed -= 1
        else:
            self.ready -= 1

    def _release(self, event: Event) -> None:
        """Forget who had the message."""
        client = event.more.get("connection"), event.more.get("channel")
        for at, holder in enumerate(self.holders):
            if client in (holder[:2], (None, None)):
                del self.holders[at]
                return


def follow(stays: dict[tuple[int, str], Stay], event: Event) -> None:
    """Follow an event with the stays of all messages of a vhost, by number and queue."""
    # A message may be moved to the queue where it was.
    if event.queue is not None and _is_there(event) and (event.number, event.queue) in stays:
        stays[event.number, event.queue].take(event)
    for queue in event.queues:
        stays.setdefault((event.number, queue), Stay()).arrive()


# Faults that keep a delivery back.
KEEPING_BACK: Final = frozenset({"delay_delivery", "hold_delivery"})


def _is_there(event: Event) -> bool:
    """Return whether an event at a queue changes something there. A dead letter has another number."""
    if event.kind == "fault":
        return event.more["action"] in KEEPING_BACK
    return event.kind != "dead_letter"


def _follow(visits: dict[int, _Visit], queue: str, event: Event) -> None:
    if event.queue == queue and _is_there(event) and event.number in visits:
        visits[event.number].take(event)
    if queue in event.queues:
        visit = visits.pop(event.number, None) or _Visit(event.number)
        visits[event.number] = visit
        visit.arrive(event)


class _Visit:
    """The stay of a message in a queue, in words."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.stay = Stay()
        self.cause = ""
        self.is_refused = False
        self._deliveries = 0
        self._holder = ""

    @property
    def state(self) -> str:
        stay = self.stay
        if stay.unacked > 0:
            return UNACKED
        return READY if stay.ready > 0 else DELAYED if stay.delayed > 0 else GONE

    def arrive(self, event: Event) -> None:
        self.stay.arrive()
        self.cause, self.is_refused, self._deliveries = _arrival(event), False, 0

    def take(self, event: Event) -> None:
        self.stay.take(event)
        kind, more = event.kind, event.more
        reason = more.get("reason", "")
        if kind == "refuse":
            self.is_refused, self.cause = True, "The queue was full and refused it."
        elif kind == "expire":
            self.cause = "Its time to live ended."
        elif kind == "move":
            self.cause = f"It was moved to {named(event.queues)}."
        elif kind == "drop":
            self.is_refused = reason == why.DUPLICATE
            self.cause = DROPS.get(reason, f"The queue dropped it ({reason}).")
        elif kind == "deliver":
            self._deliveries += 1
            self._holder = _who(event)
            self.cause = f"It was delivered to {self._holder}, which has not settled it."
            if more.get("is_stream"):
                self.cause = f"It was last delivered to {self._holder}; a stream keeps it."
            elif more["no_ack"]:
                self.cause = f"It was sent to {self._holder}, which takes messages without acks."
        elif kind == "fault":
            self.cause = "A fault keeps its delivery back."
        elif not more.get("is_stream"):
            self._settled(event, reason)

    def _settled(self, event: Event, reason: str) -> None:
        kind = event.kind
        if kind == "ack":
            self.cause = f"It was acknowledged by {_who(event)}."
        elif kind == "nack" and event.more["requeue"]:
            self.cause = f"It was delivered to {_who(event)}, and came back."
        elif kind == "nack":
            self.cause = f"It was rejected by {_who(event)}, without requeue."
        elif kind == "delay":
            self.cause += " The queue delays its next delivery."
        elif kind == "requeue" and reason == why.DUE:
            self.cause = "The delay of its next delivery has ended."
        elif kind == "requeue" and reason == why.CANCELLED:
            self.cause = "The consumer of a delivery that a fault kept back has gone: the message stayed here."
        elif kind == "requeue":
            self.cause = f"It was delivered to {self._holder}, {RETURNS.get(reason, 'and came back')}."

    def sentences(self) -> list[str]:
        found = [_HERE[self.state]]
        if self.cause:
            found.append(self.cause)
        if self._deliveries > 1:
            found.append(f"It was delivered {self._deliveries} times.")
        return found


def _arrival(event: Event) -> str:
    """Return how a message came to a queue, if that was not by its publish or as a dead letter."""
    if event.kind == "move":
        return f"It was moved from '{event.queue}'."
    if event.kind == "route" and event.more["reason"] == why.HISTORY:
        return "It came from the history of an exchange, to which the queue was bound."
    return "It was delayed until then." if event.kind == "route" else ""


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
    """Return what faults did to a message; those that are alike once."""
    return list(dict.fromkeys(_fault(event) for event in events if event.kind == "fault"))


def _fault(event: Event) -> str:
    action, on = str(event.more["action"]), str(event.more["on"])
    if action in FAULTS:
        return FAULTS[action].format(**event.more["parameters"])
    return f"The fault {action} came {MOMENTS.get(on, f'on {on}')}."


def _ways(events: Sequence[Event]) -> tuple[list[str], bool]:
    """Return where a message went instead, and whether it is still on its way."""
    found = []
    # Numbers of messages whose transaction is open, and numbers and exchanges of those that wait for their time.
    uncommitted: set[int] = set()
    waiting: dict[tuple[int, str], None] = {}
    for event in events:
        kind, number = event.kind, event.number
        waiting.update(dict.fromkeys((number, name) for name in event.more.get("delayed_in", ())))
        dropped = [f"The exchange '{name}' dropped it as a duplicate." for name in event.more.get("duplicate_in", ())]
        if kind == "tx_publish":
            uncommitted.add(number)
            found.append(f"It was published in a transaction, to {_exchange(event)} with routing key {_keys(event)}.")
        elif kind == "publish":
            is_committed = number in uncommitted
            uncommitted.discard(number)
            begin = "The transaction was committed" if is_committed else f"It was published to {_exchange(event)}"
            key = "" if is_committed else f" with routing key {_keys(event)}"
            found.append(f"{begin}{key}, {_led(event)}.")
        elif event.is_cut_off:
            found.append(f"It was published to {_exchange(event)} with routing key {_keys(event)}.")
        elif kind == "rollback":
            uncommitted.discard(number)
            found.append(ROLLBACKS[event.more["reason"]])
        elif kind == "route":
            waiting.pop((number, event.exchange), None)
            found.append(f"The exchange '{event.exchange}' kept it, and sent it to {named(event.queues)}.")
        elif kind == "move":
            found.append(f"It was moved from '{event.queue}' to {named(event.queues)}.")
        elif kind == "drop" and event.queue is None:
            waiting = {place: None for place in waiting if place[0] != number}
            found.append("The delayed exchange that kept it was deleted.")
        elif kind == "dead_letter":
            found.append(
                f"Its dead letter from '{event.queue}' ({event.more['reason']}) went to {named(event.queues)}."
            )
        elif kind == "return":
            found.append("It was returned to its publisher.")
        elif kind == "confirm" and not event.more["ack"]:
            found.append("It was refused with a nack.")
        found += dropped
    found += [f"The exchange '{name}' delays it." for _, name in waiting]
    if uncommitted:
        found.append("The transaction has not been committed.")
    return found, bool(waiting or uncommitted)


def _led(publish: Event) -> str:
    """Return where the routing key of a publish led, and the fault that kept the message from there."""
    if kept_from := kept_from_by_fault(publish.more):
        return f"and the fault {publish.more['discarded_by']} kept it from {kept_from}"
    return f"which led to {named(publish.queues)}"


def _bound(events: Sequence[Event], keys: list[str]) -> list[str]:
    if not events or not (events[0].kind in ("publish", "tx_publish") or events[0].is_cut_off):
        return []
    if not keys:
        return [f"This queue is not bound to {_exchange(events[0])}."]
    return [f"This queue is bound to {_exchange(events[0])} with {named(keys, 'no key')}."]


def _keys(event: Event) -> str:
    return ", ".join(f"'{key}'" for key in event.routing_keys)


def _exchange(event: Event) -> str:
    return f"the exchange '{event.exchange}'" if event.exchange else "the default exchange"


def kept_from_by_fault(facts: Mapping[str, Any]) -> str:
    """Return the places that a fault kept a publish from, in words; "" for none."""
    if delay := facts.get("kept_from_delay"):
        return f"a delay in '{delay}'"
    return named(facts["kept_from"]) if facts.get("kept_from") else ""


def named(names: Sequence[str], none: str = "no queue") -> str:
    """Return some names in words."""
    shown = [f"'{name}'" for name in names[:NAMES_MAX]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") if shown else none
