"""Spark does the jobs of a lake; test_engine.py compares its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.pipeline.lake_slice import Slice
from amqp_broker.pipeline.spark_archive import SparkArchive
from amqp_broker.pipeline.spark_engine import SparkEngine
from amqp_broker.pipeline.spark_lake import SparkLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_archive_reads_with_all_cores(spark: SparkSession, folder: str) -> None:
    archive = SparkEngine(SparkLake(spark, folder)).archive({"queue": "a"}, "job", with_bodies=True)
    assert isinstance(archive, SparkArchive)
    assert archive.options["minPartitions"] == str(spark.sparkContext.defaultParallelism)


def test_a_report_of_a_slice_has_its_events(spark: SparkSession, folder: str) -> None:
    with SparkEngine(SparkLake(spark, folder)).report(Slice(vhost="plain")) as report:
        assert [row["vhost"] for row in report.select("SELECT vhost FROM summary")] == ["plain"]
