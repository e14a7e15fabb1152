"""The events of a trace as rows: the columns, and their sources in a message of the trace.

The routing key of a trace message is an event and a name (`deliver.orders`); its headers have the rest
(broker/observe/trace.py). RabbitMQ's firehose has only `publish` and `deliver`, without numbers and times. A message
that is not a complete event is *poisoned*: it goes to a separate table with a `reason`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The columns that are read from the stream with the format `amqp` of pyspark_amqp.
TRACE_SCHEMA: Final = (
    "body binary, queue string, routing_key string, offset bigint, headers map<string,string>, error string"
)
EVENTS: Final = ("publish", "deliver", "ack", "nack", "confirm", "return", "expire", "drop", "dead_letter")
# Events of an exchange; the others are events of a queue.
OF_EXCHANGES: Final = ("publish", "confirm", "return")
# The last microsecond of the year 9999, Spark's last date.
TIME_US_MAX: Final = 253_402_300_799_999_999


@dataclass(frozen=True)
class Field:
    """A column: its Spark type, its meaning, and its header if it comes from a single one."""

    name: str
    type: str
    meaning: str
    header: str = ""


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
    Field("node", "string", "the broker's name", "node"),
    Field("vhost", "string", "the vhost of the event", "vhost"),
    Field(
        "numbered_since_us",
        "bigint",
        "the broker's run, as the time of its first numbered message",
        "numbered_since_us",
    ),
    Field("message_number", "bigint", "the message's number in that run; NULL if unknown", "message_number"),
    Field("exchange", "string", "the exchange that the message was published to", "exchange_name"),
    Field("routing_key", "string", "its (first) routing key"),
    Field("queue", "string", "the queue of the event; NULL for publish, confirm and return"),
    Field(
        "routed_queues",
        "array<string>",
        "publish and dead_letter: the queues that receive the message",
        "routed_queues",
    ),
    Field("connection", "string", "name of the connection that caused the event", "connection"),
    Field("channel", "int", "its channel", "channel"),
    Field("user", "string", "its user", "user"),
    Field("redelivered", "boolean", "deliver: whether it is a redelivery", "redelivered"),
    Field("no_ack", "boolean", "deliver: whether no ack follows", "no_ack"),
    Field("requeue", "boolean", "nack: whether the message returns to the queue", "requeue"),
    Field("is_ack", "boolean", "confirm: whether it is an ack", "ack"),
    Field("publish_number", "bigint", "confirm: the delivery tag", "delivery_tag"),
    Field("reply_code", "int", "return: the reply code", "reply_code"),
    Field("reply_text", "string", "return: the reply text", "reply_text"),
    Field("reason", "string", "drop and dead_letter: the reason", "reason"),
    Field("from_message_number", "bigint", "dead_letter: the number of the original message", "from_message_number"),
    Field("death_count", "bigint", "dead_letter: number of deaths in this queue for this reason", "death_count"),
    Field("properties", "string", "publish: the properties as JSON", "properties"),
    Field("body_bytes", "bigint", "publish and deliver: size of the body"),
    Field("body", "binary", "publish: the body, unless archived without bodies"),
    Field("trace_queue", "string", "the stream that the event was read from"),
    Field("trace_offset", "bigint", "its offset; with `trace_queue` it identifies and orders events"),
)
SCHEMA: Final = ", ".join(f"{field.name} {field.type}" for field in FIELDS)

POISONED: Final = (
    Field("reason", "string", "why it is not an event"),
    Field("archived_at", "timestamp", "time of reading"),
    Field("trace_queue", "string", "the stream that it was read from"),
    Field("trace_offset", "bigint", "its offset in the stream"),
    Field("routing_key", "string", "as published"),
    Field("headers", "map<string,string>", "as published"),
    Field("body", "binary", "as published"),
)
POISONED_SCHEMA: Final = ", ".join(f"{field.name} {field.type}" for field in POISONED)


def parse(rows: DataFrame, with_bodies: bool = True) -> DataFrame:
    """Return rows of the stream (`TRACE_SCHEMA`) as events (`FIELDS`) with `poison`, the reason if a row is invalid."""
    from pyspark.sql import functions as F

    event = F.substring_index("routing_key", ".", 1)
    columns = [_from_header(field).alias(field.name) for field in FIELDS if field.header]
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


def _from_header(field: Field) -> Column:
    """Return a header cast to its column's type; NULL if it is missing or invalid (`_poison` distinguishes these)."""
    from pyspark.sql import functions as F

    text = F.col("headers")[field.header]
    if field.type.startswith("array"):
        return F.from_json(text, field.type)
    return text if field.type == "string" else text.try_cast(field.type)


def _message_time() -> Column:
    """Return the time from the publisher or RabbitMQ's message interceptor: a firehose event has no time."""
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
    # `current_timestamp` is constant within a batch of a streaming query, also when the batch is repeated.
    from pyspark.sql import functions as F

    microseconds = F.coalesce(_broker_time(), _message_time())
    return F.coalesce(
        F.timestamp_micros(F.when(microseconds.between(0, TIME_US_MAX), microseconds)), F.current_timestamp()
    )


def _time_source() -> Column:
    from pyspark.sql import functions as F

    return (
        F.when(_broker_time().isNotNull(), "broker").when(_message_time().isNotNull(), "message").otherwise("archive")
    )


def _poison() -> Column:
    """Return the first reason why a row is not an event, or NULL."""
    from pyspark.sql import functions as F

    headers, event = F.col("headers"), F.col("event")
    reason = F.when(F.col("error").isNotNull(), F.col("error"))
    reason = reason.when(F.col("routing_key").isNull(), F.lit("the routing key is missing"))
    reason = reason.when(~event.isin(*EVENTS), F.concat(F.lit("unknown event '"), event, F.lit("'")))
    for header in ("vhost", "exchange_name"):
        reason = reason.when(headers.isNull() | headers[header].isNull(), F.lit(f"header '{header}' is missing"))
    numbers = [(field.header, field.type, F.col(field.name)) for field in FIELDS if field.header]
    numbers.append(("time_us", "bigint", _broker_time()))
    for header, type_, value in numbers:
        if type_ != "string":
            is_wrong = headers[header].isNotNull() & value.isNull()
            what = F.concat(F.lit(f"header '{header}' is not a valid {type_}: "), F.substring(headers[header], 1, 80))
            reason = reason.when(is_wrong, what)
    is_beyond = ~_broker_time().between(0, TIME_US_MAX)
    return reason.when(is_beyond, F.concat(F.lit("header 'time_us' is not a valid time: "), headers["time_us"]))
