"""Both engines do the same jobs with equal results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as arrow

from amqp_broker.pipeline.engine import Engine
from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_slice import EVERYTHING, Slice
from amqp_broker.pipeline.local_engine import LocalEngine
from amqp_broker.pipeline.spark_engine import SparkEngine
from amqp_broker.pipeline.spark_lake import SparkLake
from tests.pipeline.generated import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def exported(engine: Engine, part: Slice, target: Path) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of exported events, and their rows in the order of the trace."""
    count = engine.export(part, str(target))
    rows = arrow.dataset(target, partitioning="hive").to_table().sort_by("trace_offset").to_pylist()
    return count, rows


def test_both_engines_export_the_same_rows(
    spark: SparkSession, folder: str, events: list[Event], tmp_path: Path
) -> None:
    ours = exported(LocalEngine(Lake(folder)), EVERYTHING, tmp_path / "local")
    theirs = exported(SparkEngine(SparkLake(spark, folder)), EVERYTHING, tmp_path / "spark")
    assert ours[0] == theirs[0] == len(ours[1]) == len(events)
    assert ours[1] == theirs[1]
    assert {path.parent.name for path in tmp_path.glob("*/*/*.parquet")} == {"date=2026-09-21"}
