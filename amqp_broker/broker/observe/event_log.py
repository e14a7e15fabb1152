"""The event log of a vhost: the newest events of its messages, for tests to show, wait for and check.

The log is an observer of its vhost (`Tracing.observe`): a vhost without one pays nothing. Events have the names of the
trace (broker/observe/trace.py). The first of a message's life (publish, tx_publish, dead_letter, or a fault that came
before the broker took the message) holds the message; the others have its number. A fault of a connection has no
message. When the log is full, the oldest events are dropped
and counted.

The log is the history of each message: every change of its place is one event. `message_fate.py` reads the place from
the events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Message
from amqp_broker.broker.observe.waiting import Wait

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.observe.matching import Criteria
    from amqp_broker.broker.vhost import VHost


# Limits of the log of a vhost: events, and their estimated size.
EVENTS_MAX: Final = 10_000
BYTES_MAX: Final = 64 * 1024 * 1024
# Estimated size of an event without its message.
EVENT_BYTES: Final = 1024
DAY_MS: Final = 24 * 60 * 60 * 1000

# The events that begin a message's life, and hold the message.
_BIRTHS: Final = frozenset({"publish", "tx_publish", "dead_letter"})
_AT_QUEUES: Final = frozenset(
    {"refuse", "deliver", "ack", "nack", "requeue", "delay", "move", "expire", "drop", "dead_letter"}
)
# Facts that are attributes of every event.
_ATTRIBUTES: Final = frozenset(
    {
        *("exchange_name", "routing_keys", "properties", "node", "vhost", "message_number", "time_us"),
        *("routed_queues", "queue"),
    }
)


class Event:
    """An event of a message.

    `sequence` counts the events of all vhosts from 1. `number` is the message number, or 0 for messages older than the
    log. `queue` is the queue of the event (None at an exchange), and `queues` are those that the message was routed to.
    `more` has the facts that only some events have: connection, channel, user, redelivered, no_ack, requeue, ack,
    delivery_tag, reply_code, reply_text, reason, from_message_number, discarded_by, kept_from; of a fault action,
    rule_id, on, parameters and is_taken.
    """

    __slots__ = (
        *(
            "exchange",
            "is_in_order",
            "kind",
            "message",
            "more",
            "number",
            "queue",
            "queues",
            "routing_keys",
            "sequence",
        ),
        *("time_us", "topology_version", "vhost"),
    )

    def __init__(
        self, sequence: int, kind: str, name: str, vhost: VHost, facts: dict[str, Any], message: Message | None
    ) -> None:
        self.sequence = sequence
        self.kind = kind
        self.vhost = vhost.name
        self.topology_version = vhost.topology_version
        self.time_us: int = facts["time_us"]
        self.number: int = facts["message_number"]
        self.exchange: str = facts["exchange_name"]
        self.routing_keys: list[str] = facts["routing_keys"]
        self.queue: str | None = facts.get("queue", name if kind in _AT_QUEUES else None)
        # The default exchange also routes to names of missing queues.
        self.queues = [queue for queue in facts.get("routed_queues", ()) if queue in vhost.queues]
        self.more = {fact: value for fact, value in facts.items() if fact not in _ATTRIBUTES}
        self.message = message
        # True if a queue that keeps the order of arrival has made the delivery.
        queue = vhost.queues.get(name) if kind == "deliver" else None
        self.is_in_order = queue is not None and queue.type == "classic" and "x-max-priority" not in queue.arguments

    @property
    def is_cut_off(self) -> bool:
        """True for a fault that came before the broker took the message."""
        return self.more.get("is_taken") is False

    @property
    def may_be_first(self) -> bool:
        """True if a life can begin with the event, which has the message then."""
        return self.kind in _BIRTHS or self.is_cut_off

    @property
    def bytes(self) -> int:
        """The estimated size of the event with its message."""
        return EVENT_BYTES + (0 if self.message is None else len(self.message.content))


class EventLog:
    """The newest events of a vhost; `skipped` counts those that were dropped since the last `clear`.

    `held_bytes` is the estimated size of all events. The log began at `began_at_us` (the broker's time, since the
    epoch), after `published_before` messages of the vhost had been published.
    """

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
        self.held_bytes = 0
        self.began_at_us = vhost.broker.now_us()
        self.published_before = _publish_count(vhost)
        # The first events of messages that are in the log, by number.
        self._births: dict[int, Event] = {}

    def __call__(self, kind: str, name: str, facts: fields.Table, message: Message | None, body: bytes) -> None:
        """Add an event (an `Observer`)."""
        event = Event(next(self._sequence), kind, name, self.vhost, facts, message)
        if event.number in self._births:
            event.message = None
        elif event.number and event.may_be_first:
            self._births[event.number] = event
        self.events.append(event)
        self.held_bytes += event.bytes
        while len(self.events) > self.events_max or (self.held_bytes > self.bytes_max and len(self.events) > 1):
            self._skip()
        for wait in list(self.waits):
            wait.offer(event)

    def _skip(self) -> None:
        event = self.events.popleft()
        self.held_bytes -= event.bytes
        self.skipped += 1
        if self._births.get(event.number) is event:
            del self._births[event.number]

    def clear(self) -> int:
        """Discard all events; return their number."""
        forgotten = len(self.events)
        self.events.clear()
        self._births.clear()
        self.held_bytes = self.skipped = 0
        return forgotten

    @property
    def beginning(self) -> str:
        """A sentence about the messages that were published too early for the log; "" if there are none."""
        count = self.published_before
        if not count:
            return ""
        seconds, ms = divmod(self.began_at_us // 1000 % DAY_MS, 1000)
        at = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"
        messages = "1 message was" if count == 1 else f"{count} messages were"
        return f"the log began at {at} UTC of the broker's clock, and {messages} published before"

    def message_of(self, event: Event) -> Message | None:
        """Return the message of an event; None if its first event has been dropped."""
        birth = self._births.get(event.number)
        return event.message if birth is None else birth.message

    def has(self, number: int) -> bool:
        """Return whether the first event of a message is in the log."""
        return number in self._births

    def is_first(self, event: Event) -> bool:
        """Return whether a life begins with this event. It does, too, if the message is older than the log."""
        return event.may_be_first and self._births.get(event.number, event) is event

    # Queries

    def matching(self, criteria: Criteria, limit: int | None = None) -> list[Event]:
        """Return the events that match, oldest first, at most `limit`."""
        found = (event for event in self.events if criteria.match(event, self.message_of(event)))
        if limit is None:
            return list(found)
        return [event for event, _ in zip(found, range(limit), strict=False)]

    def count(self, criteria: Criteria) -> int:
        """Return the number of events that match."""
        return sum(criteria.match(event, self.message_of(event)) for event in self.events)

    def timeline(self, number: int) -> list[Event]:
        """Return all events of a message, of the messages it was dead-lettered from, and of its dead letters."""
        family = {number}
        # Numbers grow: one pass backwards finds the ancestors of a message, and one forwards all dead letters.
        for event in reversed(self.events):
            if event.kind == "dead_letter" and event.number in family:
                family.add(event.more["from_message_number"])
        # Messages that are older than the log have no number.
        family.discard(0)
        for event in self.events:
            if event.kind == "dead_letter" and event.more["from_message_number"] in family:
                family.add(event.number)
        return [event for event in self.events if event.number in family]


def _publish_count(vhost: VHost) -> int:
    """Return how many messages clients have published in a vhost."""
    for connection in vhost.connections:
        for channel in connection.channels.values():
            channel.collect()
    vhost.counts.collect()
    return vhost.counts.publishes.publish


class MessageWait(Wait):
    """Done when `count` events match, logged ones included; with `none`, done as soon as one matches.

    `found` has the first matches. With `none` the wait is met if it is not done at its deadline.
    """

    def __init__(self, log: EventLog, criteria: Criteria, count: int, *, none: bool = False) -> None:
        super().__init__()
        self.log = log
        self.criteria = criteria
        self.count = 1 if none else count
        self.none = none
        self.found = log.matching(criteria, self.count)
        if len(self.found) >= self.count:
            self.finish()

    def begin(self, on_done: Callable[[], None]) -> None:
        super().begin(on_done)
        if not self.is_done:
            self.log.waits.append(self)

    def end(self) -> None:
        super().end()
        if self in self.log.waits:
            self.log.waits.remove(self)

    def offer(self, event: Event) -> None:
        """Take a new event into account."""
        if not self.is_done and self.criteria.match(event, self.log.message_of(event)):
            self.found.append(event)
            if len(self.found) >= self.count:
                self.finish()

    @property
    def is_met(self) -> bool:
        """True if the condition of the wait holds."""
        return self.is_done is not self.none


class EventLogs:
    """The event logs of a broker's vhosts; with `is_on_for_all`, every new vhost gets one."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sequence = count(1)
        self._logs: dict[str, EventLog] = {}
        self.is_on_for_all = broker.settings.event_log

    def __iter__(self) -> Iterator[EventLog]:
        return iter(self._logs.values())

    def of(self, vhost: VHost) -> EventLog | None:
        """The event log of a vhost, or None if it has none."""
        return self._logs.get(vhost.name)

    def start(self, vhost: VHost, *, events_max: int = EVENTS_MAX, bytes_max: int = BYTES_MAX) -> EventLog:
        """Log the events of a vhost from now on; a log that exists keeps its events and gets these limits."""
        log = self._logs.get(vhost.name)
        if log is None:
            log = self._logs[vhost.name] = EventLog(vhost, self._sequence, events_max=events_max, bytes_max=bytes_max)
            vhost.tracing.observe(log)
        log.events_max, log.bytes_max = events_max, bytes_max
        return log

    def stop(self, vhost: VHost) -> None:
        """Stop the log of a vhost and discard its events."""
        log = self._logs.pop(vhost.name, None)
        if log is not None:
            vhost.tracing.stop_observing(log)

    def on_vhost_created(self, vhost: VHost) -> None:
        if self.is_on_for_all:
            self.start(vhost)

    def start_all(self) -> None:
        """Log the events of all vhosts, present and future."""
        self.is_on_for_all = True
        for vhost in self._broker.vhosts.values():
            if vhost.name not in self._logs:
                self.start(vhost)

    def stop_all(self) -> None:
        """Stop all logs and discard their events."""
        self.is_on_for_all = False
        for log in list(self._logs.values()):
            self.stop(log.vhost)

    def timeline(self, number: int) -> list[Event]:
        """Return all events of a message; [] if no log has it."""
        for log in self._logs.values():
            found = log.timeline(number)
            if found:
                return found
        return []
