"""Jobs of Spark, for many events and for clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amqp_broker.pipeline.engine import Engine
from amqp_broker.pipeline.lake_slice import Replayed, Slice
from amqp_broker.pipeline.lake_table import PARTITION
from amqp_broker.pipeline.spark_archive import SparkArchive
from amqp_broker.pipeline.spark_lake import SparkLake
from amqp_broker.pipeline.spark_replay import messages, publish
from amqp_broker.pipeline.spark_report import SparkReport

if TYPE_CHECKING:
    from amqp_broker.pipeline.archive import Archive
    from amqp_broker.pipeline.report_tables import Report


class SparkEngine(Engine):
    """The engine of a lake in Spark's session."""

    lake: SparkLake

    def __init__(self, lake: SparkLake) -> None:
        self.lake = lake

    def archive(self, options: Mapping[str, str], job: str, *, with_bodies: bool) -> Archive:
        return SparkArchive(self.lake, options, job, with_bodies=with_bodies)

    def report(self, part: Slice) -> Report:
        return SparkReport(self.lake.read("events", part))

    def export(self, part: Slice, target: str) -> int:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        seen = Observation()
        events = self.lake.read("events", part).observe(seen, F.count("*").alias("rows"))
        events.withColumn(PARTITION, F.to_date("time")).write.partitionBy(PARTITION).mode("append").parquet(target)
        return int(seen.get["rows"])

    def replay(self, replayed: Replayed, options: Mapping[str, str]) -> int:
        rows = messages(self.lake.read("events", replayed.part), replayed.exchange, replayed.routing_key)
        return publish(rows.drop("routing_key") if "routingKey" in options else rows, options)
