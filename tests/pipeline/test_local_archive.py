"""The archive of this process is a query that Spark continues, and continues one of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.local_archive import LocalArchive
from amqp_broker.pipeline.query_checkpoint import QueryCheckpoint
from amqp_broker.pipeline.spark_archive import SparkArchive
from amqp_broker.pipeline.spark_lake import SparkLake
from pyspark_amqp.errors import DataLoss
from tests.pipeline.traced_broker import channel_at, trace_to, work, written_events
from tests.running import RunningServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def broker() -> Iterator[RunningServer]:
    with RunningServer() as running:
        trace_to(running)
        with channel_at(running.url) as channel:
            work(channel, 5)
        written_events(running)
        yield running


def test_each_engine_continues_the_archive_of_the_other(
    spark: SparkSession, broker: RunningServer, tmp_path: Path
) -> None:
    options = {"url": broker.url, "queue": "trace", "maxOffsetsPerTrigger": "1"}
    LocalArchive(Lake(str(tmp_path)), options).run()
    with channel_at(broker.url) as channel:
        work(channel, 5)
        written_events(broker)
    second = SparkArchive(SparkLake(spark, str(tmp_path)), options)
    second.run()
    with channel_at(broker.url) as channel:
        work(channel, 5)
        written_events(broker)
    third = LocalArchive(Lake(str(tmp_path)), options)
    third.run()
    rows = Lake(str(tmp_path)).dataset().to_table(columns=["trace_offset", "trace_index"]).to_pylist()
    assert len({tuple(row.values()) for row in rows}) == len(rows) == written_events(broker)
    assert second.events == third.events == 20


@pytest.mark.parametrize("has_rows", [True, False])
def test_a_batch_that_was_planned_is_read_again(broker: RunningServer, tmp_path: Path, has_rows: bool) -> None:
    """The process died before it wrote the rows, or after their commit."""
    options = {"url": broker.url, "queue": "trace"}
    LocalArchive(Lake(str(tmp_path)), options).run()
    lake = Lake(str(tmp_path))
    if not has_rows:
        [file] = lake.data_files()
        for path in tmp_path.glob("events/*"):
            for part in [path, *path.rglob("*")][::-1]:
                part.unlink() if part.is_file() else part.rmdir()
        assert file.rows == 20
        lake.create()
    (tmp_path / "checkpoints" / "trace" / "commits" / "0").unlink()
    again = LocalArchive(lake, options)
    again.run()
    assert again.events == (0 if has_rows else 20)
    assert lake.dataset().count_rows() == 20
    assert QueryCheckpoint(lake.files, "checkpoints/trace").committed() == 0


def test_lost_records_of_the_stream_are_an_error(broker: RunningServer, tmp_path: Path) -> None:
    options = {"url": broker.url, "queue": "trace"}
    LocalArchive(Lake(str(tmp_path)), options).run()
    with channel_at(broker.url) as channel:
        channel.queue_delete("trace")
    trace_to(broker)
    with pytest.raises(DataLoss, match="queue 'trace' ends before offset"):
        LocalArchive(Lake(str(tmp_path)), options).run()
