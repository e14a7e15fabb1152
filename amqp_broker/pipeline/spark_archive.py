"""An archive as a streaming query of Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.pipeline.archive import Archive, OnProgress, Progress
from amqp_broker.pipeline.event_rows import events_of, poisoned_of, timed
from amqp_broker.pipeline.lake_table import LakeRefused
from amqp_broker.pipeline.spark_lake import SparkLake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S: Final = 0.5


class SparkArchive(Archive):
    """A job of Spark. `run` raises pyspark's StreamingQueryException when a batch fails."""

    lake: SparkLake

    def __init__(
        self, lake: SparkLake, options: Mapping[str, str], job: str = "trace", *, with_bodies: bool = True
    ) -> None:
        super().__init__(lake, options, job, with_bodies=with_bodies)
        if self.is_stream:
            self.options.setdefault("minPartitions", str(lake.spark.sparkContext.defaultParallelism))
        self._refusal: LakeRefused | None = None

    def _work(self, follow: bool, every_s: int, on_progress: OnProgress | None) -> None:
        query = self._start(follow, every_s)
        try:
            while not query.awaitTermination(POLL_S):  # type: ignore[arg-type]  # its stub says int
                if on_progress is not None and (progress := progress_of(query)) is not None:
                    on_progress(Progress(self.events + self.poisoned, *progress))
        except Exception:
            if self._refusal is not None:
                raise self._refusal from None
            raise
        finally:
            query.stop()

    def _start(self, follow: bool, every_s: int) -> StreamingQuery:
        # Spark's sources are imported only with Spark.
        from amqp_broker.pipeline.trace_source import TraceSource

        spark = self.lake.spark
        spark.dataSource.register(TraceSource)
        rows = spark.readStream.format(TraceSource.name()).options(**self.options).load()
        writer = rows.writeStream.foreachBatch(self._write).queryName(f"archive {self.job}")
        writer = writer.option("checkpointLocation", self.lake.checkpoint(self.job))
        if follow:
            return writer.trigger(processingTime=f"{every_s} seconds").start()
        return writer.trigger(availableNow=True).start()

    def _write(self, batch: DataFrame, number: int) -> None:
        # The checkpoint stores Spark's id of the query, so it is unique to this job and survives a restart.
        query = self.lake.spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert query is not None
        try:
            self._begin_batch(query, number)
            self._append(batch, query, number)
        except LakeRefused as error:
            # Spark surrounds the sentence with its own.
            self._refusal = error
            raise

    def _append(self, batch: DataFrame, query: str, number: int) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        # A batch is read again for the second table only if it has poisoned messages.
        seen = Observation()
        parsed = timed(batch)
        if not self._has("events", query, number):
            counted = parsed.observe(seen, F.count("poison").alias("poisoned"))
            self.events += self.lake.append("events", events_of(counted), query, number, self.name)
            if not seen.get["poisoned"]:
                return
        if not self._has("poisoned", query, number):
            self.poisoned += self.lake.append("poisoned", poisoned_of(parsed), query, number, self.name)


def progress_of(query: StreamingQuery) -> tuple[float, int] | None:
    """Return rows per second and the number of offsets still to be read; None before the first batch."""
    last = query.lastProgress
    if last is None:
        return None
    source = last["sources"][0]
    rate = float(source.get("processedRowsPerSecond") or 0.0)
    return rate, max(0, _next_offset(source.get("latestOffset")) - _next_offset(source.get("endOffset")))


def _next_offset(offsets: Any) -> int:
    """Return the sum of the next offsets of all queues, from the source's JSON."""
    if isinstance(offsets, str):
        offsets = json.loads(offsets)
    return sum(offsets.values()) if isinstance(offsets, dict) else 0
