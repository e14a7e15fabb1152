"""An archive in this process, without Spark's engine and without Java.

It reads the queue by the parts of Spark's source (trace_source.py) that plan and read a batch.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from amqp_broker.pipeline.archive import Archive, OnProgress, Progress
from amqp_broker.pipeline.batch_files import BatchFiles
from amqp_broker.pipeline.event_rows import ARROW, POISONED_ARROW
from amqp_broker.pipeline.lake import COLUMNS, TIMES
from amqp_broker.pipeline.query_checkpoint import PlannedBatch, QueryCheckpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import DataSourceStreamReader

_MICROS: Final = pa.timestamp("us", tz="UTC")


class LocalArchive(Archive):
    """A job in this process. `run` raises the errors of pyspark_amqp when a batch fails."""

    def _work(self, follow: bool, every_s: int, on_progress: OnProgress | None) -> None:
        checkpoint = QueryCheckpoint(self.lake.files, f"checkpoints/{self.job}")
        reader = self._reader(follow)
        try:
            start, number = self._resumed(reader, checkpoint)
            while True:
                began = time.monotonic()
                end = reader.latestOffset(start, reader.getDefaultReadLimit())
                if end != start:
                    batch = PlannedBatch(number, end, int(time.time() * 1000))
                    checkpoint.plan(batch)
                    rows = self._store(reader, checkpoint, start, batch)
                    start, number = end, number + 1
                    if on_progress is not None:
                        rows_per_s = rows / max(time.monotonic() - began, 0.001)
                        on_progress(_progress(self.events + self.poisoned, rows_per_s, reader, end))
                elif not follow:
                    return
                if follow:
                    time.sleep(max(0.0, began + every_s - time.monotonic()))
        finally:
            reader.stop()

    def _reader(self, follow: bool) -> DataSourceStreamReader:
        # Spark's package is imported only for a job.
        from pyspark.sql.types import StructType

        from amqp_broker.pipeline.trace_source import TraceSource

        options = dict(self.options)
        if not self.is_stream and "://" not in self.lake.path:
            # A batch is acked as soon as it is committed.
            options["checkpointLocation"] = self.lake.checkpoint(self.job)
        reader = TraceSource(options).streamReader(StructType())
        if not follow:
            reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
        return reader

    def _resumed(self, reader: DataSourceStreamReader, checkpoint: QueryCheckpoint) -> tuple[dict[str, int], int]:
        """Return the offsets and the number of the next batch, after one that was not committed."""
        batch = checkpoint.planned()
        if batch is None:
            return reader.initialOffset(), 0
        if batch.number > checkpoint.committed():
            before = checkpoint.planned(batch.number - 1)
            self._store(reader, checkpoint, reader.initialOffset() if before is None else before.end, batch)
        return batch.end, batch.number + 1

    def _store(
        self, reader: DataSourceStreamReader, checkpoint: QueryCheckpoint, start: dict[str, int], batch: PlannedBatch
    ) -> int:
        """Write a batch to the tables that lack it, commit it, and return the number of its rows."""
        query, number = checkpoint.query, batch.number
        self._begin_batch(query, number)
        tables = {name: table for name, table in self.lake.tables.items() if not self._has(name, query, number)}
        folders = {name: table.new_folder(query, number) for name, table in tables.items()}
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(BatchFiles(self.lake.files, f"{name}/{folder}", COLUMNS[name], TIMES[name]))
                for name, folder in folders.items()
            }
            for rows in _split(reader, start, batch):
                for name, written in files.items():
                    written.write(rows[name])
        counts = {
            name: table.commit(folders[name], {query: number}, self.name)
            for name, table in tables.items()
            if files[name].count or name == "events"
        }
        self.events += counts.get("events", 0)
        self.poisoned += counts.get("poisoned", 0)
        checkpoint.commit(number)
        return sum(counts.values())


def _progress(rows: int, rows_per_s: float, reader: DataSourceStreamReader, end: dict[str, int]) -> Progress:
    latest: dict[str, Any] = reader.reportLatestOffset() or {}
    behind = sum(tail - end.get(queue, 0) for queue, tail in latest.items() if isinstance(tail, int))
    return Progress(rows, rows_per_s, max(0, behind))


def _split(
    reader: DataSourceStreamReader, start: dict[str, int], batch: PlannedBatch
) -> Iterator[dict[str, pa.RecordBatch]]:
    """Yield the rows of a batch by their tables."""
    now = pa.scalar(batch.time_ms * 1000, pa.int64()).cast(_MICROS)
    for partition in reader.partitions(start, batch.end):
        for rows in cast("Iterator[pa.RecordBatch]", reader.read(partition)):
            is_event = pc.is_null(rows.column("poison"))
            good, bad = rows.filter(is_event), rows.filter(pc.invert(is_event))
            times = pc.fill_null(good.column("time"), now)
            events = [times if name == "time" else good.column(name) for name in ARROW.names]
            raw = bad.column("raw")
            poisoned = {
                "reason": bad.column("poison"),
                "archived_at": pa.repeat(now, len(bad)),
                **{name: bad.column(name) for name in ("trace_queue", "trace_offset")},
                **{name: pc.struct_field(raw, name) for name in ("routing_key", "headers", "body")},
            }
            yield {
                "events": pa.RecordBatch.from_arrays(events, schema=ARROW),
                "poisoned": pa.RecordBatch.from_arrays(list(poisoned.values()), schema=POISONED_ARROW),
            }
