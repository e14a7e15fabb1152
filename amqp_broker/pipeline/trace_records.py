"""Decodes the messages of a trace: records of amqp-broker, and the firehose of RabbitMQ.

`amqp_broker/broker/observe/recorder.py` describes records. They are decoded column by column: the facts of a place are
read once and taken by index, and so are those of a row for its events. A message of the firehose is one event: its
routing key is an event and a name (`deliver.orders`), and its headers have the rest; numbers and times are missing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_amqp.content_header import FLAGS, HEADERS, NAMES, TIMESTAMP, Malformed, as_text, decode, decode_table

# The last microsecond of the year 9999, Spark's last date.
TIME_US_MAX: Final = 253_402_300_799_999_999
RAW: Final = pa.struct({"routing_key": pa.string(), "headers": pa.map_(pa.string(), pa.string()), "body": pa.binary()})
# The columns beside those of an event: why a message is not one, and the message.
POISON: Final = pa.schema({"poison": pa.string(), "raw": RAW})
_START_OF_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The columns that the place of a record's row has.
OF_PLACES: Final = (
    *("event", "queue", "routed_queues", "connection", "connection_name", "channel", "user", "redelivered", "no_ack"),
    *("requeue", "is_ack", "reply_code", "reply_text", "reason", "death_count"),
)
# The kinds of events whose value is the column.
VALUES: Final = {
    "body_bytes": ("publish", "deliver"),
    "publish_number": ("confirm",),
    "from_message_number": ("dead_letter",),
}

RECORDS: Final = "records"
MAGIC: Final = b"ATR2"
_START: Final = struct.Struct(">4sIII")
_ROW: Final = struct.Struct(">qQQIII")
# Instead of a first number or a value: the row has a list.
_IN_LIST: Final = (1 << 64) - 1
_FRAME: Final = struct.Struct(">BHI")
# A content up to its property flags, with the size of the header frame's payload and that of the body.
_CONTENT: Final = struct.Struct(">xxxIxxxxQ")
# Rows of a batch, unless one record has more.
BATCH_ROWS: Final = 10_000
CACHED_MAX: Final = 1024
_TRUE, _FALSE = frozenset({"true", "t", "yes", "y", "1"}), frozenset({"false", "f", "no", "n", "0"})


class Poison(ValueError):
    """A message of the stream is not an event; the text says why."""


_NOTHING: Final = pa.scalar(None, pa.int64())
# Reading damaged octets may raise these.
_MALFORMED: Final = (
    *(struct.error, ValueError, LookupError, TypeError, AttributeError, OverflowError, pa.ArrowException),
)


def decoded(
    batches: Iterator[pa.RecordBatch], columns: pa.Schema, with_bodies: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the events of messages of a trace, with these columns and those of `POISON`.

    Messages have the columns body, queue, routing_key, offset, headers and error of the format `amqp`.
    """
    schema = pa.schema([*columns, *POISON])
    ready: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        for row in batch.to_pylist():
            ready.append(_decoded(row, schema, with_bodies))
            count += ready[-1].num_rows
            if count >= BATCH_ROWS:
                yield from pa.Table.from_batches(ready).combine_chunks().to_batches()
                ready, count = [], 0
    if ready:
        yield from pa.Table.from_batches(ready).combine_chunks().to_batches()


def _decoded(row: dict[str, Any], schema: pa.Schema, with_bodies: bool) -> pa.RecordBatch:
    """Return the events of a message of the trace, or a row that says why it has none."""
    try:
        if row["error"] is not None:
            raise Poison(row["error"])
        if row["routing_key"] is None:
            raise Poison("the routing key is missing")
        if row["routing_key"] == RECORDS:
            return events_of_record(row["body"], row["queue"], row["offset"], schema, with_bodies)
        event = _firehose_event(row, with_bodies)
    except Poison as poison:
        raw = {name: row[name] for name in ("routing_key", "headers", "body")}
        event = {"poison": str(poison), "raw": raw}
    event |= {"trace_queue": row["queue"], "trace_offset": row["offset"], "trace_index": 0}
    return pa.RecordBatch.from_pylist([event], schema=schema)


# Records


