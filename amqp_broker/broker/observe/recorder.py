"""The trace: all events of a vhost's selected messages, as records in a stream.

No event is a message of its own. They are collected in memory, and after 250 ms, or earlier if they are many, they
become a record (record.py), one message of the stream. A broker that is killed loses the events since its last record;
one that ends writes them.

Messages of the trace itself are not traced, not even after they were dead-lettered: a trace must not cause itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp.message import Address, Message, NumberedMessage, Properties
from amqp_broker.amqp.stamped_message import special_copy
from amqp_broker.broker.observe.message_trace import (
    TRACE_EXCHANGE,
    MessageTrace,
    death_count,
    is_own,
    user_name,
)
from amqp_broker.broker.observe.record import Record
from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.queues.dead_letter_reasons import EXPIRED, REJECTED
from amqp_broker.broker.queues.queue_trace import Run

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.clients.peer import Peer
    from amqp_broker.broker.lab.publish_faults import Discard
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.routing.route import Route
    from amqp_broker.broker.scheduling.timers import Timer
    from amqp_broker.broker.vhost import VHost

# The routing key of records.
RECORDS: Final = "records"
RECORD_MS: Final = 250

# Where the size of the body is in a content.
_BODY_SIZE_AT: Final = 11
_BODY_SIZE_END: Final = 19
# Stands for the number of a message that is not recorded.
_UNRECORDED: Final = -1


class MessageNumbers:
    """Numbers of a broker for its traced messages and for the rows of its traces.

    `count` is the last number of a message, `since_us` the time of the first one (µs since the epoch; 0 before).
    """

    __slots__ = ("_now_us", "count", "row_count", "since_us")

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self.count = 0
        self.since_us = 0
        self.row_count = 0

    def next(self) -> int:
        """Return a number for a message."""
        if not self.count:
            self.since_us = self._now_us()
        self.count += 1
        return self.count


class Recorder(MessageTrace):
    """Writes the events of the selected messages of a vhost to a stream queue.

    `written` is the number of events in the stream. When the queue is deleted, `on_gone` is called.
    """

    def __init__(self, vhost: VHost, queue: Queue, selection: Selection, on_gone: Callable[[], None]) -> None:
        self.vhost = vhost
        self.queue = queue
        self.selection = selection
        self.written = 0
        self._on_gone: Callable[[], None] = on_gone
        self._takes_all = selection.takes_all
        self._is_by_name = selection.is_by_name
        self._numbers = vhost.broker.message_numbers
        self._timer: Timer | None = None
        self._is_due = False
        # The time of this turn of the loop; 0 before its first event.
        self._time_us = 0
        # Rows before this index get no more events.
        self._growing_from = self._numbers.row_count + 1
        # The last run of publishes with a plain route, and where they come from; places of other routes from there.
        self._publishes: Run | None = None
        self._route: Route | None = None
        self._publisher: ClientChannel | None = None
        self._route_places: dict[Route, int] = {}
        # The record that is being filled.
        self._record = Record()

    @property
    def events(self) -> int:
        """Number of events, including those that are not written yet."""
        return self.written + self._record.events

    # Events of runs

    def publish(self, route: Route, channel: ClientChannel, content: bytes, is_persistent: bool) -> NumberedMessage:
        """Return a message with a number that is published with a plain route, and report it."""
        numbers, run = self._numbers, self._publishes
        number = numbers.count + 1
        if (
            run is not None
            and run.following == number
            and route is self._route
            and channel is self._publisher
            and run.index >= self._growing_from
        ):
            numbers.count = number
            run.following = number + 1
            message = NumberedMessage(route.address, content, channel.number, is_persistent, number)
            message.is_recorded = True
            self._record.contents.append(content)
            return message
        message = NumberedMessage(route.address, content, channel.number, is_persistent, numbers.next())
        if channel is self._publisher and route in self._route_places:
            message.is_recorded = True
            run = self._new_run(self._route_places[route], message, number, 0)
            self._record.publishes.append(run)
            self._record.contents.append(content)
            self._publishes, self._route = run, route
            return message
        self.published(channel.connection, channel.number, message, route.queues, route.mandatory)
        if message.is_recorded and self.selection.one_in == 1:
            run = self._record.publishes[-1]
            if channel is not self._publisher:
                self._route_places.clear()
            self._publishes, self._route, self._publisher = run, route, channel
            self._route_places[route] = run.place
        return message

    def delivered_to(self, consumer: Consumer, message: Message, redelivered: bool) -> None:
        run = consumer.delivery_run
        if (
            run is not None
            and type(message) is NumberedMessage
            and self._continues(run, message)
            and run.redelivered is redelivered
        ):
            run.take(message)
            assert run.sizes is not None
            run.sizes.append(message.content[_BODY_SIZE_AT:_BODY_SIZE_END])
            return
        self.delivered(consumer.queue, message, redelivered, consumer.connection, consumer.number, consumer.no_ack)
        if type(message) is NumberedMessage and message.is_recorded:
            consumer.delivery_run = self._record.others[-1]

    def acked_by(self, consumer: Consumer, message: Message) -> None:
        run = consumer.ack_run
        if run is not None and type(message) is NumberedMessage and self._continues(run, message):
            run.take(message)
            return
        self.acked(consumer.queue, message, consumer.connection, consumer.number)
        if type(message) is NumberedMessage and message.is_recorded:
            consumer.ack_run = self._record.others[-1]

    def confirmed_all(self, connection: Peer, channel: int, messages: dict[int, Message]) -> None:
        others = self._record.others
        runs: dict[Address, Run] = {}
        run: Run | None = None
        for tag, message in messages.items():
            if run is None or run.address is not message.address:
                run = runs.get(message.address)
            if run is not None and type(message) is NumberedMessage and self._continues(run, message):
                run.take(message)
                assert run.tags is not None
                run.tags.append(tag)
                continue
            before = len(others)
            self.confirmed(connection, channel, message, tag, True)
            if len(others) > before:
                run = runs[message.address] = others[-1]
                run.tags = [tag]

    def _continues(self, run: Run, message: NumberedMessage) -> bool:
        """Return whether an event of a message may join a run of this turn, behind its own last row.

        Subclasses of NumberedMessage carry more, and a queue may deliver copies, whose rows it does not know.
        """
        return (
            message.is_recorded
            and run.index >= self._growing_from
            and run.index >= message.row
            and run.address is message.address
        )

    # Events

    def numbered(self, message: Message, origin: Message | None = None) -> Message:
        if origin is not None and is_own(origin):
            return message
        number = self._numbers.next()
        if type(message) is Message:
            return NumberedMessage(message.address, message.content, message.channel, message.is_persistent, number)
        special = special_copy(message)
        special.number = number
        special.is_recorded = False
        return special

    def published(
        self,
        connection: Peer,
        channel: int,
        message: Message,
        queues: Iterable[Queue],
        mandatory: bool = False,
        discard: Discard | None = None,
    ) -> None:
        if not isinstance(message, NumberedMessage):
            return
        targets = tuple(queues)
        if not self._takes_all and not self._selects(message, targets):
            return
        message.is_recorded = True
        key = ("publish", targets, connection, channel, mandatory)
        place = self._record.places.get(key)
        if place is None:
            facts = {"routed_queues": _names(targets), "mandatory": mandatory, **_client(connection, channel)}
            place = self._record.new_place(key, facts)
        self._record.contents.append(message.content)
        self._record.publishes.append(self._new_run(place, message, message.number, 0))

    def returned(self, connection: Peer, channel: int, message: Message, code: int, text: str) -> None:
        facts = {"reply_code": code, "reply_text": text}
        self._report(("return", connection, channel, code, text), message, facts, connection, channel)

    def confirmed(self, connection: Peer, channel: int, message: Message, tag: int, is_ack: bool) -> None:
        key = ("confirm", connection, channel, is_ack)
        self._report(key, message, {"is_ack": is_ack}, connection, channel, tag)

    def delivered(
        self, queue: Queue, message: Message, redelivered: bool, connection: Peer, channel: int, no_ack: bool
    ) -> None:
        number = self._number(message)
        if number == _UNRECORDED:
            return
        key = ("deliver", queue, connection, channel, redelivered, no_ack)
        place = self._record.places.get(key)
        if place is None:
            facts = {"queue": queue.name, "redelivered": redelivered, "no_ack": no_ack}
            place = self._record.new_place(key, facts | _client(connection, channel))
        run = self._add(place, message, number, 0)
        run.redelivered = redelivered
        run.sizes = [message.content[_BODY_SIZE_AT:_BODY_SIZE_END]]

    def acked(self, queue: Queue, message: Message, connection: Peer, channel: int) -> None:
        number = self._number(message)
        if number == _UNRECORDED:
            return
        key = ("ack", queue, connection, channel)
        place = self._record.places.get(key)
        if place is None:
            place = self._record.new_place(key, {"queue": queue.name} | _client(connection, channel))
        self._add(place, message, number, 0)

    def nacked(self, queue: Queue, message: Message, requeue: bool, connection: Peer, channel: int) -> None:
        facts = {"queue": queue.name, "requeue": requeue}
        self._report(("nack", queue, connection, channel, requeue), message, facts, connection, channel)

    def given_up(self, queue: Queue, message: Message, reason: str, *, is_refused: bool = False) -> None:
        if is_refused and queue.settings.overflow == "reject-publish":
            # It has no row: its publisher got a nack, if it asked for confirms.
            return
        if reason == EXPIRED:
            self._report(("expire", queue), message, {"queue": queue.name})
        elif reason != REJECTED:
            self._report(("drop", queue, reason), message, {"queue": queue.name, "reason": reason})

    def dead_lettered(self, queue: Queue, message: Message, dead: Message, reason: str, targets: list[Queue]) -> None:
        if not isinstance(dead, NumberedMessage) or not dead.number:
            return
        origin = self._number(message)
        if origin == _UNRECORDED and not (self._is_by_name and self._selects(dead, targets)):
            return
        dead.is_recorded = True
        deaths = death_count(dead)
        key = ("dead_letter", queue, reason, tuple(targets), deaths)
        facts = {"queue": queue.name, "reason": reason, "routed_queues": _names(targets), "death_count": deaths}
        self._report(key, dead, facts, value=message.number if isinstance(message, NumberedMessage) else 0)

    # The record

    def _selects(self, message: NumberedMessage, queues: Iterable[Queue]) -> bool:
        selection = self.selection
        if self._is_by_name and not selection.matches(message.exchange, [queue.name for queue in queues]):
            return False
        return selection.samples(message.number)

    def _number(self, message: Message) -> int:
        """Return the number of a message, 0 for one that is older than the trace, or `_UNRECORDED`."""
        if isinstance(message, NumberedMessage) and message.number:
            return message.number if message.is_recorded or self._takes_all else _UNRECORDED
        return 0 if self._takes_all and not is_own(message) else _UNRECORDED

    def _report(
        self,
        key: tuple[Any, ...],
        message: Message,
        facts: dict[str, Any],
        connection: Peer | None = None,
        channel: int = 0,
        value: int = 0,
    ) -> None:
        number = self._number(message)
        if number == _UNRECORDED:
            return
        place = self._record.places.get(key)
        if place is None:
            place = self._record.new_place(key, facts if connection is None else facts | _client(connection, channel))
        self._add(place, message, number, value)

    def _new_run(self, place: int, message: Message, number: int, value: int) -> Run:
        """Return a run of an event of a message."""
        if not self._time_us:
            self._begin_turn()
        numbers = self._numbers
        numbers.row_count += 1
        return Run(numbers.row_count, self._time_us, place, message.address, number, value)

    def _add(self, place: int, message: Message, number: int, value: int) -> Run:
        """Begin a row with an event of a message that is no publish, and return it."""
        run = self._new_run(place, message, number, value)
        if type(message) is NumberedMessage:
            message.row = run.index
        else:
            # It may be a copy of another one, which does not learn of this row. So nothing more precedes it.
            self._growing_from = run.index
        self._record.others.append(run)
        return run

    def _begin_turn(self) -> None:
        """Read the clock, and have the record written in time."""
        broker = self.vhost.broker
        self._time_us = broker.now_us()
        broker.turn_ends.append(self._end_turn)
        if self._timer is None:
            self._timer = broker.real_timers.at(broker.real_now() + RECORD_MS, self._on_time)

    def _end_turn(self) -> None:
        """Let no run grow any more: what follows has another time. Have a large record written."""
        self._time_us = 0
        self._growing_from = self._numbers.row_count + 1
        self._record.end_turn()
        if not self._record.has_room() and not self._is_due:
            # Before the next turn.
            self._is_due = True
            self.vhost.broker.undrained.append(self.flush)

    def _on_time(self, now: int) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Write the events so far."""
        self._is_due = False
        self._time_us = 0
        self._growing_from = self._numbers.row_count + 1
        self._publishes = self._route = self._publisher = None
        self._route_places.clear()
        record, self._record = self._record, Record()
        if self.queue.is_deleted:
            self._on_gone()
        elif not record.is_empty:
            self.written += record.events
            since_us = self._numbers.since_us
            facts = {"node": self.vhost.broker.node, "vhost": self.vhost.name, "numbered_since_us": since_us}
            body = record.encode(facts)
            record.release()
            self.queue.offer(Message.build(Address(TRACE_EXCHANGE, RECORDS), Properties(), body))

    def close(self) -> None:
        """Write the last record."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._record.is_empty and not self.queue.is_deleted:
            self.flush()
        # A flush may still be due, when another recorder has taken over.
        self._on_gone = lambda: None


def _client(connection: Peer, channel: int) -> dict[str, Any]:
    facts = {"connection": connection.name, "channel": channel, "user": user_name(connection)}
    if connection.given_name:
        facts["connection_name"] = connection.given_name
    return facts


def _names(queues: Iterable[Queue]) -> list[str]:
    return sorted([queue.name for queue in queues])
