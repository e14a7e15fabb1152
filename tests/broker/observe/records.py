"""A vhost whose events are recorded, and its records, row by row."""

from __future__ import annotations

import json
import struct
from itertools import count
from typing import Any, Final, NamedTuple

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.peer import Peer
from amqp_broker.broker.observe.record import IN_LIST
from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.vhost import VHost
from amqp_broker.settings.settings import Settings

EVERYTHING: Final = Selection()


class Row(NamedTuple):
    """A row of a record with the facts that it refers to, and the numbers and values of its events."""

    time_us: int
    place: dict[str, Any]
    address: tuple[str, str]
    numbers: list[int]
    values: list[int]

    @property
    def event(self) -> str:
        return str(self.place["event"])


def rows_of(record: bytes) -> list[Row]:
    """Return the rows of a record. The value of a publish is 0."""
    magic, head_bytes, row_count, events = struct.unpack_from(">4sIII", record)
    assert magic == b"ATR2"
    at = 16 + head_bytes
    head, lists_at = json.loads(record[16:at]), at + 36 * row_count
    rows = []
    for _ in range(row_count):
        time_us, first, value, place, address, size = struct.unpack_from(">qQQIII", record, at)
        at += 36
        numbers = list(range(first, first + size))
        step = head["places"][place]["event"] == "confirm"
        values = [value + index * step for index in range(size)]
        if first == IN_LIST:
            numbers = list(struct.unpack_from(f">{size}Q", record, lists_at))
            lists_at += 8 * size
        if value == IN_LIST:
            values = list(struct.unpack_from(f">{size}Q", record, lists_at))
            lists_at += 8 * size
        rows.append(Row(time_us, head["places"][place], tuple(head["addresses"][address]), numbers, values))
    assert sum(len(row.numbers) for row in rows) == events
    return rows


def new_traced_vhost() -> VHost:
    """Return a vhost whose events go to the stream `trace`; the time advances by 1 µs each time it is read."""
    broker = Broker(Settings(), bytes)
    broker.now_us = count(1001).__next__
    broker.add_defaults()
    vhost = broker.vhosts["/"]
    record(vhost)
    return vhost


def new_client(vhost: VHost) -> Peer:
    connection = Peer("127.0.0.1", 1, "127.0.0.1", 5672, 0)
    connection.user = vhost.broker.users["guest"]
    return connection


def declare(vhost: VHost, name: str, **arguments: Any) -> Queue:
    table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return vhost.declare_queue(QueueDeclaration(name, table, is_durable=True))


def record(vhost: VHost, selection: Selection = EVERYTHING) -> None:
    stream = vhost.queues.get("trace") or declare(vhost, "trace", queue_type="stream")
    vhost.tracing.record(stream, selection)


def records(vhost: VHost) -> list[bytes]:
    """Return the bodies of all records, the last one included."""
    recorder = vhost.tracing.recorder
    if recorder is not None:
        recorder.flush()
    return [message.body for message in vhost.queues["trace"].messages()]


def rows(vhost: VHost) -> list[Row]:
    """Return the rows of all records."""
    return [row for body in records(vhost) for row in rows_of(body)]
