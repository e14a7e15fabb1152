"""The history of a vhost's messages, counted and checked: is each message where its events say?

The check reads the event log. It finds a message that left a queue without an event, and one that was delivered where
it was not ready. It finds a missing mark of a redelivery, an order of deliveries that was not that of the arrivals, and
the ack of a publish that a fault has refused. Messages whose first event is no longer in the log are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp.message import NumberedMessage
from amqp_broker.broker.observe.message_fate import KEEPING_BACK, Stay, follow
from amqp_broker.broker.queues.leaving_reasons import DUE

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.observe.event_log import Event, EventLog
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.portions import Steps

# Breaches that are described.
BREACHES_MAX: Final = 20
# Events that are followed in one step.
STEP: Final = 50
# Messages of a queue that are compared one by one.
COMPARED_MAX: Final = 20_000
# Events by which a message leaves a queue without a delivery.
_LEAVING: Final = frozenset({"move", "expire", "drop", "refuse"})
# The counts of a history, by the kinds of events.
_COUNTED: Final = {"expire": "expired", "drop": "dropped", "refuse": "refused", "dead_letter": "dead_lettered"}


class HistoryCheck:
    """The history in an event log. `counts` are messages or events by name; `breaches` are sentences."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.counts: Counter[str] = Counter()
        self.breaches: list[str] = []
        self.breach_count = 0
        # The last event that was followed, and the number of events up to it, dropped ones included.
        self._last: Event | None = None
        self._followed_to = log.skipped
        self._is_interrupted = False
        self._stays: dict[tuple[int, str], Stay] = {}
        # The arrivals of a message at a queue that were not delivered yet, as numbers of all arrivals.
        self._arrivals: dict[tuple[int, str], list[int]] = {}
        self._arrival_count = 0
        # The last arrival of each queue that was delivered for the first time.
        self._delivered: dict[str, int] = {}
        self._unordered: set[str] = set()
        self._confirmed: set[int] = set()
        # Messages that a fault has refused, and those whose first event the log has.
        self._refused: set[int] = set()
        self._known: set[int] = set()

    def run(self) -> Steps[dict[str, Any]]:
        """Follow all events, compare the places with the queues, and return the result for JSON."""
        former = 0
        while new := self._new_events():
            # Where as much happens meanwhile as before, the rest is followed in one step: the check must end.
            is_last = 0 < former <= len(new)
            former = len(new)
            for count, event in enumerate(new, 1):
                self._follow(event)
                if count % STEP == 0 and not is_last:
                    yield
        # Nothing has happened since the last event: the queues are compared with it.
        if not self._is_interrupted:
            self._compare()
        return self._result()

    def _new_events(self) -> list[Event]:
        """Return the events that have come since the last call."""
        log = self._log
        at = self._followed_to - log.skipped
        # The log has dropped some that were not followed, or was emptied.
        if not 0 <= at <= len(log.events) or (at and log.events[at - 1] is not self._last):
            self._is_interrupted = True
            return []
        new = list(islice(log.events, at, None))
        if new:
            self._last, self._followed_to = new[-1], log.skipped + len(log.events)
        return new

    def _result(self) -> dict[str, Any]:
        here = {"ready": 0, "unacked": 0, "delayed": 0}
        for stay in self._stays.values():
            here["ready"] += stay.ready
            here["unacked"] += stay.unacked
            here["delayed"] += stay.delayed
        return {
            "vhost": self._log.vhost.name,
            **{name: self.counts[name] for name in COUNTS},
            **here,
            "skipped": self._log.skipped,
            "is_interrupted": self._is_interrupted,
            "breaches": list(self.breaches),
            "breach_count": self.breach_count,
        }

    def _breach(self, sentence: str) -> None:
        self.breach_count += 1
        if len(self.breaches) < BREACHES_MAX:
            self.breaches.append(sentence)

    # Events

    def _follow(self, event: Event) -> None:
        kind, number, queue = event.kind, int(event.number), event.queue
        if kind == "fault":
            self.counts["faults"] += 1
            self.counts["cut_off"] += event.is_cut_off
            if event.more["action"] in KEEPING_BACK and queue is not None:
                self._unordered.add(queue)
        if event.may_be_first and number:
            self._known.add(number)
        if number not in self._known:
            return
        if kind == "publish":
            self._publish(event, number)
        elif kind in ("confirm", "return"):
            self._answer(event, number)
        elif kind == "deliver":
            self._deliver(event, number)
        elif kind in ("ack", "nack"):
            self.counts["acked" if kind == "ack" else "requeued" if event.more["requeue"] else "rejected"] += 1
        elif kind == "requeue" and event.more["reason"] != DUE:
            self.counts["requeued"] += 1
        if kind in _COUNTED:
            self.counts[_COUNTED[kind]] += 1
        place = None if queue is None else self._stays.get((number, queue))
        was_ready = 0 if place is None else place.ready
        follow(self._stays, event)
        if (
            kind in _LEAVING
            and place is not None
            and place.ready < was_ready
            and (number, str(queue)) in self._arrivals
        ):
            del self._arrivals[number, str(queue)][:1]
        for name in event.queues:
            self._arrival_count += 1
            self._arrivals.setdefault((number, name), []).append(self._arrival_count)
        if queue is not None and place is not None:
            self._check_stay(place, number, queue)

    def _publish(self, event: Event, number: int) -> None:
        is_discarded = "discarded_by" in event.more
        self.counts["published"] += 1
        self.counts["discarded"] += is_discarded
        is_expected = is_discarded or bool(event.more.get("delayed_in") or event.more.get("duplicate_in"))
        self.counts["unroutable"] += not (is_expected or event.queues)
        if event.more.get("discarded_by") == "confirm_nack":
            self._refused.add(number)

    def _answer(self, event: Event, number: int) -> None:
        if event.kind == "return":
            self.counts["returned"] += 1
            return
        is_ack = event.more["ack"]
        self.counts["confirmed" if is_ack else "nacked"] += 1
        if number in self._confirmed:
            self._breach(f"message {number} was confirmed twice")
        elif is_ack and number in self._refused:
            self._breach(f"message {number} was confirmed by an ack, although a fault had refused it")
        self._confirmed.add(number)

    def _deliver(self, event: Event, number: int) -> None:
        queue, more = str(event.queue), event.more
        self.counts["delivered"] += 1
        self.counts["redelivered"] += bool(more["redelivered"])
        self.counts["taken"] += bool(more["no_ack"])
        if more.get("is_stream") or more["redelivered"]:
            return
        arrivals = self._arrivals.get((number, queue))
        if not arrivals:
            self._breach(f"message {number} was delivered from '{queue}' again, without the mark of a redelivery")
            return
        arrival = arrivals.pop(0)
        is_ordered = event.is_in_order and queue not in self._unordered
        if arrival < self._delivered.get(queue, 0) and is_ordered:
            self._breach(f"message {number} was delivered from '{queue}' after a message that came later")
        self._delivered[queue] = max(arrival, self._delivered.get(queue, 0))

    def _check_stay(self, stay: Stay, number: int, queue: str) -> None:
        for state in ("ready", "unacked", "delayed"):
            if getattr(stay, state) < 0:
                setattr(stay, state, 0)
                self._breach(f"message {number} in '{queue}' left the state {state}, in which it was not")

    # Queues

    def _compare(self) -> None:
        """Compare the numbers of messages in the queues with the places that the history says."""
        places: dict[str, Counter[str]] = {}
        for (_, name), stay in self._stays.items():
            if stay.is_here:
                places.setdefault(name, Counter()).update(ready=stay.ready, unacked=stay.unacked)
        for queue in self._log.vhost.queues.values():
            place = places.get(queue.name, Counter())
            wanted = place["ready"], place["unacked"]
            if queue.type != "stream" and self._lengths(queue) != wanted:
                self._compare_messages(queue, *wanted)

    def _lengths(self, queue: Queue) -> tuple[int, int]:
        """Return the ready and the unacked messages, without those whose delivery a fault keeps back."""
        return queue.ready_count, queue.unacked_count - len(self._log.vhost.broker.faults.delayed.get(queue, ()))

    def _compare_messages(self, queue: Queue, ready: int, unacked: int) -> None:
        """Compare without the messages that are older than the log. The messages of a very long queue are not read."""
        if queue.ready_count + queue.unacked_count > COMPARED_MAX:
            self.counts["uncompared_queues"] += 1
            return
        found = sum(map(self._is_known, queue.messages()))
        held = sum(map(self._is_known, self._unacked(queue)))
        if (found, held) != (ready, unacked):
            self._breach(
                f"queue '{queue.name}' has {found} ready and {held} unacked messages; by the history it has {ready} "
                f"and {unacked}"
            )

    def _is_known(self, message: Message) -> bool:
        return isinstance(message, NumberedMessage) and int(message.number) in self._known

    def _unacked(self, queue: Queue) -> Iterator[Message]:
        for connection in self._log.vhost.connections:
            for channel in connection.channels.values():
                for owner, _, _, message in channel.deliveries():
                    if owner is queue:
                        yield message


