"""Publishing again: messages of a slice of the lake, with the bodies and properties that they were published with.

They are written by the format `amqp`, which waits for their confirms. Headers are published as text, for that is what
the format has of them: a number as its digits, a table as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What the sink takes, and how it stands in the JSON of the column `properties`.
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


def messages(events: DataFrame, exchange: str | None = None, routing_key: str | None = None) -> DataFrame:
    """The publishes among events in their order, of one exchange or with one key, as rows for the sink.

    One partition, since there is no order between several. Events that were archived without bodies are left out.
    """
    from pyspark.sql import functions as F

    published = events.where("event = 'publish' AND body IS NOT NULL")
    for column, value in (("exchange", exchange), ("routing_key", routing_key)):
        if value is not None:
            published = published.where(F.col(column) == value)
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in PROPERTIES.items())
    told = published.withColumn("told", F.from_json("properties", schema))
    columns = [F.col(f"told.{name}").alias(name) for name in PROPERTIES if name != "timestamp"]
    columns.append(F.timestamp_seconds("told.timestamp").alias("timestamp"))
    ordered = told.repartition(1).sortWithinPartitions("time", "trace_offset")
    return ordered.select("body", F.coalesce("routing_key", F.lit("")).alias("routing_key"), *columns)


def publish(rows: DataFrame, options: Mapping[str, str]) -> int:
    """Publish these rows by the sink's options (pyspark_amqp); returns how many, all of them confirmed."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    counted = rows.observe(seen, F.count("*").alias("rows"))
    # A message without an id stays one.
    counted.write.format("amqp").options(**{"messageId": "column", **options}).mode("append").save()
    return int(seen.get["rows"])
