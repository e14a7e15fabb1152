"""Archiving: a streaming query that writes each event of the trace's stream to the lake once.

The checkpoint stores the offsets of each batch, so a repeated batch has the same rows, and `Lake.write` replaces its
earlier files. Events and poisoned messages are two tables; a batch is read again for the second one only if it has
poisoned messages.

RabbitMQ's firehose does not reach streams (as of 3.10.8), so a classic queue takes its place. The messages of a failed
batch return in a later one, and its files are discarded. Only a process that dies between the end of a batch and its
acks writes that batch twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.pipeline.event_rows import events_of, poisoned_of, timed
from amqp_broker.pipeline.lake import TABLES, Lake, Piece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Limit of records in a batch, which bounds memory and the repeated work after a crash; one has up to 4,096 events.
BATCH_RECORDS_MAX: Final = 500
POLL_S: Final = 0.5
JOB_CHARACTERS: Final = 8


@dataclass(frozen=True)
class Progress:
    """Progress of an archive: rows so far, rows per second in the last batch, and rows still to be read."""

    rows: int
    rows_per_s: float
    behind: int


@dataclass
class Archive:
    """A job; `events` and `poisoned` count the rows written so far.

    `options` are those of the source (pyspark_amqp), including `queue`. Two jobs with the same `job` must not run at
    the same time.
    """

    spark: SparkSession
    lake: Lake
    options: Mapping[str, str]
    job: str = "trace"
    with_bodies: bool = True
    events: int = 0
    poisoned: int = 0
    compacted: int = 0
    _query_id: str = field(default="", repr=False)

    @property
    def is_stream(self) -> bool:
        return self.options.get("queueType", "stream") == "stream"

    def run(
        self, *, follow: bool = False, every_s: int = 10, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        """Archive all events, or with `follow` new ones as well until this thread is interrupted.

        Raise pyspark's StreamingQueryException when a batch fails; the next run repeats that batch.
        """
        query = self._start(follow, every_s)
        try:
            while not query.awaitTermination(POLL_S):  # type: ignore[arg-type]  # its stub says int
                if on_progress is not None and (progress := progress_of(query)) is not None:
                    on_progress(Progress(self.events + self.poisoned, *progress))
        finally:
            query.stop()
        if not follow:
            for table in TABLES:
                self.compacted += self.lake.compact(table, self._query_id, 1 << 62, is_over=True)

    def _start(self, follow: bool, every_s: int) -> StreamingQuery:
        options = {"queueType": "stream", **self.options}
        if self.is_stream:
            options.setdefault("startingOffsets", "earliest")
            options.setdefault("maxOffsetsPerTrigger", str(BATCH_RECORDS_MAX))
            options.setdefault("minPartitions", str(self.spark.sparkContext.defaultParallelism))
        # Spark's sources are imported only with Spark.
        from amqp_broker.pipeline.trace_source import TraceSource

        self.spark.dataSource.register(TraceSource)
        options["bodies"] = str(self.with_bodies).lower()
        rows = self.spark.readStream.format(TraceSource.name()).options(**options).load()
        writer = rows.writeStream.foreachBatch(self._write).queryName(f"archive {self.job}")
        writer = writer.option("checkpointLocation", self.lake.checkpoint(self.job))
        if follow:
            return writer.trigger(processingTime=f"{every_s} seconds").start()
        return writer.trigger(availableNow=True).start()

    def _write(self, batch: DataFrame, number: int) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        # The checkpoint stores Spark's id of the query, so it is unique to this job and survives a restart.
        query_id = self.spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert query_id is not None
        is_first, self._query_id = not self._query_id, query_id.replace("-", "")[:JOB_CHARACTERS]
        piece = Piece(self._query_id, number, number)
        if is_first and not self.is_stream:
            for table in TABLES:
                self.lake.discard(table, piece)
        seen = Observation()
        parsed = timed(batch)
        counted = parsed.observe(seen, F.count("*").alias("rows"), F.count("poison").alias("poisoned"))
        self.lake.write("events", events_of(counted), "time", piece)
        found: dict[str, Any] = seen.get
        if found["poisoned"]:
            self.lake.write("poisoned", poisoned_of(parsed), "archived_at", piece)
        self.events += found["rows"] - found["poisoned"]
        self.poisoned += found["poisoned"]
        # Spark plans a batch after it has committed the one before, so earlier batches are never repeated.
        for table in TABLES:
            self.compacted += self.lake.compact(table, self._query_id, number)


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
