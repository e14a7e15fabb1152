"""The events of a trace as rows: what each column is, and where of a message of the trace it comes from.

A message of the trace has the event and a name for its routing key (`deliver.orders`) and says the rest in its headers
(amqp_broker/broker/trace.py). RabbitMQ's own firehose has `publish` and `deliver` only, without numbers and times.
What is no event, or not a whole one, is *poisoned*: `reason` says why, and it goes to a table of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What is read of the stream (the format `amqp` of pyspark_amqp), and what a poisoned row keeps of it.
TRACE_SCHEMA: Final = (
    "body binary, queue string, routing_key string, offset bigint, headers map<string,string>, error string"
)
EVENTS: Final = ("publish", "deliver", "ack", "nack", "confirm", "return", "expire", "drop", "dead_letter")
# Events that are told of an exchange; the others are told of a queue.
OF_EXCHANGES: Final = ("publish", "confirm", "return")
# The last microsecond of the year 9999: beyond it there is no date to keep an event under.
TIME_US_MAX: Final = 253_402_300_799_999_999


@dataclass(frozen=True)
class Field:
    """A column: its type in Spark's words, what it says, and the header that says it where one does so alone."""

    name: str
    type: str
    meaning: str
    header: str = ""


FIELDS: Final = (
    Field("time", "timestamp", "when it happened (UTC, µs)"),
    Field("time_source", "string", "who says so: `broker`, `message` (its timestamp) or `archive` (when it was read)"),
    Field(
        "event", "string", "`publish`, `deliver`, `ack`, `nack`, `confirm`, `return`, `expire`, `drop`, `dead_letter`"
    ),
    Field("node", "string", "the broker's name", "node"),
    Field("vhost", "string", "where it happened", "vhost"),
    Field("numbered_since_us", "bigint", "the broker's run: when it numbered its first message", "numbered_since_us"),
    Field("message_number", "bigint", "which message of that run; empty if the broker does not know", "message_number"),
    Field("exchange", "string", "where the message was published to", "exchange_name"),
    Field("routing_key", "string", "with which (first) key"),
    Field("queue", "string", "where it happened; empty of publish, confirm and return"),
    Field("routed_queues", "array<string>", "of publish and dead_letter: which queues get it", "routed_queues"),
    Field("connection", "string", "whose doing it was, by the connection's name", "connection"),
    Field("channel", "int", "on which of its channels", "channel"),
    Field("user", "string", "as whom", "user"),
    Field("redelivered", "boolean", "of deliver", "redelivered"),
    Field("no_ack", "boolean", "of deliver: no ack will follow", "no_ack"),
    Field("requeue", "boolean", "of nack: the message goes back", "requeue"),
    Field("is_ack", "boolean", "of confirm: the broker has taken the message over", "ack"),
    Field("publish_number", "bigint", "of confirm: the delivery tag", "delivery_tag"),
    Field("reply_code", "int", "of return", "reply_code"),
    Field("reply_text", "string", "of return", "reply_text"),
    Field("reason", "string", "of drop and dead_letter", "reason"),
    Field("from_message_number", "bigint", "of dead_letter: which message it was before", "from_message_number"),
    Field("death_count", "bigint", "of dead_letter: how often it has died so in this queue", "death_count"),
    Field("properties", "string", "of publish: its properties, as JSON", "properties"),
    Field("body_bytes", "bigint", "of publish and deliver"),
    Field("body", "binary", "of publish, unless bodies are left out"),
    Field("trace_queue", "string", "the stream that it was read from"),
    Field("trace_offset", "bigint", "and where in it: these two tell events apart, and their order"),
)
SCHEMA: Final = ", ".join(f"{field.name} {field.type}" for field in FIELDS)

POISONED: Final = (
    Field("reason", "string", "why it is no event"),
    Field("archived_at", "timestamp", "when it was read"),
    Field("trace_queue", "string", "the stream that it was read from"),
    Field("trace_offset", "bigint", "and where in it"),
    Field("routing_key", "string", "as published"),
    Field("headers", "map<string,string>", "as published"),
    Field("body", "binary", "as published"),
)
POISONED_SCHEMA: Final = ", ".join(f"{field.name} {field.type}" for field in POISONED)


