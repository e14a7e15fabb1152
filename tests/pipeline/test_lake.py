"""A lake is found, and pyarrow reads its snapshots."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from amqp_broker.pipeline.lake import Lake, extent, place_of
from amqp_broker.pipeline.lake_slice import Slice
from tests.pipeline import generated
from tests.pipeline.generated import START_US, Event


def test_a_place_is_absolute_and_s3_is_s3a() -> None:
    assert place_of("lake/") == str(Path.cwd() / "lake")
    assert place_of("s3://bucket/lake/") == "s3a://bucket/lake"
    assert place_of("hdfs://host/lake") == "hdfs://host/lake"


def test_a_dataset_is_the_snapshot_of_its_time(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert (lake.exists(), lake.dataset().count_rows()) == (False, 0)
    generated.write([{"time_us": START_US, "trace_offset": 1}], tmp_path)
    planned = lake.dataset()
    generated.append(lake.tables["events"], [{"time_us": START_US, "trace_offset": 2}], "made", 1)
    assert lake.tables["events"].compact() == 2
    assert (planned.count_rows(), lake.dataset().count_rows()) == (1, 2)


def test_a_column_that_an_older_file_lacks_is_null(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    generated.write([{"time_us": START_US, "trace_offset": 1}], tmp_path)
    [file] = lake.data_files()
    import pyarrow.parquet as pq

    path = tmp_path / "events" / file.path
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["connection_name"]), path)
    assert lake.dataset().to_table().to_pylist()[0]["connection_name"] is None


def test_only_files_of_the_dates_of_a_slice_are_read(tmp_path: Path) -> None:
    day_us = 86_400_000_000
    generated.write([{"time_us": START_US + day * day_us, "trace_offset": day} for day in range(3)], tmp_path)
    second = datetime.fromtimestamp(START_US / 1e6 + 86_400, UTC)
    assert len(Lake(str(tmp_path)).data_files(part=Slice(second, second))) == 1


def test_the_query_of_a_job_is_in_its_checkpoint(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert lake.query_of("trace") == ""
    (tmp_path / "checkpoints" / "trace").mkdir(parents=True)
    (tmp_path / "checkpoints" / "trace" / "metadata").write_text('{"id":"abc"}', "utf-8")
    assert lake.query_of("trace") == "abc"


@pytest.mark.parametrize("name", ["some", "none"])
def test_the_extent_of_a_lake_is_a_sentence(lake: Lake, events: list[Event], tmp_path: Path, name: str) -> None:
    if name == "none":
        assert extent(Lake(str(tmp_path))) == "It has no events at all."
        return
    times = [datetime.fromtimestamp(end(event["time_us"] for event in events) // 1_000_000, UTC) for end in (min, max)]
    first, last = (f"{time:%Y-%m-%d %H:%M:%S}" for time in times)
    assert extent(lake) == f"It has {len(events):,} events, from {first} to {last} UTC."
