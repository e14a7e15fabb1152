"""The trace: all events of a vhost's selected messages, as records in a stream.

No event is a message of its own, or encoded twice. An event is a row of fixed size, which refers to two tables: its
*place* (kind, queue, connection, user …), and the address of its message. Only a publish has more: the frames of its
content as they arrived. Rows, tables and contents are collected in memory. After 250 ms, or earlier if they are many,
they become one message of the stream, a *record*. A broker that is killed loses the events since its last record; one
that ends writes them. `amqp_broker/pipeline/trace_records.py` decodes records.

    octets         content
    4              "ATR1"
    4              size of the head
    4              number of rows
    …              head, in JSON: `node`, `vhost`, `numbered_since_us`, `places`, `addresses` (exchange, routing key)
    36 per row     8 time (µs since the epoch), 8 message number, 4 place, 4 address, 4 size of the content, 8 value
    …              contents of the publishes in the order of the rows: header frame and body frames

Numbers are big-endian, and unsigned except for the time. The value is the size of the body for a publish and a
delivery, the publish number for a confirm, and the number of the original message for a dead letter.

A message has one number in all its queues, or 0 if it is older than the trace. Numbers start again with each broker;
`numbered_since_us`, the time of the first number, distinguishes the runs. These are the kinds of events, and what a
place has besides `event`:

    publish       routed_queues, mandatory, connection, channel, user
    confirm       is_ack, connection, channel, user
    return        reply_code, reply_text, connection, channel, user
    deliver       queue, redelivered, no_ack, connection, channel, user
    ack, nack     queue, connection, channel, user; requeue of a nack
    expire        queue
    drop          queue; reason is maxlen, delivery_limit, purged or queue_deleted
    dead_letter   queue, reason, routed_queues, death_count: its deaths in this queue for this reason

Messages of the trace itself are not traced, not even after they were dead-lettered: a trace must not cause itself.
"""

from __future__ import annotations

import json
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from mypy_extensions import mypyc_attr

from amqp_broker.amqp.message import Address, Message, NumberedMessage, Properties
from amqp_broker.amqp.stamped_message import special_copy
from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.queues.dead_letter_reasons import EXPIRED, REJECTED

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.broker.admin.access import User
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.timers import Timer, Timers

TRACE_EXCHANGE: Final = "amq.rabbitmq.trace"
# The routing key of records.
RECORDS: Final = "records"
# Limits of a record, which the events of one turn of the loop may exceed.
CONTENT_BYTES_MAX: Final = 128 * 1024
ROWS_MAX: Final = 4096
RECORD_MS: Final = 250

MAGIC: Final = b"ATR1"
START: Final = struct.Struct(">4sII")
ROW: Final = struct.Struct(">qQIII8s")
VALUE: Final = struct.Struct(">Q")
NO_VALUE: Final = bytes(VALUE.size)
_pack_row: Final[Callable[..., bytes]] = ROW.pack
# Where the size of the body is in a content.
_BODY_SIZE_AT: Final = 11
_BODY_SIZE_END: Final = 19
# Not the number of a message: it is not recorded.
_UNRECORDED: Final = -1


class RecordingBroker(Protocol):
    """The broker of recorded messages."""

    node: str
    numbered_since_us: int
    now_us: Callable[[], int]
    real_now: Callable[[], int]
    real_timers: Timers
    undrained: list[Callable[[], None]]

    def next_message_number(self) -> int:
        """Return a number for a traced message."""
        ...


class RecordingVHost(Protocol):
    """The vhost of recorded messages."""

    name: str

    @property
    def broker(self) -> RecordingBroker: ...