# The counts of a result, in its order.
COUNTS: Final = (
    *("published", "cut_off", "discarded", "unroutable", "confirmed", "nacked", "returned", "delivered"),
    *("redelivered", "acked", "taken", "requeued", "rejected", "expired", "dropped", "refused", "dead_lettered"),
    *("faults", "uncompared_queues"),
)


def history_lines(history: Mapping[str, Any]) -> list[str]:
    """Return the result of a check in sentences, breaches last."""
    one = history.__getitem__
    lines = [
        f"{one('published')} messages published: {one('confirmed')} confirmed, {one('nacked')} nacked, "
        f"{one('returned')} returned, {one('unroutable')} unroutable, {one('discarded')} discarded by faults; "
        f"{one('cut_off')} more were cut off.",
        f"{one('delivered')} deliveries, {one('redelivered')} of them again: {one('acked')} acked, {one('taken')} "
        f"taken without ack, {one('rejected')} rejected, {one('requeued')} came back.",
        f"Left: {one('expired')} expired, {one('dropped')} dropped, {one('refused')} refused, {one('dead_lettered')} "
        f"dead-lettered. Here: {one('ready')} ready, {one('unacked')} unacked, {one('delayed')} delayed.",
    ]
    if one("skipped"):
        lines.append(f"The log has dropped {one('skipped')} events: messages that it had first are left out.")
    if one("is_interrupted"):
        lines.append("The log has dropped events faster than they were followed: the queues were not compared.")
    if one("uncompared_queues"):
        lines.append(f"{one('uncompared_queues')} queues are too long to be compared.")
    if not one("breach_count") and (one("is_interrupted") or one("uncompared_queues")):
        return [*lines, "Nothing wrong was found in the rest."]
    if not one("breach_count"):
        return [*lines, "Each message is where its history says, and was delivered and confirmed as it should be."]
    more = one("breach_count") - len(one("breaches"))
    return [*lines, *(f"Wrong: {breach}." for breach in one("breaches")), *([f"Wrong: {more} more."] if more else [])]
