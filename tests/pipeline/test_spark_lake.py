"""Other engines read a lake as Spark wrote it, and Spark reads a snapshot or a part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from amqp_broker.pipeline.event_rows import FIELDS, POISONED, POISONED_SCHEMA, SCHEMA
from amqp_broker.pipeline.lake_slice import Slice
from amqp_broker.pipeline.spark_lake import SparkLake
from tests.pipeline import delta_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)


def rows(spark: SparkSession, offsets: range, time: datetime = NOON) -> DataFrame:
    names = [field.name for field in spark.createDataFrame([], SCHEMA).schema]
    blank = dict.fromkeys(names)
    told = [{**blank, "time": time, "trace_queue": "t", "trace_offset": offset} for offset in offsets]
    return spark.createDataFrame([tuple(row[name] for name in names) for row in told], SCHEMA)


def offsets_in(events: DataFrame) -> list[int]:
    return sorted(row.trace_offset for row in events.select("trace_offset").collect())


def test_a_snapshot_stays_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(spark, str(tmp_path / "a lake"))
    assert (lake.exists(), offsets_in(lake.read())) == (False, [])
    lake.create()
    tomorrow = rows(spark, range(5, 8), NOON + timedelta(days=1))
    assert lake.append("events", rows(spark, range(5)).union(tomorrow), "job", 0, "me") == 8
    planned = lake.read()
    lake.append("events", rows(spark, range(8, 10)), "job", 1, "me")
    assert lake.tables["events"].compact() > 1
    assert offsets_in(planned) == list(range(8))
    assert offsets_in(lake.read()) == delta_log.offsets(Path(lake.path, "events")) == list(range(10))
    assert offsets_in(lake.read(part=Slice(since=NOON + timedelta(hours=13)))) == [5, 6, 7]
    assert offsets_in(lake.read(part=Slice(until=NOON + timedelta(hours=1)))) == [0, 1, 2, 3, 4, 8, 9]


def test_others_read_every_type_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    lake = SparkLake(spark, str(tmp_path))
    lake.create()
    names = ["time", "routed_queues", "body", "redelivered", "channel"]
    values = (NOON, ["q", "ü"], b"\0\xff", True, 7)
    given = dict(zip(names, values, strict=True))
    schema = spark.createDataFrame([], SCHEMA).schema
    row = tuple(given.get(field.name) for field in schema)
    lake.append("events", spark.createDataFrame([row], schema), "job", 0, "me")
    poisoned = spark.createDataFrame([("why", NOON, "t", 1, "k", {"a": "b"}, b"")], POISONED_SCHEMA)
    lake.append("poisoned", poisoned, "job", 0, "me")
    [found] = DeltaTable(f"{lake.path}/events").to_pyarrow_table().to_pylist()
    assert list(found) == [*(field.name for field in FIELDS), "date"]
    assert tuple(found[name] for name in names) == values
    [found] = DeltaTable(f"{lake.path}/poisoned").to_pyarrow_table(columns=[f.name for f in POISONED]).to_pylist()
    assert (found["headers"], found["archived_at"]) == ([("a", "b")], NOON)
