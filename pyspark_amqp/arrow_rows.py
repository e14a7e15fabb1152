"""Deliveries to rows: the columns of the source, and Arrow batches of limited size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_amqp.content_header import HEADERS, NAMES, TIMESTAMP, Malformed, as_text, decode, decode_table
from pyspark_amqp.errors import OptionError
from pyspark_amqp.frame_parser import Delivery
from pyspark_amqp.typed_headers import KIND as TYPED_HEADERS
from pyspark_amqp.typed_headers import read_table

# Limits of a batch; Spark's own limit is 10 000 rows of any size.
BATCH_ROWS_MAX: Final = 1000
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024

ENVELOPE: Final = (
    ("body", "binary"),
    ("queue", "string"),
    ("exchange", "string"),
    ("routing_key", "string"),
    ("offset", "bigint"),
    ("redelivered", "boolean"),
    ("delivery_count", "int"),
)
PROPERTIES: Final = (
    ("content_type", "string"),
    ("content_encoding", "string"),
    ("delivery_mode", "int"),
    ("priority", "int"),
    ("correlation_id", "string"),
    ("reply_to", "string"),
    ("expiration", "string"),
    ("message_id", "string"),
    ("timestamp", "timestamp"),
    ("type", "string"),
    ("user_id", "string"),
    ("app_id", "string"),
)
TEXT_HEADERS: Final = "map<string,string>"
PROBLEM: Final = (("error", "string"),)
# The types that each column may have.
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    **{name: (kind,) for name, kind in ENVELOPE + PROPERTIES + PROBLEM},
    "headers": (TEXT_HEADERS, TYPED_HEADERS),
}

OFFSET_HEADER: Final = "x-stream-offset"
_OFFSET_ENTRY: Final = bytes((len(OFFSET_HEADER),)) + OFFSET_HEADER.encode() + b"l"
_OFFSET_AT: Final = 4 + len(_OFFSET_ENTRY)
_COUNT: Final = b"x-delivery-count"
# Position of the flags in a content header, and of the headers if no property precedes them.
_FLAGS_AT: Final = 12
_TABLE_AT: Final = 14
_FIRST_FLAGS, _HEADERS_FIRST = 0b1110_0000, 0b0010_0000


def default_schema(include_properties: bool, headers: str | None) -> str:
    """Return the schema of a source if the user gives none; `headers` is the type of their column, or None."""
    columns = [*ENVELOPE]
    if include_properties:
        columns += PROPERTIES
    if headers is not None:
        columns.append(("headers", headers))
    return ", ".join(f"{name} {kind}" for name, kind in (*columns, *PROBLEM))


def check_schema(schema: StructType) -> None:
    """Raise OptionError for a column that the source does not have or that has another type."""
    for column in schema.fields:
        if column.name not in COLUMNS:
            raise OptionError("schema", f"there is no column '{column.name}'; there are {', '.join(COLUMNS)}")
        kind = column.dataType.simpleString()
        if kind not in COLUMNS[column.name]:
            raise OptionError("schema", f"column '{column.name}' is {' or '.join(COLUMNS[column.name])}, not {kind}")


def stream_offset(header: bytes) -> int | None:
    """Return a delivery's offset in its stream; None if it is not from a stream."""
    if header.startswith(_OFFSET_ENTRY, _TABLE_AT + 4) and header[_FLAGS_AT] & _FIRST_FLAGS == _HEADERS_FIRST:
        at = _TABLE_AT + _OFFSET_AT
        return int.from_bytes(header[at : at + 8])
    table = decode(header)[0][HEADERS]
    return _offset(table) if table is not None else None


def _offset(table: bytes) -> int | None:
    """Return the offset header, which RabbitMQ and amqp-broker put before all other headers."""
    if table.startswith(_OFFSET_ENTRY, 4):
        return int.from_bytes(table[_OFFSET_AT : _OFFSET_AT + 8])
    at = table.rfind(_OFFSET_ENTRY)
    if at < 0:
        return None
    try:
        offset = decode_table(table)[0].get(OFFSET_HEADER)
    except Malformed:
        offset = int.from_bytes(table[at + len(_OFFSET_ENTRY) :][:8])
    return offset if isinstance(offset, int) else None


