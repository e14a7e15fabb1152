"""Spark's report is read from its files once they are written; test_report_tables.py has its figures."""

from __future__ import annotations

from datetime import timedelta

from amqp_broker.pipeline.report_tables import TABLES
from amqp_broker.pipeline.spark_report import SparkReport


def test_times_of_rows_are_in_utc(spark_report: SparkReport) -> None:
    [row, *_] = spark_report.select("SELECT first_at FROM summary")
    assert row["first_at"].utcoffset() == timedelta(0)


def test_tables_are_read_from_what_was_written(spark_report: SparkReport) -> None:
    assert list(spark_report.tables) == list(TABLES)
    assert all(len(table.inputFiles()) == 1 for table in spark_report.tables.values())