def events_of_record(
    body: bytes, queue: str, offset: int | None, schema: pa.Schema, with_bodies: bool = True
) -> pa.RecordBatch:
    """Return the events of a record. Raise Poison."""
    try:
        if not body.startswith(MAGIC):
            raise Poison("a record of an unknown version")
        _, head_bytes, row_count, count = _START.unpack_from(body)
        start = _START.size + head_bytes
        end = start + row_count * _ROW.size
        head = json.loads(body[_START.size : start])
        rows = list(_ROW.iter_unpack(memoryview(body)[start:end]))
        if len(rows) < row_count:
            raise Poison("a record that is cut off")
        if sum(row[5] for row in rows) != count:
            raise Poison("a damaged record: its rows have another number of events")
        facts = [{name: _clean(value) for name, value in place.items()} for place in head["places"]]
        events = _Events.of(rows, [fact["event"] for fact in facts], body, end)
        # First the contents, which have the values of the publishes.
        columns = _contents(body, events, with_bodies) | _columns(head, facts, rows, events, schema)
        columns |= _constants(head, queue, offset, count, schema)
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    except _MALFORMED as error:
        raise error if isinstance(error, Poison) else Poison(f"a damaged record: {error}") from None


class _Events(NamedTuple):
    """The row, the message number and the value of each event; the places of the publishes among them.

    The contents of the publishes begin at `contents_at`.
    """

    rows: list[int]
    numbers: list[int]
    values: list[int]
    publishes: list[int]
    contents_at: int

    @classmethod
    def of(cls, rows: list[tuple[int, ...]], kinds: list[str], body: bytes, at: int) -> Self:
        """Return the events of the rows, whose lists begin at an offset."""
        row_at: list[int] = []
        numbers: list[int] = []
        values: list[int] = []
        publishes: list[int] = []
        for index, (_, first, value, place, _, count) in enumerate(rows):
            if kinds[place] == "publish":
                publishes.extend(range(len(row_at), len(row_at) + count))
            row_at.extend(repeat(index, count))
            if first == _IN_LIST:
                numbers.extend(struct.unpack_from(f">{count}Q", body, at))
                at += 8 * count
            else:
                numbers.extend(range(first, first + count))
            if value == _IN_LIST:
                values.extend(struct.unpack_from(f">{count}Q", body, at))
                at += 8 * count
            elif kinds[place] == "confirm":
                values.extend(range(value, value + count))
            else:
                values.extend(repeat(value, count))
        return cls(row_at, numbers, values, publishes, at)


def _columns(
    head: dict[str, Any], facts: list[dict[str, Any]], rows: list[tuple[int, ...]], events: _Events, schema: pa.Schema
) -> dict[str, pa.Array]:
    """Return the columns that differ from event to event, without the contents of publishes."""
    times, _, _, places, addresses, _ = zip(*rows, strict=True)
    row_at = pa.array(events.rows, pa.int32())
    place_at, address_at = pa.array(places, pa.int32()).take(row_at), pa.array(addresses, pa.int32()).take(row_at)
    number = pa.array(events.numbers, pa.int64())
    columns: dict[str, pa.Array] = {
        "time": pa.array(times, pa.int64()).cast(schema.field("time").type).take(row_at),
        "message_number": pc.if_else(pc.equal(number, 0), _NOTHING, number),
        "trace_index": pa.array(range(len(events.rows)), pa.int32()),
    }
    for name in OF_PLACES:
        columns[name] = pa.array([fact.get(name) for fact in facts], schema.field(name).type).take(place_at)
    for index, name in enumerate(("exchange", "routing_key")):
        names = [_clean(address[index]) for address in head["addresses"]]
        columns[name] = pa.array(names, pa.string()).take(address_at)
    value = pa.array(events.values, pa.int64())
    for name, kinds in VALUES.items():
        has_value = pa.array([fact["event"] in kinds for fact in facts], pa.bool_()).take(place_at)
        columns[name] = pc.if_else(has_value, value, _NOTHING)
    return columns


def _constants(
    head: dict[str, Any], queue: str, offset: int | None, count: int, schema: pa.Schema
) -> dict[str, pa.Array]:
    """Return the columns that are the same for all events of a record."""
    values = {"time_source": "broker", "trace_queue": queue, "trace_offset": offset, "poison": None, "raw": None}
    values |= {name: _clean(head[name]) for name in ("node", "vhost", "numbered_since_us")}
    return {name: pa.repeat(pa.scalar(value, schema.field(name).type), count) for name, value in values.items()}


def _contents(body: bytes, events: _Events, with_bodies: bool) -> dict[str, pa.Array]:
    """Return the properties and the bodies of the publishes, and set their values to their sizes."""
    properties: list[str | None] = [None] * len(events.rows)
    bodies: list[bytes | None] = [None] * len(events.rows)
    at = events.contents_at
    for index in events.publishes:
        header_bytes, size = _CONTENT.unpack_from(body, at)
        header_end = at + _FRAME.size + header_bytes
        properties[index] = properties_text(body[at + _CONTENT.size : header_end])
        octets, at = _body(body, header_end + 1, size)
        events.values[index] = size
        if with_bodies:
            bodies[index] = octets
    if at != len(body):
        raise Poison("a record that is cut off")
    return {"properties": pa.array(properties, pa.string()), "body": pa.array(bodies, pa.binary())}


