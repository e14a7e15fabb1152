"""Deliveries to rows: the columns of the source, and Arrow batches of limited size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_amqp.content_header import (
    HEADERS,
    NAMES,
    NESTING_MAX,
    OFFSET_ENTRY,
    OFFSET_HEADER,
    TIMESTAMP,
    VALUE_AT,
    Binary,
    Malformed,
    Nested,
    as_text,
    decode,
    decode_table,
    offset_at,
)
from pyspark_amqp.delivery_run import Run
from pyspark_amqp.errors import OptionError
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
    # Whatever `spark.sql.timestampType` says.
    ("timestamp", "timestamp_ltz"),
    ("type", "string"),
    ("user_id", "string"),
    ("app_id", "string"),
)
TEXT_HEADERS: Final = "map<string,string>"
PROBLEM: Final = (("error", "string"),)
# The types that each column may have.
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    **{name: (kind,) for name, kind in ENVELOPE + PROPERTIES + PROBLEM},
    "timestamp": ("timestamp", "timestamp_ntz"),
    "headers": (TEXT_HEADERS, TYPED_HEADERS),
}

_COUNT: Final = b"x-delivery-count"


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
    if at := offset_at(header):
        return int.from_bytes(header[at : at + 8])
    table = decode(header)[0][HEADERS]
    return _offset(table) if table is not None else None


def _offset(table: bytes) -> int | None:
    """Return the offset header, which RabbitMQ and amqp-broker put before all other headers."""
    if table.startswith(OFFSET_ENTRY, 4):
        return int.from_bytes(table[VALUE_AT : VALUE_AT + 8])
    at = table.rfind(OFFSET_ENTRY)
    if at < 0:
        return None
    try:
        offset = decode_table(table)[0].get(OFFSET_HEADER)
    except Malformed:
        offset = int.from_bytes(table[at + len(OFFSET_ENTRY) :][:8])
    return offset if isinstance(offset, int) else None


def _is_offset(table: bytes) -> bool:
    """Tell whether the only header is the offset."""
    return len(table) == VALUE_AT + 8 and table.startswith(OFFSET_ENTRY, 4)


class Rows:
    """Collects deliveries of a queue as rows, in Arrow batches of the requested schema.

    Messages one after another often have the same properties: these are decoded once.
    """

    def __init__(self, schema: StructType, queue: str, allows_ms: bool = False) -> None:
        """With `allows_ms`, timestamps that are after the year 9999 in seconds are in milliseconds."""
        self.allows_ms = allows_ms
        self.schema = to_arrow_schema(schema, timezone="UTC")
        self.queue = queue
        self.size = 0
        self._names: Sequence[str] = schema.fieldNames()
        self._wants_headers = "headers" in self._names
        self._has_types = self._wants_headers and schema["headers"].dataType.simpleString() == TYPED_HEADERS
        self._wants_count = "delivery_count" in self._names
        self._bodies: list[bytes] = []
        self._offsets: list[int | None] = []
        self._redelivered: list[bool] = []
        # The values of the columns in _SHARED, and the number of successive messages that have them.
        self._shared: list[tuple[tuple[Any, ...], int]] = []
        self._tuple_count = 0
        # The last values, their size, and the header that they were decoded from: alike deliveries share one.
        self._last: tuple[Any, ...] = ()
        self._last_size = 0
        self._last_header: bytes | None = None

    @property
    def count(self) -> int:
        return len(self._bodies)

    @property
    def is_full(self) -> bool:
        return len(self._bodies) >= BATCH_ROWS_MAX or self.size >= BATCH_BYTES_MAX

    def add(self, run: Run, offset: int | None = None) -> None:
        """Append a row for each delivery; the first has this offset in its stream."""
        count = run.count
        self._bodies += run.bodies
        self._redelivered += repeat(run.redelivered, count)
        self._offsets += repeat(None, count) if offset is None else range(offset, offset + count)
        # An equal header does not suffice: exchange and routing key may differ.
        if run.header is not self._last_header:
            self._last_header = run.header
            self._decode(run.exchange, run.routing_key, run.header)
        self._shared.append((self._last, count))
        self.size += sum(map(len, run.bodies)) + self._last_size * count

    def _decode(self, exchange: bytes, routing_key: bytes, header: bytes) -> None:
        values, problem = decode(header, self.allows_ms)
        table = values[HEADERS] or b""
        headers = delivery_count = None
        if table and not _is_offset(table) and (self._wants_headers or (self._wants_count and _COUNT in table)):
            headers, delivery_count, trouble = self._read_headers(table)
            problem = problem or trouble
        if values[TIMESTAMP] is not None:
            # Arrow's are in microseconds.
            values[TIMESTAMP] *= 1_000
        try:
            names = (exchange.decode(), routing_key.decode())
        except UnicodeDecodeError:
            problem = problem or "the exchange or the routing key is not UTF-8"
            names = (exchange.decode("utf-8", "backslashreplace"), routing_key.decode("utf-8", "backslashreplace"))
        self._last = (*names, delivery_count, headers, problem, *values)
        self._last_size = 200 + len(table)
        self._tuple_count += 1

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
        columns: list[tuple[Any, ...]] = []
        if self._tuple_count > 1:
            columns = list(zip(*(values for values, count in self._shared for _ in range(count)), strict=True))
        arrays = [self._column(name, self.schema.field(name).type, columns) for name in self._names]
        self._bodies, self._offsets, self._redelivered, self._shared = [], [], [], []
        self.size = self._tuple_count = 0
        self._last_header = None
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, name: str, kind: pa.DataType, columns: Sequence[tuple[Any, ...]]) -> pa.Array:
        if name == "queue":
            return pa.repeat(pa.scalar(self.queue, kind), self.count)
        if name in _SHARED:
            index = _SHARED[name]
            if self._tuple_count == 1:
                return _repeated(self._last[index], kind, self.count)
            return pa.array(columns[index] if columns else (), kind)
        own = {"body": self._bodies, "offset": self._offsets, "redelivered": self._redelivered}
        return pa.array(own[name], kind)


def _repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    if value is None:
        return pa.nulls(count, kind)
    return pa.array([value] * count, kind) if pa.types.is_nested(kind) else pa.repeat(pa.scalar(value, kind), count)


def _as_texts(decoded: dict[str, Any]) -> tuple[list[tuple[str, Any]], str | None]:
    """Return the values of headers as text, and a problem or None."""
    headers = []
    problem = None
    for name, value in decoded.items():
        if type(value) is str:
            headers.append((name, value))
            continue
        if isinstance(value, Nested):
            problem = f"header {name} has more than {NESTING_MAX} levels of tables"
        elif isinstance(value, bytes) and not isinstance(value, Binary):
            problem = f"header {name} is not UTF-8"
        headers.append((name, as_text(value)))
    return headers, problem


# Positions of the columns of `Rows._decode`. The headers in NAMES are octets and have no column.
_SHARED: Final = {
    name: index
    for index, name in enumerate(("exchange", "routing_key", "delivery_count", "headers", "error", *NAMES))
    if index != 5 + HEADERS
}
assert NAMES[TIMESTAMP] == "timestamp"
