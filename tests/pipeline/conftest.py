"""Slow fixtures shared by tests of the pipeline: the session, a lake and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_slice import EVERYTHING
from amqp_broker.pipeline.local_report import LocalReport
from amqp_broker.pipeline.report_tables import Report
from amqp_broker.pipeline.spark_lake import SparkLake
from amqp_broker.pipeline.spark_report import SparkReport
from tests.pipeline import generated
from tests.pipeline.generated import EVENTS, Event
from tests.spark_session import spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["spark"]


@pytest.fixture(scope="package")
def events() -> list[Event]:
    return list(generated.log(EVENTS))


@pytest.fixture(scope="package")
def folder(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a lake with the events."""
    folder = tmp_path_factory.mktemp("lake")
    generated.write(events, folder)
    return str(folder)


@pytest.fixture(scope="package")
def lake(folder: str) -> Lake:
    return Lake(folder)


@pytest.fixture(scope="package")
def report(lake: Lake) -> Iterator[Report]:
    """Yield the report on all events, computed in this process."""
    with LocalReport(lake) as report:
        yield report


@pytest.fixture(scope="package")
def spark_report(spark: SparkSession, folder: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkReport]:
    """Yield the report on all events, computed and written by Spark."""
    with SparkReport(SparkLake(spark, folder).read("events", EVERYTHING)) as report:
        report.write(str(tmp_path_factory.mktemp("report")))
        yield report
