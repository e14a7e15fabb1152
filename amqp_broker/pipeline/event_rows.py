"""The events of a trace as rows: the columns of the lake.

`trace_source.py` reads them from the trace's queue, and `trace_records.py` decodes them. A message that has no complete
events is *poisoned*: it goes to a separate table with a `reason`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Field:
    """A column: its Spark type and its meaning."""

    name: str
    type: str
    meaning: str


FIELDS: Final = (
    Field("time", "timestamp", "time of the event (UTC, µs)"),
    Field(
        "time_source",
        "string",
        "source of `time`: `broker`, `message` (its timestamp) or `archive` (the time of reading)",
    ),
    Field(
        "event", "string", "`publish`, `deliver`, `ack`, `nack`, `confirm`, `return`, `expire`, `drop`, `dead_letter`"
    ),
    Field("node", "string", "the broker's name"),
    Field("vhost", "string", "the vhost of the event"),
    Field(
        "numbered_since_us",
        "bigint",
        "the broker's run, as the time of its first numbered message",
    ),
    Field("message_number", "bigint", "the message's number in that run; NULL if unknown"),
    Field("exchange", "string", "the exchange that the message was published to"),
    Field("routing_key", "string", "its (first) routing key"),
    Field("queue", "string", "the queue of the event; NULL for publish, confirm and return"),
    Field(
        "routed_queues",
        "array<string>",
        "publish and dead_letter: the queues that receive the message",
    ),
    Field("connection", "string", "name of the connection that caused the event"),
    Field("connection_name", "string", "the name that its client gave it (`connection_name`); NULL without one"),
    Field("channel", "int", "its channel"),
    Field("user", "string", "its user"),
    Field("redelivered", "boolean", "deliver: whether it is a redelivery"),
    Field("no_ack", "boolean", "deliver: whether no ack follows"),
    Field("requeue", "boolean", "nack: whether the message returns to the queue"),
    Field("is_ack", "boolean", "confirm: whether it is an ack"),
    Field("publish_number", "bigint", "confirm: the delivery tag"),
    Field("reply_code", "int", "return: the reply code"),
    Field("reply_text", "string", "return: the reply text"),
    Field("reason", "string", "drop and dead_letter: the reason"),
    Field("from_message_number", "bigint", "dead_letter: the number of the original message"),
    Field("death_count", "bigint", "dead_letter: number of deaths in this queue for this reason"),
    Field("properties", "string", "publish: the properties as JSON"),
    Field("body_bytes", "bigint", "publish and deliver: size of the body"),
    Field("body", "binary", "publish: the body, unless archived without bodies"),
    Field("trace_queue", "string", "the stream that the event was read from"),
    Field("trace_offset", "bigint", "the offset of its record"),
    Field("trace_index", "int", "its place in the record; with queue and offset it identifies and orders events"),
)
SCHEMA: Final = ", ".join(f"{field.name} {field.type}" for field in FIELDS)

# The properties of a message that is published again, with their types in the JSON of the column `properties`. Headers
# become text, as the format `amqp` represents them: a number is its digits, a table is JSON.
PROPERTIES: Final = {
    **dict.fromkeys(
        (
            *("content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id"),
            *("type", "app_id"),
        ),
        "string",
    ),
    "delivery_mode": "int",
    "priority": "int",
    "timestamp": "bigint",
    "headers": "map<string,string>",
}

POISONED: Final = (
    Field("reason", "string", "why it is not an event"),
    Field("archived_at", "timestamp", "time of reading"),
    Field("trace_queue", "string", "the stream that it was read from"),
    Field("trace_offset", "bigint", "its offset in the stream"),
    Field("routing_key", "string", "as published"),
    Field("headers", "map<string,string>", "as published"),
    Field("body", "binary", "as published"),
)
_TYPES: Final = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
# The columns of an event as Arrow's.
ARROW: Final = pa.schema([pa.field(field.name, _TYPES[field.type]) for field in FIELDS])
# Beside the columns of an event: why a message is not one, and the message.
_POISON: Final = "poison string, raw struct<routing_key: string, headers: map<string,string>, body: binary>"
SOURCE_SCHEMA: Final = f"{SCHEMA}, {_POISON}"
POISONED_SCHEMA: Final = ", ".join(f"{field.name} {field.type}" for field in POISONED)
POISONED_ARROW: Final = pa.schema([pa.field(field.name, _TYPES[field.type]) for field in POISONED])


def timed(rows: DataFrame) -> DataFrame:
    """Return rows of the trace with the time of reading where no other is known."""
    from pyspark.sql import functions as F

    # `current_timestamp` is constant within a batch of a streaming query, also when the batch is repeated.
    return rows.withColumn("time", F.coalesce("time", F.current_timestamp()))


def events_of(parsed: DataFrame) -> DataFrame:
    """Return the valid events."""
    return parsed.where("poison IS NULL").drop("poison", "raw")


def poisoned_of(parsed: DataFrame) -> DataFrame:
    """Return the invalid rows, with the columns `POISONED`."""
    from pyspark.sql import functions as F

    return parsed.where("poison IS NOT NULL").select(
        F.col("poison").alias("reason"),
        F.current_timestamp().alias("archived_at"),
        "trace_queue",
        "trace_offset",
        "raw.routing_key",
        "raw.headers",
        "raw.body",
    )