class TracedClient(Protocol):
    """The connection of a client that does something with a message."""

    @property
    def name(self) -> str: ...

    @property
    def user(self) -> User | None: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class MessageTrace:
    """Receives the events of a vhost's messages, in the order of a message's life.

    `takes_plain` says that a publish with a plain route needs nothing but a number and `published`.
    """

    def __init__(self) -> None:
        self.takes_plain = False

    @abstractmethod
    def numbered(self, message: Message, origin: Message | None = None) -> Message:
        """Return the message with a number if events need one; `origin` is the message it was dead-lettered from."""

    @abstractmethod
    def published(
        self, connection: TracedClient, channel: int, message: Message, queues: Iterable[Queue], mandatory: bool = False
    ) -> None:
        """Report a message that is about to go to its queues."""

    @abstractmethod
    def returned(self, connection: TracedClient, channel: int, message: Message, code: int, text: str) -> None:
        """Report a mandatory message without a queue."""

    @abstractmethod
    def confirmed(self, connection: TracedClient, channel: int, message: Message, tag: int, is_ack: bool) -> None:
        """Report the confirm of a message, an ack or a nack."""

    @abstractmethod
    def delivered(
        self, queue: Queue, message: Message, redelivered: bool, connection: TracedClient, channel: int, no_ack: bool
    ) -> None:
        """Report a message that was sent to a consumer or in answer to basic.get."""

    @abstractmethod
    def acked(self, queue: Queue, message: Message, connection: TracedClient, channel: int) -> None:
        """Report a message that was settled."""

    @abstractmethod
    def nacked(self, queue: Queue, message: Message, requeue: bool, connection: TracedClient, channel: int) -> None:
        """Report a message that was rejected, or requeued by basic.recover."""

    @abstractmethod
    def given_up(self, queue: Queue, message: Message, reason: str) -> None:
        """Report a message that a queue has expired or dropped."""

    @abstractmethod
    def dead_lettered(self, queue: Queue, message: Message, dead: Message, reason: str, targets: list[Queue]) -> None:
        """Report `message`, which is about to go to its next queues as `dead`."""

    def faulted(self, connection: str, facts: fields.Table, message: Message | None, queue: str | None) -> None:
        """Report a fault that has hit a message, at a queue or at its exchange, or (None) a connection."""


