"""Slow fixtures shared by tests of the pipeline: the session, a lake and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amqp_broker.pipeline import report_tables
from amqp_broker.pipeline.lake import Lake
from tests.pipeline import generated
from tests.pipeline.generated import EVENTS, Event
from tests.spark_session import spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["spark"]


@pytest.fixture(scope="package")
def events() -> list[Event]:
    return list(generated.log(EVENTS))


@pytest.fixture(scope="package")
def lake(spark: SparkSession, events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("lake")
    generated.write(events, folder)
    return Lake(spark, str(folder))


@pytest.fixture(scope="package")
def written(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """Return the tables of the report of all events, as written."""
    folder = tmp_path_factory.mktemp("report")
    with report_tables.computed(spark, report_tables.slice_of(lake, None, None, None)) as computed:
        return report_tables.write(computed, str(folder))