def parse(rows: DataFrame, with_bodies: bool = True) -> DataFrame:
    """Rows of the stream (`TRACE_SCHEMA`) as events (`FIELDS`), beside them `poison`: why one is none, else NULL."""
    from pyspark.sql import functions as F

    event = F.substring_index("routing_key", ".", 1)
    columns = [_told(field).alias(field.name) for field in FIELDS if field.header]
    named = rows.select("*", event.alias("event"), *columns)
    is_publish = F.col("event") == "publish"
    has_body = F.col("event").isin("publish", "deliver")
    keys = F.from_json(F.col("headers")["routing_keys"], "array<string>")
    name = F.expr("substring(routing_key, length(event) + 2)")
    derived = {
        "time": _time(),
        "time_source": _time_source(),
        "message_number": F.when(F.col("message_number") > 0, F.col("message_number")),
        "routing_key": F.try_element_at(keys, F.lit(1)),
        "queue": F.when(~F.col("event").isin(*OF_EXCHANGES), name),
        "properties": F.when(is_publish, F.col("properties")),
        "body_bytes": F.when(has_body, F.octet_length("body").cast("bigint")),
        "body": F.when(is_publish & F.lit(with_bodies), F.col("body")),
        "trace_queue": rows["queue"],
        "trace_offset": rows["offset"],
    }
    kept = [derived.get(field.name, F.col(field.name)).alias(field.name) for field in FIELDS]
    raw = F.struct(rows["routing_key"], rows["headers"], rows["body"]).alias("raw")
    return named.select(*kept, _poison().alias("poison"), raw)


def events_of(parsed: DataFrame) -> DataFrame:
    """Those that are events."""
    return parsed.where("poison IS NULL").drop("poison", "raw")


def poisoned_of(parsed: DataFrame) -> DataFrame:
    """Those that are none, as `POISONED` has them."""
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


def _told(field: Field) -> Column:
    """A header as its column's type; NULL where it is missing or no such value (`_poison` tells these apart)."""
    from pyspark.sql import functions as F

    text = F.col("headers")[field.header]
    if field.type.startswith("array"):
        return F.from_json(text, field.type)
    return text if field.type == "string" else text.try_cast(field.type)


def _message_time() -> Column:
    """When its publisher, or RabbitMQ's message interceptor, says that a message was sent: a firehose has no time."""
    from pyspark.sql import functions as F

    properties = F.col("headers")["properties"]
    millis = F.get_json_object(properties, "$.headers.timestamp_in_ms").try_cast("bigint")
    seconds = F.get_json_object(properties, "$.timestamp").try_cast("bigint")
    microseconds = F.coalesce(millis * 1000, seconds * 1_000_000)
    return F.when(microseconds.between(1, TIME_US_MAX), microseconds)


def _broker_time() -> Column:
    from pyspark.sql import functions as F

    return F.col("headers")["time_us"].try_cast("bigint")


def _time() -> Column:
    # `current_timestamp` of a streaming query is its batch's, and the same when the batch is done again.
    from pyspark.sql import functions as F

    told = F.coalesce(_broker_time(), _message_time())
    return F.coalesce(F.timestamp_micros(F.when(told.between(0, TIME_US_MAX), told)), F.current_timestamp())


def _time_source() -> Column:
    from pyspark.sql import functions as F

    return (
        F.when(_broker_time().isNotNull(), "broker").when(_message_time().isNotNull(), "message").otherwise("archive")
    )


def _poison() -> Column:
    """The first reason for which a row is no event."""
    from pyspark.sql import functions as F

    headers, event = F.col("headers"), F.col("event")
    reason = F.when(F.col("error").isNotNull(), F.col("error"))
    reason = reason.when(F.col("routing_key").isNull(), F.lit("it has no routing key"))
    reason = reason.when(~event.isin(*EVENTS), F.concat(F.lit("no event is called '"), event, F.lit("'")))
    for header in ("vhost", "exchange_name"):
        reason = reason.when(headers.isNull() | headers[header].isNull(), F.lit(f"it has no header '{header}'"))
    numbers = [(field.header, field.type, F.col(field.name)) for field in FIELDS if field.header]
    numbers.append(("time_us", "bigint", _broker_time()))
    for header, type_, value in numbers:
        if type_ != "string":
            is_wrong = headers[header].isNotNull() & value.isNull()
            what = F.concat(F.lit(f"header '{header}' is no {type_}: "), F.substring(headers[header], 1, 80))
            reason = reason.when(is_wrong, what)
    is_beyond = ~_broker_time().between(0, TIME_US_MAX)
    return reason.when(is_beyond, F.concat(F.lit("header 'time_us' is no time: "), headers["time_us"]))
