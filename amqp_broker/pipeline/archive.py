"""Archiving: a streaming query that writes each event of the trace's stream to the lake once.

The checkpoint stores the offsets of each batch, so a repeated batch has the same rows; if the table has it already, it
is left out. Events and poisoned messages are two tables; a batch is read again for the second one only if it has
poisoned messages.

RabbitMQ's firehose does not reach streams (as of 3.10.8), so a classic queue takes its place. The messages of a failed
batch return in a later one, and its rows are discarded. Only a process that dies between the end of a batch and its
acks writes that batch twice.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.pipeline.archive_lock import locked
from amqp_broker.pipeline.event_rows import events_of, poisoned_of, timed
from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_table import LakeRefused, Owner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Limit of records in a batch, which bounds memory and the repeated work after a crash; one has up to 4,096 events.
BATCH_RECORDS_MAX: Final = 500
POLL_S: Final = 0.5
# Batches between two looks for small files: a look reads the log of the tables.
COMPACT_EVERY: Final = 16


@dataclass(frozen=True)
class Progress:
    """Progress of an archive: rows so far, rows per second in the last batch, and rows still to be read."""

    rows: int
    rows_per_s: float
    behind: int


@dataclass
class Archive:
    """A job; `events` and `poisoned` count the rows written so far.

    `options` are those of the source (pyspark_amqp), including `queue`.
    """

    spark: SparkSession
    lake: Lake
    options: Mapping[str, str]
    job: str = "trace"
    with_bodies: bool = True
    events: int = 0
    poisoned: int = 0
    compacted: int = 0
    _is_begun: bool = field(default=False, repr=False)
    _refusal: LakeRefused | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The name of this archive for others: its job and its process."""
        return f"the archive '{self.job}' (process {os.getpid()} of {platform.node()})"

    @property
    def is_stream(self) -> bool:
        return self.options.get("queueType", "stream") == "stream"

    def run(
        self, *, follow: bool = False, every_s: int = 10, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        """Archive all events, or with `follow` new ones as well until this thread is interrupted.

        Raise LakeRefused if the lake is another archive's, or newer than this program, and pyspark's
        StreamingQueryException when a batch fails; the next run repeats that batch.
        """
        with locked(self.lake.path, self.job, self.name):
            self.lake.create()
            owner = Owner(self.job, self.lake.query_of(self.job))
            for queue in self._queues():
                self.lake.tables["events"].check_owner(queue, owner)
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
            if not follow:
                self.compacted += self.lake.compact()

    def _queues(self) -> list[str]:
        return [name.strip() for name in self.options["queue"].split(",")]

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
        # The checkpoint stores Spark's id of the query, so it is unique to this job and survives a restart.
        query = self.spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert query is not None
        try:
            if not self._is_begun:
                self._begin(query, number)
            self._append(batch, query, number)
        except LakeRefused as error:
            # Spark surrounds the sentence with its own.
            self._refusal = error
            raise

    def _begin(self, query: str, number: int) -> None:
        for queue in self._queues():
            self.lake.tables["events"].claim(queue, Owner(self.job, query))
        if not self.is_stream:
            for table in self.lake.tables.values():
                table.discard(query, number)
        self._is_begun = True

    def _append(self, batch: DataFrame, query: str, number: int) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        # Spark plans a batch after it has committed the one before, so earlier batches are never repeated.
        if number % COMPACT_EVERY == 0:
            self.compacted += self.lake.compact()
        seen = Observation()
        parsed = timed(batch)
        if not self._has("events", query, number):
            counted = parsed.observe(seen, F.count("poison").alias("poisoned"))
            self.events += self.lake.append("events", events_of(counted), query, number, self.name)
            if not seen.get["poisoned"]:
                return
        if not self._has("poisoned", query, number):
            self.poisoned += self.lake.append("poisoned", poisoned_of(parsed), query, number, self.name)

    def _has(self, table: str, query: str, number: int) -> bool:
        """Return whether a table has a batch. A repeated batch of a classic queue has other messages."""
        last = self.lake.tables[table].last_batch(query)
        return self.is_stream and last is not None and last >= number


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
