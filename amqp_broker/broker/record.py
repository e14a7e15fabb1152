"""The record of a vhost: what happened to its messages, the newest of it, for whoever wants to look or to assert.

It is fed by a tap (`VHost.tap`), so that a vhost without a record pays nothing for it. An event has the trace's word
for what happened (broker/trace.py): publish, deliver, ack, nack, confirm, return, expire, drop, dead_letter. Those that
begin a message's life, publish and dead_letter, hold the message; the others know it by its number. What does not fit
in is dropped, oldest first, and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from amqp_broker import fields
from amqp_broker.broker.waiting import Wait
from amqp_broker.message import Message

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.matching import Criteria
    from amqp_broker.broker.vhost import VHost

# How much of what happened is kept, per vhost: events, and octets that they are reckoned at.
EVENTS_MAX: Final = 10_000
BYTES_MAX: Final = 64 * 1024 * 1024
# What an event costs beside the message that it holds.
EVENT_BYTES: Final = 1024

# Where a message's life begins; the message is in the event.
_BIRTHS: Final = frozenset({"publish", "dead_letter"})
_AT_QUEUES: Final = frozenset({"deliver", "ack", "nack", "expire", "drop", "dead_letter"})
# What every event tells in fields of its own.
_TOLD: Final = frozenset(
    {"exchange_name", "routing_keys", "properties", "node", "vhost", "message_number", "time_us", "routed_queues"}
)


class Event:
    """Something that happened to a message.

    `sequence` is its place among the events of all vhosts, from 1; `number` the message's, or 0 if that is older than
    the record. `queue` is where it happened (None at an exchange), `queues` where the message was routed to. `more` are
    the facts that only some events have: connection, channel, user, redelivered, no_ack, requeue, ack, delivery_tag,
    reply_code, reply_text, reason, from_message_number.
    """

    __slots__ = (
        *("exchange", "kind", "message", "more", "number", "queue", "queues", "routing_keys", "sequence"),
        *("time_us", "vhost"),
    )

    def __init__(self, sequence: int, kind: str, name: str, vhost: VHost, told: fields.Table, message: Message) -> None:
        facts: dict[str, Any] = told
        self.sequence = sequence
        self.kind = kind
        self.vhost = vhost.name
        self.time_us: int = facts["time_us"]
        self.number: int = facts["message_number"]
        self.exchange: str = facts["exchange_name"]
        self.routing_keys: list[str] = facts["routing_keys"]
        self.queue = name if kind in _AT_QUEUES else None
        # The default exchange is asked for queues that are not there, too.
        self.queues = [queue for queue in facts.get("routed_queues", ()) if queue in vhost.queues]
        self.more = {fact: value for fact, value in facts.items() if fact not in _TOLD}
        self.message: Message | None = message

    @property
    def bytes(self) -> int:
        """What the event is reckoned at."""
        return EVENT_BYTES + (0 if self.message is None else len(self.message.content))


class Record:
    """The newest events of a vhost; `skipped` are those that did not fit in or were there before a `clear`."""

    def __init__(
        self, vhost: VHost, sequence: Iterator[int], *, events_max: int = EVENTS_MAX, bytes_max: int = BYTES_MAX
    ) -> None:
        self.vhost = vhost
        self.events_max = events_max
        self.bytes_max = bytes_max
        self.events: deque[Event] = deque()
        self.skipped = 0
        self.waits: list[MessageWait] = []
        self._sequence = sequence
        self._bytes = 0
        # The messages whose beginning is in here, by number.
        self._messages: dict[int, Message] = {}

    def __call__(self, kind: str, name: str, told: fields.Table, message: Message, body: bytes) -> None:
        """Something has happened (a `Tap`)."""
        event = Event(next(self._sequence), kind, name, self.vhost, told, message)
        if kind in _BIRTHS:
            self._messages[event.number] = message
        elif event.number in self._messages:
            event.message = None
        self.events.append(event)
        self._bytes += event.bytes
        while len(self.events) > self.events_max or (self._bytes > self.bytes_max and len(self.events) > 1):
            self._skip()
        for wait in list(self.waits):
            wait.offer(event)

    def _skip(self) -> None:
        event = self.events.popleft()
        self._bytes -= event.bytes
        self.skipped += 1
        if event.kind in _BIRTHS:
            self._messages.pop(event.number, None)

    def clear(self) -> int:
        """Forget all events; returns how many that were."""
        forgotten = len(self.events)
        self.events.clear()
        self._messages.clear()
        self._bytes = self.skipped = 0
        return forgotten

    def message_of(self, event: Event) -> Message | None:
        """The message of an event; None if its beginning is no longer here."""
        return event.message or self._messages.get(event.number)

    # Questions

    def matching(self, criteria: Criteria, limit: int | None = None) -> list[Event]:
        """The events that match, oldest first, `limit` of them at most."""
        found = (event for event in self.events if criteria.match(event, self.message_of(event)))
        if limit is None:
            return list(found)
        return [event for event, _ in zip(found, range(limit), strict=False)]

    def count(self, criteria: Criteria) -> int:
        """How many events match."""
        return sum(criteria.match(event, self.message_of(event)) for event in self.events)

    def timeline(self, number: int) -> list[Event]:
        """All that happened to a message: as what it was published, and as what it became whenever it died."""
        family = {number}
        # Numbers grow, so one look backwards finds what it was before, and one forwards what became of all these.
        for event in reversed(self.events):
            if event.kind == "dead_letter" and event.number in family:
                family.add(event.more["from_message_number"])
        # What is older than the record has no number.
        family.discard(0)
        for event in self.events:
            if event.kind == "dead_letter" and event.more["from_message_number"] in family:
                family.add(event.number)
        return [event for event in self.events if event.number in family]


class MessageWait(Wait):
    """Done when `count` events match (those that are there already count), or with `none` as soon as one does.

    `found` has the first of them. With `none`, that it is not done at its deadline is the good outcome.
    """

    def __init__(self, record: Record, criteria: Criteria, count: int, *, none: bool = False) -> None:
        super().__init__()
        self.record = record
        self.criteria = criteria
        self.count = 1 if none else count
        self.none = none
        self.found = record.matching(criteria, self.count)
        if len(self.found) >= self.count:
            self.finish()

    def begin(self, on_done: Any) -> None:
        super().begin(on_done)
        if not self.is_done:
            self.record.waits.append(self)

    def end(self) -> None:
        super().end()
        if self in self.record.waits:
            self.record.waits.remove(self)

    def offer(self, event: Event) -> None:
        """Something has happened."""
        if not self.is_done and self.criteria.match(event, self.record.message_of(event)):
            self.found.append(event)
            if len(self.found) >= self.count:
                self.finish()

    @property
    def is_met(self) -> bool:
        """Whether what was waited for holds."""
        return self.is_done is not self.none


class Records:
    """The records of a broker by vhost, and whether vhosts that come get one, too."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sequence = count(1)
        self._records: dict[str, Record] = {}
        self.is_on_for_all = broker.config.record

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def of(self, vhost: VHost) -> Record | None:
        """The record of a vhost, or None if there is none."""
        return self._records.get(vhost.name)

    def start(self, vhost: VHost, *, events_max: int = EVENTS_MAX, bytes_max: int = BYTES_MAX) -> Record:
        """Record a vhost from now on; what is recorded already stays, within other limits if such are given."""
        record = self._records.get(vhost.name)
        if record is None:
            record = self._records[vhost.name] = Record(
                vhost, self._sequence, events_max=events_max, bytes_max=bytes_max
            )
            vhost.tap(record)
        record.events_max, record.bytes_max = events_max, bytes_max
        return record

    def stop(self, vhost: VHost) -> None:
        """Record a vhost no more, and forget what was recorded."""
        record = self._records.pop(vhost.name, None)
        if record is not None:
            vhost.untap(record)

    def on_vhost_created(self, vhost: VHost) -> None:
        if self.is_on_for_all:
            self.start(vhost)

    def start_all(self) -> None:
        """Record all vhosts, and those that come."""
        self.is_on_for_all = True
        for vhost in self._broker.vhosts.values():
            if vhost.name not in self._records:
                self.start(vhost)

    def stop_all(self) -> None:
        """Record nothing any more."""
        self.is_on_for_all = False
        for record in list(self._records.values()):
            self.stop(record.vhost)

    def timeline(self, number: int) -> list[Event]:
        """All that happened to a message; [] if no record knows it."""
        for record in self._records.values():
            found = record.timeline(number)
            if found:
                return found
        return []
