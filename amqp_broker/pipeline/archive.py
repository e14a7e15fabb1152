"""Archiving: a streaming query from the trace's stream into the lake, each event once.

The checkpoint knows which offsets a batch had, so a batch that is done again has the same rows, and `Lake.write`
replaces what it wrote. Events and what is poisoned are two tables, and a batch is read again for the second one only
where there is something to put there.

RabbitMQ's firehose does not reach streams (seen with 3.10.8), so there it is a classic queue's. Messages of a batch
that failed come again in a later one, and what the batch wrote is discarded; only a process that dies between the end
of a batch and its acks has that batch twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.pipeline.events import TRACE_SCHEMA, events_of, parse, poisoned_of
from amqp_broker.pipeline.lake import TABLES, Lake, Piece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# How many events a batch has at most: what bounds memory, and what is done again after a crash.
BATCH_EVENTS_MAX: Final = 250_000
POLL_S: Final = 0.5
JOB_CHARACTERS: Final = 8


@dataclass(frozen=True)
class Progress:
    """How far an archive is: rows since it began, rows a second in the last batch, and how many are still to come."""

    rows: int
    rows_per_s: float
    behind: int


@dataclass
class Archive:
    """A job that is about to run, or runs; `events` and `poisoned` are what it has written so far.

    `options` are the source's (pyspark_amqp), `queue` among them. Two jobs with one `job` must not run together.
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
        """Archive what is there, or (`follow`) also what comes, until the query ends or this thread is interrupted.

        Raises pyspark's StreamingQueryException when a batch fails; the next run goes on with that batch.
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
            options.setdefault("maxOffsetsPerTrigger", str(BATCH_EVENTS_MAX))
            options.setdefault("minPartitions", str(self.spark.sparkContext.defaultParallelism))
        rows = self.spark.readStream.format("amqp").schema(TRACE_SCHEMA).options(**options).load()
        writer = rows.writeStream.foreachBatch(self._write).queryName(f"archive {self.job}")
        writer = writer.option("checkpointLocation", self.lake.checkpoint(self.job))
        if follow:
            return writer.trigger(processingTime=f"{every_s} seconds").start()
        return writer.trigger(availableNow=True).start()

    def _write(self, batch: DataFrame, number: int) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        # Spark's name for the query is in its checkpoint, so it is the same after a restart, and no other job's.
        query_id = self.spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert query_id is not None
        is_first, self._query_id = not self._query_id, query_id.replace("-", "")[:JOB_CHARACTERS]
        piece = Piece(self._query_id, number, number)
        if is_first and not self.is_stream:
            for table in TABLES:
                self.lake.discard(table, piece)
        seen = Observation()
        parsed = parse(batch, self.with_bodies)
        counted = parsed.observe(seen, F.count("*").alias("rows"), F.count("poison").alias("poisoned"))
        self.lake.write("events", events_of(counted), "time", piece)
        found: dict[str, Any] = seen.get
        if found["poisoned"]:
            self.lake.write("poisoned", poisoned_of(parsed), "archived_at", piece)
        self.events += found["rows"] - found["poisoned"]
        self.poisoned += found["poisoned"]
        # Spark plans a batch when the one before it is done for good: what came before this one is not done again.
        for table in TABLES:
            self.compacted += self.lake.compact(table, self._query_id, number)


def progress_of(query: StreamingQuery) -> tuple[float, int] | None:
    """Rows a second, and how many offsets are still to come; None before the first batch."""
    last = query.lastProgress
    if last is None:
        return None
    source = last["sources"][0]
    rate = float(source.get("processedRowsPerSecond") or 0.0)
    return rate, max(0, _next_offset(source.get("latestOffset")) - _next_offset(source.get("endOffset")))


def _next_offset(offsets: Any) -> int:
    """Of what the source says as JSON: the next offset by queue."""
    if isinstance(offsets, str):
        offsets = json.loads(offsets)
    return sum(offsets.values()) if isinstance(offsets, dict) else 0