class Recorder(MessageTrace):
    """Writes the events of the selected messages of a vhost to a stream queue.

    `written` is the number of events in the stream. When the queue is deleted, `on_gone` is called.
    """

    def __init__(self, vhost: RecordingVHost, queue: Queue, selection: Selection, on_gone: Callable[[], None]) -> None:
        self.takes_plain = True
        self.vhost = vhost
        self.queue = queue
        self.selection = selection
        self.written = 0
        self._on_gone: Callable[[], None] = on_gone
        self._takes_all = selection.takes_all
        self._is_by_name = selection.is_by_name
        self._now_us = vhost.broker.now_us
        self._timer: Timer | None = None
        self._is_due = False
        # The record that is being filled. Places and addresses are found by what they are made of.
        self._rows: list[bytes] = []
        self._contents: list[bytes] = []
        self._content_bytes = 0
        self._places: dict[tuple[Any, ...], int] = {}
        self._place_table: list[dict[str, Any]] = []
        self._addresses: dict[Address, int] = {}
        self._address_table: list[tuple[str, str]] = []

    @property
    def events(self) -> int:
        """Number of events, including those that are not written yet."""
        return self.written + len(self._rows)

    # Events

    def numbered(self, message: Message, origin: Message | None = None) -> Message:
        if origin is not None and is_own(origin):
            return message
        number = self.vhost.broker.next_message_number()
        if type(message) is Message:
            return NumberedMessage(message.address, message.content, message.channel, message.is_persistent, number)
        special = special_copy(message)
        special.number = number
        special.is_recorded = False
        return special

    def published(
        self, connection: TracedClient, channel: int, message: Message, queues: Iterable[Queue], mandatory: bool = False
    ) -> None:
        if not isinstance(message, NumberedMessage):
            return
        targets = tuple(queues)
        if not self._takes_all and not self._selects(message, targets):
            return
        message.is_recorded = True
        key = ("publish", targets, connection, channel, mandatory)
        place = self._places.get(key)
        if place is None:
            facts = {"routed_queues": _names(targets), "mandatory": mandatory, **_client(connection, channel)}
            place = self._new_place(key, facts)
        content = message.content
        self._contents.append(content)
        self._content_bytes += len(content)
        if self._content_bytes >= CONTENT_BYTES_MAX:
            self._flush_soon()
        self._add(place, message.number, message.address, len(content), content[_BODY_SIZE_AT:_BODY_SIZE_END])

    def returned(self, connection: TracedClient, channel: int, message: Message, code: int, text: str) -> None:
        facts = {"reply_code": code, "reply_text": text}
        self._report(("return", connection, channel, code, text), message, facts, connection, channel)

    def confirmed(self, connection: TracedClient, channel: int, message: Message, tag: int, is_ack: bool) -> None:
        key = ("confirm", connection, channel, is_ack)
        self._report(key, message, {"is_ack": is_ack}, connection, channel, VALUE.pack(tag))

    def delivered(
        self, queue: Queue, message: Message, redelivered: bool, connection: TracedClient, channel: int, no_ack: bool
    ) -> None:
        number = self._number(message)
        if number == _UNRECORDED:
            return
        key = ("deliver", queue, connection, channel, redelivered, no_ack)
        place = self._places.get(key)
        if place is None:
            facts = {"queue": queue.name, "redelivered": redelivered, "no_ack": no_ack}
            place = self._new_place(key, facts | _client(connection, channel))
        self._add(place, number, message.address, 0, message.content[_BODY_SIZE_AT:_BODY_SIZE_END])

    def acked(self, queue: Queue, message: Message, connection: TracedClient, channel: int) -> None:
        number = self._number(message)
        if number == _UNRECORDED:
            return
        key = ("ack", queue, connection, channel)
        place = self._places.get(key)
        if place is None:
            place = self._new_place(key, {"queue": queue.name} | _client(connection, channel))
        self._add(place, number, message.address, 0, NO_VALUE)

    def nacked(self, queue: Queue, message: Message, requeue: bool, connection: TracedClient, channel: int) -> None:
        facts = {"queue": queue.name, "requeue": requeue}
        self._report(("nack", queue, connection, channel, requeue), message, facts, connection, channel)

    def given_up(self, queue: Queue, message: Message, reason: str) -> None:
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
        value = VALUE.pack(message.number) if isinstance(message, NumberedMessage) else NO_VALUE
        self._report(key, dead, facts, value=value)

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
        connection: TracedClient | None = None,
        channel: int = 0,
        value: bytes = NO_VALUE,
    ) -> None:
        number = self._number(message)
        if number == _UNRECORDED:
            return
        place = self._places.get(key)
        if place is None:
            place = self._new_place(key, facts if connection is None else facts | _client(connection, channel))
        self._add(place, number, message.address, 0, value)

    def _new_place(self, key: tuple[Any, ...], facts: dict[str, Any]) -> int:
        place = self._places[key] = len(self._place_table)
        self._place_table.append({"event": key[0], **facts})
        return place

    def _new_address(self, address: Address) -> int:
        index = self._addresses[address] = len(self._address_table)
        self._address_table.append((address.exchange, address.routing_key))
        return index

    def _add(self, place: int, number: int, address: Address, size: int, value: bytes) -> None:
        at = self._addresses.get(address)
        if at is None:
            at = self._new_address(address)
        rows = self._rows
        if not rows:
            self._begin()
        elif len(rows) == ROWS_MAX:
            self._flush_soon()
        rows.append(_pack_row(self._now_us(), number, place, at, size, value))

    def _begin(self) -> None:
        """Have the record written in time."""
        if self._timer is None:
            broker = self.vhost.broker
            self._timer = broker.real_timers.at(broker.real_now() + RECORD_MS, self._on_time)

    def _flush_soon(self) -> None:
        """Have the record written before the next turn of the loop, after the current read."""
        if not self._is_due:
            self._is_due = True
            self.vhost.broker.undrained.append(self.flush)

    def _on_time(self, now: int) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Write the events so far."""
        self._is_due = False
        rows, contents, head = self._rows, self._contents, self._head()
        self._rows, self._contents, self._content_bytes = [], [], 0
        self._places, self._place_table = {}, []
        self._addresses, self._address_table = {}, []
        if self.queue.is_deleted:
            self._on_gone()
        elif rows:
            self.written += len(rows)
            body = b"".join((START.pack(MAGIC, len(head), len(rows)), head, *rows, *contents))
            self.queue.accept(Message.build(Address(TRACE_EXCHANGE, RECORDS), Properties(), body))

    def _head(self) -> bytes:
        broker = self.vhost.broker
        head = {
            "node": broker.node,
            "vhost": self.vhost.name,
            "numbered_since_us": broker.numbered_since_us,
            "places": self._place_table,
            "addresses": self._address_table,
        }
        return json.dumps(head, separators=(",", ":")).encode()

    def close(self) -> None:
        """Write the last record."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._rows and not self.queue.is_deleted:
            self.flush()
        # A flush may still be due, when another recorder has taken over.
        self._on_gone = lambda: None


def is_own(message: Message, properties: Properties | None = None) -> bool:
    """Return True for a message of the trace, dead-lettered ones included."""
    if message.exchange == TRACE_EXCHANGE:
        return True
    if isinstance(message, NumberedMessage) and message.number:
        return False
    headers = (properties or message.properties()).headers or {}
    return headers.get("x-first-death-exchange") == TRACE_EXCHANGE


def death_count(dead: Message) -> int:
    """Return the number of deaths with the latest queue and reason, the first entry of x-death."""
    deaths = (dead.properties().headers or {}).get("x-death")
    return int(deaths[0]["count"]) if isinstance(deaths, list) else 1


def user_name(connection: TracedClient) -> str:
    return connection.user.name if connection.user is not None else ""


def _client(connection: TracedClient, channel: int) -> dict[str, Any]:
    return {"connection": connection.name, "channel": channel, "user": user_name(connection)}


def _names(queues: Iterable[Queue]) -> list[str]:
    return sorted([queue.name for queue in queues])