def _body(octets: bytes, at: int, size: int) -> tuple[bytes, int]:
    """Return a body of this size from the body frames that begin at an offset, and where these end."""
    pieces = []
    while size > 0:
        start = at + _FRAME.size
        at = start + _FRAME.unpack_from(octets, at)[2] + 1
        pieces.append(octets[start : at - 1])
        size -= at - 1 - start
    return pieces[0] if len(pieces) == 1 else b"".join(pieces), at


_texts: Final[dict[bytes, str]] = {}


def properties_text(property_list: bytes) -> str:
    """Return properties as JSON, in the order of the firehose: the last first."""
    text = _texts.get(property_list)
    if text is None:
        values, _ = decode(bytes(12) + property_list)
        table: dict[str, Any] = {}
        for index in reversed(range(len(FLAGS))):
            value = values[index]
            if value is not None and index == HEADERS:
                try:
                    value = decode_table(value)[0]
                except Malformed:
                    value = None
            if value is not None and index == TIMESTAMP:
                # Seconds, as they were published.
                value //= 1000
            if value is not None:
                table[NAMES[index]] = value
        text = as_text(table)
        if len(_texts) >= CACHED_MAX:
            _texts.clear()
        _texts[property_list] = text
    return text


def _clean(value: Any) -> Any:
    """Return a name with octets that are not UTF-8 as backslashes; the broker writes them as surrogates."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return [_clean(one) for one in value] if isinstance(value, list) else value


# The firehose


def _firehose_event(row: dict[str, Any], with_bodies: bool) -> dict[str, Any]:
    """Return the event of a message of the firehose. Raise Poison."""
    event, _, name = row["routing_key"].partition(".")
    headers: dict[str, str] = dict(row["headers"] or ())
    if event not in ("publish", "deliver"):
        raise Poison(f"unknown event '{event}'")
    for header in ("vhost", "exchange_name"):
        if header not in headers:
            raise Poison(f"header '{header}' is missing")
    properties, body = headers.get("properties"), row["body"] or b""
    keys = _texts_of(headers, "routing_keys")
    time_us = _time_of(properties)
    is_publish = event == "publish"
    return {
        "time": None if time_us is None else _START_OF_TIME + timedelta(microseconds=time_us),
        "time_source": "archive" if time_us is None else "message",
        "event": event,
        "node": headers.get("node"),
        "vhost": headers["vhost"],
        "exchange": headers["exchange_name"],
        "routing_key": keys[0] if keys else None,
        "queue": None if is_publish else name,
        "routed_queues": _texts_of(headers, "routed_queues"),
        "connection": headers.get("connection"),
        "channel": _channel_of(headers),
        "user": headers.get("user"),
        "redelivered": _flag_of(headers, "redelivered"),
        "properties": properties if is_publish else None,
        "body_bytes": len(body),
        "body": body if is_publish and with_bodies else None,
    }


def _invalid(headers: dict[str, str], name: str, kind: str) -> Poison:
    return Poison(f"header '{name}' is not a valid {kind}: {headers[name][:80]}")


def _texts_of(headers: dict[str, str], name: str) -> list[str] | None:
    if name not in headers:
        return None
    try:
        texts = json.loads(headers[name])
    except ValueError:
        texts = None
    if not isinstance(texts, list):
        raise _invalid(headers, name, "array<string>")
    return [as_text(text) for text in texts]


def _channel_of(headers: dict[str, str]) -> int | None:
    text = headers.get("channel")
    if text is None:
        return None
    if not text.isdecimal() or int(text) >= 1 << 31:
        raise _invalid(headers, "channel", "int")
    return int(text)


def _flag_of(headers: dict[str, str], name: str) -> bool | None:
    text = headers.get(name)
    if text is not None and text not in _TRUE | _FALSE:
        raise _invalid(headers, name, "boolean")
    return None if text is None else text in _TRUE


def _time_of(properties: str | None) -> int | None:
    """Return the time (µs) from the publisher or RabbitMQ's message interceptor: the firehose has no time."""
    try:
        table = json.loads(properties or "{}")
    except ValueError:
        return None
    headers = table.get("headers") if isinstance(table, dict) else None
    millis = headers.get("timestamp_in_ms") if isinstance(headers, dict) else None
    seconds = table.get("timestamp") if isinstance(table, dict) else None
    for value, unit in ((millis, 1000), (seconds, 1_000_000)):
        if isinstance(value, int):
            return value * unit if 1 <= value * unit <= TIME_US_MAX else None
    return None
