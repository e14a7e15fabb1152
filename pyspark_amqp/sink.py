"""Writing of rows: a task succeeds only after the broker has confirmed each of its rows.

Messages of a failed task remain published, so each row is written at least once. With `messageId=auto`, a row that a
retry or restart writes again has the same id, as long as its partition has the same rows in the same order. Different
rows never have the same id, whatever their order.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
from pika import spec
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.arrow_rows import COLUMNS, TEXT_HEADERS
from pyspark_amqp.content_header import encode_texts
from pyspark_amqp.errors import BrokerError, OptionError
from pyspark_amqp.format_options import SinkOptions
from pyspark_amqp.reconnecting import persist
from pyspark_amqp.row_publisher import Publisher
from pyspark_amqp.shipping import Shipped
from pyspark_amqp.typed_headers import KIND as TYPED_HEADERS
from pyspark_amqp.typed_headers import write_table

TEXTS: Final = (
    *("content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id"),
    *("type", "user_id", "app_id"),
)
KINDS: Final = {
    "body": ("binary", "string"),
    "value": ("binary", "string"),
    "exchange": ("string",),
    "routing_key": ("string",),
    **dict.fromkeys(TEXTS, ("string",)),
    "delivery_mode": ("int", "smallint", "tinyint", "bigint"),
    "priority": ("int", "smallint", "tinyint", "bigint"),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "headers": (TEXT_HEADERS, TYPED_HEADERS),
}
# Columns that a read has, but that a message does not take along.
READ_ONLY: Final = ("queue", "offset", "redelivered", "delivery_count", "error")


def check_columns(schema: StructType, options: SinkOptions) -> list[str]:
    """Return the columns that are written. Raise OptionError for an invalid schema.

    An option takes precedence over its column, so that what was read can be written elsewhere.
    """
    names = []
    for column in schema.fields:
        kind = column.dataType.simpleString()
        if column.name in READ_ONLY and kind in COLUMNS[column.name]:
            continue
        if column.name not in KINDS:
            if not options.ignore_unknown_columns:
                raise OptionError(
                    "ignoreUnknownColumns",
                    f"a message has no column '{column.name}'; with true it is ignored. Columns are {', '.join(KINDS)}",
                )
            continue
        if kind not in KINDS[column.name]:
            raise OptionError("schema", f"column '{column.name}' must be {' or '.join(KINDS[column.name])}, not {kind}")
        names.append(column.name)
    bodies = [name for name in names if name in ("body", "value")]
    if len(bodies) != 1:
        raise OptionError("schema", "needs one column 'body' (or 'value'), binary or string")
    if "routing_key" not in names and options.routing_key is None:
        raise OptionError("routingKey", "is needed, or a column 'routing_key'")
    if options.message_id == "column" and "message_id" not in names:
        raise OptionError("messageId", "is column, but there is no column 'message_id'")
    overridden = {"exchange": options.exchange, "routing_key": options.routing_key}
    return [name for name in names if overridden.get(name) is None]


def check_broker(options: SinkOptions) -> None:
    """Raise OptionError if there is no such exchange, and ConnectionLost if there is no broker."""
    with Connection(options.address) as connection:
        connection.open_channel()
        if options.exchange:
            try:
                connection.call(spec.Exchange.Declare(exchange=options.exchange, passive=True), spec.Exchange.DeclareOk)
            except BrokerError as error:
                raise OptionError("exchange", str(error)) from None


@dataclass
class Written(WriterCommitMessage):
    """The number of rows that a task has published with confirms."""

    count: int


class Sink(Shipped):
    """The common part of batch and streaming writers; Spark creates one per batch and sends it to the tasks."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("mode", "must be append: messages in a queue cannot be overwritten")
        self.options = options
        self.columns = check_columns(schema, options)
        persist(options.address, lambda: check_broker(options))
        # For a batch write, whose tasks share no id.
        self.run = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Publish the rows of a partition and wait for their confirms. Raise BrokerError or ValueError."""
        batch = next(iterator, None)
        if batch is None:
            return Written(0)
        prefix = self._id_prefix() if self.options.message_id == "auto" else None
        publisher = Publisher(self.options)
        try:
            row = 0
            while batch is not None:
                for values in self._rows(batch):
                    if prefix is not None and values.get("message_id") is None:
                        values["message_id"] = f"{prefix}{row}-{checksum(values):08x}"
                    publisher.publish(values)
                    row += 1
                batch = next(iterator, None)
            publisher.finish()
        finally:
            publisher.close()
        return Written(row)

    def _id_prefix(self) -> str:
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch_id = context.getLocalProperty("streaming.sql.batchId")
        run = f"{query}-{batch_id}-{_write_number(context)}" if query and batch_id else self.run
        return f"{run}-{context.partitionId()}-"

    def _rows(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        columns: list[Sequence[Any]] = []
        for name in self.columns:
            array = batch.column(batch.schema.get_field_index(name))
            if name == "timestamp":
                unit_us = 1_000 if self.options.writes_ms else 1_000_000
                columns.append([None if value is None else value // unit_us for value in _integers(array)])
            elif name == "headers":
                is_typed = pa.types.is_struct(array.type.item_type)
                columns.append([_table(value, is_typed) for value in array.to_pylist()])
            else:
                columns.append(array.to_pylist())
        for values in zip(*columns, strict=True):
            yield dict(zip(self.columns, values, strict=True))


def _write_number(context: TaskContext) -> int:
    """Return the number of a write among what `foreachBatch` executes for its batch; 0 is the query's own."""
    execution = context.getLocalProperty("spark.sql.execution.id")
    of_batch = context.getLocalProperty("spark.sql.execution.root.id")
    return int(execution) - int(of_batch) if execution and of_batch else 0


def checksum(values: dict[str, Any]) -> int:
    """Return the CRC-32 of a row's values.

    It tells rows apart that have the same place in two attempts, because their order or partition has changed.
    """
    crc = 0
    for value in values.values():
        octets = value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
        # The sum separates the values.
        crc = crc32(octets, (crc + 1) & 0xFFFFFFFF)
    return crc


def _table(headers: list[tuple[str, Any]] | None, is_typed: bool) -> bytes | None:
    """Return the headers of a row as a field table, or None if there are none. Raise ValueError."""
    if not headers:
        return None
    return (write_table if is_typed else encode_texts)(dict(headers))


def _integers(array: pa.Array) -> list[int | None]:
    values: list[int | None] = array.cast(pa.int64()).to_pylist()
    return values


class BatchSink(Sink, DataSourceArrowWriter):
    """df.write.format("amqp").mode("append")."""


class StreamSink(Sink, DataSourceStreamArrowWriter):
    """writeStream.format("amqp")."""
