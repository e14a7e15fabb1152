"""A record: the events of a trace since the last one, as a message of a stream.

No event is encoded twice. Events of one kind and place that happen in one turn of the loop to messages with one address
are a *run*: a row of fixed size, however many they are. A row refers to two tables: its *place* (kind, queue,
connection, user …), and the address of its messages. Only publishes have more: the frames of their contents as they
arrived. `amqp_broker/pipeline/trace_records.py` decodes records.

    octets         content
    4              "ATR2"
    4              size of the head
    4              number of rows
    4              number of events
    …              head, in JSON: `node`, `vhost`, `numbered_since_us`, `places`, `addresses` (exchange, routing key)
    36 per row     8 time (µs since the epoch), 8 first message number, 8 value, 4 place, 4 address, 4 number of events
    …              lists of the rows, in their order: 8 octets per event
    …              contents of the publishes in the order of their events: header frame and body frames

Numbers are big-endian, and unsigned except for the time. The messages of a row have consecutive numbers from the first
on, or, if that is 2⁶⁴-1, those of a list. The value is the size of each body of a delivery, the first publish number of
consecutive ones of a confirm, or the number of the original message of a dead letter. If it is 2⁶⁴-1, the sizes or
publish numbers are a list, too, which follows the other one.

The rows of a turn have the order in which they begin, but those of publishes come first, in order. A message has no
event in a row that precedes the row of its last event, so its events are in order. All events of a turn have the same
time.

A message has one number in all its queues, or 0 if it is older than the trace. Numbers start again with each broker;
`numbered_since_us`, the time of the first number, distinguishes the runs of a broker. These are the kinds of events,
and what a place has besides `event`:

    publish       routed_queues, mandatory, connection, channel, user
    confirm       is_ack, connection, channel, user
    return        reply_code, reply_text, connection, channel, user
    deliver       queue, redelivered, no_ack, connection, channel, user
    ack, nack     queue, connection, channel, user; requeue of a nack
    expire        queue
    drop          queue; reason is maxlen, delivery_limit, purged or queue_deleted
    dead_letter   queue, reason, routed_queues, death_count: its deaths in this queue for this reason
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Address
    from amqp_broker.broker.queues.queue_trace import Run

# Limits of a record, which the events of one turn of the loop may exceed.
CONTENT_BYTES_MAX: Final = 128 * 1024
EVENTS_MAX: Final = 16 * 1024

MAGIC: Final = b"ATR2"
START: Final = struct.Struct(">4sIII")
ROW: Final = struct.Struct(">qQQIII")
# Instead of a first number or a value: the row has a list.
IN_LIST: Final = (1 << 64) - 1


class Record:
    """Rows, the places that they refer to, and the contents of their publishes.

    `rows` are those of former turns, `publishes` and `others` those of the current turn, which grow. A place is found
    by what it is made of; the kind of its events comes first.
    """

    __slots__ = (
        "_content_bytes",
        "_counted_contents",
        "_events",
        "_table",
        "contents",
        "others",
        "places",
        "publishes",
        "rows",
    )

    def __init__(self) -> None:
        self.rows: list[Run] = []
        self.publishes: list[Run] = []
        self.others: list[Run] = []
        self.contents: list[bytes] = []
        self.places: dict[tuple[Any, ...], int] = {}
        self._table: list[dict[str, Any]] = []
        # Sums over the rows, and the number of contents that are counted.
        self._events = self._content_bytes = self._counted_contents = 0

    def new_place(self, key: tuple[Any, ...], facts: dict[str, Any]) -> int:
        """Add a place, and return its index."""
        place = self.places[key] = len(self._table)
        self._table.append({"event": key[0], **facts})
        return place

    @property
    def events(self) -> int:
        """Number of events."""
        return self._events + sum([run.count for run in self.publishes]) + sum([run.count for run in self.others])

    @property
    def is_empty(self) -> bool:
        return not (self.rows or self.publishes or self.others)

    def end_turn(self) -> None:
        """End the current turn: its rows grow no more."""
        self._events = self.events
        self.rows += self.publishes
        self.rows += self.others
        self.publishes, self.others = [], []
        self._content_bytes += sum(map(len, self.contents[self._counted_contents :]))
        self._counted_contents = len(self.contents)

    def has_room(self) -> bool:
        """Return whether the turns that have ended have not reached the limits."""
        return self._events < EVENTS_MAX and self._content_bytes < CONTENT_BYTES_MAX

    def release(self) -> None:
        """Free the lists of all rows, to which consumers may refer."""
        for run in self.rows:
            run.numbers = run.sizes = run.tags = None

    def encode(self, facts: dict[str, Any]) -> bytes:
        """End the turn, and return the octets; `facts` begin the head."""
        self.end_turn()
        rows: list[bytes] = []
        lists: list[bytes] = []
        indexes: dict[Address, int] = {}
        addresses: list[tuple[str, str]] = []
        for run in self.rows:
            address = indexes.get(run.address)
            if address is None:
                address = indexes[run.address] = len(addresses)
                addresses.append((run.address.exchange, run.address.routing_key))
            count, first, value, numbers, sizes = run.count, run.first, run.value, run.numbers, run.sizes
            if numbers is not None:
                first = IN_LIST
                lists.append(struct.pack(f">{count}Q", *numbers))
            if sizes is not None:
                if sizes.count(sizes[0]) == count:
                    value = int.from_bytes(sizes[0], "big")
                else:
                    value = IN_LIST
                    lists += sizes
            tags = run.tags
            if tags is not None:
                if tags[-1] - tags[0] + 1 == count:
                    value = tags[0]
                else:
                    value = IN_LIST
                    lists.append(struct.pack(f">{count}Q", *tags))
            rows.append(ROW.pack(run.time_us, first, value, run.place, address, count))
        tables = {**facts, "places": self._table, "addresses": addresses}
        head = json.dumps(tables, separators=(",", ":")).encode()
        start = START.pack(MAGIC, len(head), len(rows), self.events)
        return b"".join((start, head, *rows, *lists, *self.contents))
