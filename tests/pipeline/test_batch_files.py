"""The rows of a batch go to a file for each date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from amqp_broker.pipeline.batch_files import BatchFiles
from amqp_broker.pipeline.lake_files import files_at

SCHEMA = pa.schema({"time": pa.timestamp("us", tz="UTC"), "number": pa.int64()})
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)


def test_each_date_has_one_file_whatever_the_order_of_rows(tmp_path: Path) -> None:
    files = BatchFiles(files_at(str(tmp_path), {}), "batch", SCHEMA, "time")
    with files:
        for first in (0, 4):
            times = [MIDNIGHT + timedelta(hours=(-1) ** number) for number in range(first, first + 4)]
            files.write(pa.RecordBatch.from_pydict({"time": times, "number": range(first, first + 4)}, SCHEMA))
        files.write(pa.RecordBatch.from_pydict({"time": [], "number": []}, SCHEMA))
    assert files.count == 8
    found = {
        path.parent.name: pq.ParquetFile(path).read()["number"].to_pylist() for path in tmp_path.rglob("*.parquet")
    }
    assert found == {"date=2026-11-21": [1, 3, 5, 7], "date=2026-11-22": [0, 2, 4, 6]}