class Rows:
    """Collects deliveries of a queue as rows, in Arrow batches of the requested schema."""

    def __init__(self, schema: StructType, queue: str, allows_ms: bool = False) -> None:
        """With `allows_ms`, timestamps that are after the year 9999 in seconds are in milliseconds."""
        self.allows_ms = allows_ms
        self.schema = to_arrow_schema(schema, timezone="UTC")
        self.queue = queue
        self.count = 0
        self.size = 0
        self._names: Sequence[str] = schema.fieldNames()
        self._wants_headers = "headers" in self._names
        self._has_types = self._wants_headers and schema["headers"].dataType.simpleString() == TYPED_HEADERS
        self._wants_count = "delivery_count" in self._names
        self._bodies: list[bytes] = []
        # All columns but body and queue, as tuples: redelivered, exchange, routing_key, offset, then by NAMES, …
        self._rows: list[tuple[Any, ...]] = []

    @property
    def is_full(self) -> bool:
        return self.count >= BATCH_ROWS_MAX or self.size >= BATCH_BYTES_MAX

    def add(self, delivery: Delivery, offset: int | None) -> None:
        """Append a row."""
        _, redelivered, exchange, routing_key, header, body = delivery
        values, problem = decode(header, self.allows_ms)
        table = values[HEADERS]
        headers = delivery_count = None
        if table is not None and (self._wants_headers or (self._wants_count and _COUNT in table)):
            headers, delivery_count, trouble = self._read_headers(table)
            problem = problem or trouble
        try:
            names = (exchange.decode(), routing_key.decode())
        except UnicodeDecodeError:
            problem = problem or "the exchange or the routing key is not UTF-8"
            names = (exchange.decode("utf-8", "backslashreplace"), routing_key.decode("utf-8", "backslashreplace"))
        self._bodies.append(body)
        self._rows.append((*names, offset, redelivered, delivery_count, headers, problem, *values))
        self.count += 1
        self.size += len(body) + 200 + (len(table) if table else 0)

    def _read_headers(self, table: bytes) -> tuple[list[tuple[str, Any]] | None, int | None, str | None]:
        """Return the headers, or None if there are none, the delivery count and a problem."""
        try:
            decoded, end = decode_table(table)
            if end != len(table):
                raise Malformed("a table whose length is wrong")
            if self._has_types:
                typed, problem = read_table(table)
                headers = list(typed.items())
            else:
                headers, problem = _as_texts(decoded)
        except Malformed as malformed:
            return None, None, f"headers: {malformed}"
        headers = [header for header in headers if header[0] != OFFSET_HEADER]
        count = decoded.get("x-delivery-count")
        is_count = type(count) is int and 0 <= count < 1 << 31
        return headers if headers and self._wants_headers else None, count if is_count else None, problem

    def take(self) -> pa.RecordBatch:
        """Return and clear the rows."""
        columns = dict(zip(_ROW, zip(*self._rows, strict=True), strict=True)) if self._rows else {}
        arrays = []
        for name in self._names:
            kind = self.schema.field(name).type
            if name == "body":
                arrays.append(pa.array(self._bodies, kind))
            elif name == "queue":
                arrays.append(pa.repeat(pa.scalar(self.queue, kind), self.count))
            else:
                values: Sequence[Any] = columns.get(name, ())
                if name == "timestamp":
                    values = [None if value is None else value * 1_000 for value in values]
                arrays.append(pa.array(values, kind))
        self._bodies, self._rows, self.count, self.size = [], [], 0, 0
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _as_texts(decoded: dict[str, Any]) -> tuple[list[tuple[str, Any]], str | None]:
    """Return the values of headers as text, and a problem or None."""
    headers = []
    problem = None
    for name, value in decoded.items():
        if type(value) is str:
            headers.append((name, value))
            continue
        if isinstance(value, bytes):
            problem = f"header {name} is not UTF-8"
        headers.append((name, as_text(value)))
    return headers, problem


# The headers in NAMES are octets and have no column.
_ROW: Final = (
    *("exchange", "routing_key", "offset", "redelivered", "delivery_count", "headers", "error"),
    *(name if index != HEADERS else "header_octets" for index, name in enumerate(NAMES)),
)
assert NAMES[TIMESTAMP] == "timestamp"
