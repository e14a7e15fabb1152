"""Replay by Spark: the publishes of a slice of the lake, written by the format `amqp`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amqp_broker.pipeline.event_rows import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def messages(events: DataFrame, exchange: str | None = None, routing_key: str | None = None) -> DataFrame:
    """Return the publishes among events in order, for one exchange or routing key, as rows for the sink.

    The result has one partition, since rows of several have no order. Events archived without bodies are skipped.
    """
    from pyspark.sql import functions as F

    published = events.where("event = 'publish' AND body IS NOT NULL")
    for column, value in (("exchange", exchange), ("routing_key", routing_key)):
        if value is not None:
            published = published.where(F.col(column) == value)
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in PROPERTIES.items())
    parsed = published.withColumn("parsed", F.from_json("properties", schema))
    columns = [F.col(f"parsed.{name}").alias(name) for name in PROPERTIES if name != "timestamp"]
    columns.append(F.timestamp_seconds("parsed.timestamp").alias("timestamp"))
    ordered = parsed.repartition(1).sortWithinPartitions("time", "trace_offset", "trace_index")
    return ordered.select("body", F.coalesce("routing_key", F.lit("")).alias("routing_key"), *columns)


def publish(rows: DataFrame, options: Mapping[str, str]) -> int:
    """Publish rows with the sink's options (pyspark_amqp); return their number once all are confirmed."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    counted = rows.observe(seen, F.count("*").alias("rows"))
    # A message without an id gets none.
    counted.write.format("amqp").options(**{"messageId": "column", **options}).mode("append").save()
    return int(seen.get["rows"])
