"""The Parquet files of a batch: one a date, written as the rows come."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetWriter

from amqp_broker.pipeline.lake_table import PARTITION

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


class BatchFiles:
    """Files in a folder of a table; `time` is the column that decides a row's date, `count` the rows so far."""

    def __init__(self, files: FileSystem, folder: str, schema: pa.Schema, time: str) -> None:
        self.files = files
        self.folder = folder
        self.schema = schema
        self.time = time
        self.count = 0
        self._writers: dict[date, ParquetWriter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Complete the files."""
        for writer in self._writers.values():
            writer.close()

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows with the columns of the schema."""
        self.count += len(rows)
        dates = rows.column(self.time).cast(pa.date32())
        for day in pc.unique(dates).to_pylist():
            self._writer(day).write_batch(rows.filter(pc.equal(dates, day)))

    def _writer(self, day: date) -> ParquetWriter:
        if day not in self._writers:
            path = f"{self.folder}/{PARTITION}={day.isoformat()}/part-0.parquet"
            self._writers[day] = ParquetWriter(path, self.schema, filesystem=self.files)
        return self._writers[day]
