"""Archiving: a query in batches that writes each event of the trace's stream to the lake once.

The checkpoint stores the offsets of each batch, so a repeated batch has the same rows; if the table has it already, it
is left out. Events and poisoned messages are two tables. Two engines run the query, in batches that are alike and with
checkpoints that are alike, so each continues the archive of the other: `local_archive.py` in this process, and
`spark_archive.py` with Spark.

RabbitMQ's firehose does not reach streams (as of 3.10.8), so a classic queue takes its place. The messages of a failed
batch return in a later one, and its rows are discarded. Only a process that dies between the end of a batch and its
acks writes that batch twice.
"""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from amqp_broker.pipeline.archive_lock import locked
from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_table import Owner

# Limit of records in a batch, which bounds memory and the repeated work after a crash; one has up to 4,096 events.
BATCH_RECORDS_MAX: Final = 500
# Batches between two looks for small files: a look reads the log of the tables.
COMPACT_EVERY: Final = 16


@dataclass(frozen=True)
class Progress:
    """Progress of an archive: rows so far, rows per second in the last batch, and rows still to be read."""

    rows: int
    rows_per_s: float
    behind: int


OnProgress = Callable[[Progress], None]


class Archive(ABC):
    """A job; `events` and `poisoned` count the rows written so far.

    `options` are those of the source (pyspark_amqp), including `queue`.
    """

    def __init__(self, lake: Lake, options: Mapping[str, str], job: str = "trace", *, with_bodies: bool = True) -> None:
        self.lake = lake
        self.options = {"queueType": "stream", **options}
        if self.is_stream:
            self.options.setdefault("startingOffsets", "earliest")
            self.options.setdefault("maxOffsetsPerTrigger", str(BATCH_RECORDS_MAX))
        self.options["bodies"] = str(with_bodies).lower()
        self.job = job
        self.events = 0
        self.poisoned = 0
        self.compacted = 0
        self._is_begun = False

    @property
    def name(self) -> str:
        """The name of this archive for others: its job and its process."""
        return f"the archive '{self.job}' (process {os.getpid()} of {platform.node()})"

    @property
    def is_stream(self) -> bool:
        return self.options["queueType"] == "stream"

    @property
    def queues(self) -> list[str]:
        return [name.strip() for name in self.options["queue"].split(",")]

    def run(self, *, follow: bool = False, every_s: int = 10, on_progress: OnProgress | None = None) -> None:
        """Archive all events, or with `follow` new ones as well until this thread is interrupted.

        Raise LakeRefused if the lake is another archive's, or newer than this program, and the engine's errors when a
        batch fails; the next run repeats that batch.
        """
        with locked(self.lake.path, self.job, self.name):
            self.lake.create()
            owner = Owner(self.job, self.lake.query_of(self.job))
            for queue in self.queues:
                self.lake.tables["events"].check_owner(queue, owner)
            self._work(follow, every_s, on_progress)
            if not follow:
                self.compacted += self.lake.compact()

    @abstractmethod
    def _work(self, follow: bool, every_s: int, on_progress: OnProgress | None) -> None:
        """Run the query until its end, or until this thread is interrupted."""

    def _begin_batch(self, query: str, number: int) -> None:
        """Prepare the tables for a batch. Raise LakeRefused if the queue has another archive."""
        if not self._is_begun:
            for queue in self.queues:
                self.lake.tables["events"].claim(queue, Owner(self.job, query))
            if not self.is_stream:
                for table in self.lake.tables.values():
                    table.discard(query, number)
            self._is_begun = True
        # A batch is planned after the commit of the one before, so earlier batches are never repeated.
        if number % COMPACT_EVERY == 0:
            self.compacted += self.lake.compact()

    def _has(self, table: str, query: str, number: int) -> bool:
        """Return whether a table has a batch. A repeated batch of a classic queue has other messages."""
        last = self.lake.tables[table].last_batch(query)
        return self.is_stream and last is not None and last >= number
