"""Streaming reads of classic and quorum queues, at least once.

One consumer, or several, in the process that plans the batches hold their deliveries until the log of the query says
that Spark has committed them, or until Spark asks for the next batch, which says so as well. Then they are acked. If
Spark, this process or the connection ends earlier, the broker redelivers them.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pyspark_amqp.arrow_rows import Rows
from pyspark_amqp.commit_log import CommitLog
from pyspark_amqp.delivery_run import Run, between, total_count, total_size
from pyspark_amqp.errors import BrokerError, ConnectionLost, OptionError
from pyspark_amqp.format_options import SourceOptions
from pyspark_amqp.held_queue import HeldQueue, batch_max
from pyspark_amqp.offsets import Offsets
from pyspark_amqp.reconnecting import Attempts, persist
from pyspark_amqp.shipping import Shipped

# Delay of an answer without news: an idle query asks again at once.
WAIT_S: Final = 0.3
# Time after which a call that the end of the process waits for counts as interrupted by it.
SIGNAL_TIMEOUT_S: Final = 0.5
PARTITION_BYTES: Final = 24 * 1024 * 1024


@dataclass
class QueuePartition(InputPartition):
    """Deliveries that Spark sends to a task, which makes rows of them."""

    runs: list[Run]


class QueueSource(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming reader. Spark creates it twice and pickles one, so it connects when Spark asks for offsets."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.queue = options.queues[0]
        self._held: HeldQueue | None = None
        self._known: Counter[int] = Counter()
        # With AvailableNow, the number after the last delivery, and the deliveries that a lost connection left to read.
        self._end: int | None = None
        self._left_count = 0
        self._is_available_now = self._is_stopping = False
        self._log: CommitLog | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_held": None, "_log": None}

    def held(self, start: int) -> HeldQueue:
        """Return the consumer; its numbers continue the offsets of the last run. Raise ConnectionLost."""
        if self._held is None:
            self._held = HeldQueue(self.options, start, self._known)
        return self._held

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(batch_max(self.options))

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    def initialOffset(self) -> Offsets:
        return {self.queue: 0}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Ack all deliveries before `start` and return the end of the next batch."""
        if set(start) != {self.queue}:
            raise OptionError("queue", f"the checkpoint is of queue {', '.join(start)}")
        if not isinstance(limit, ReadMaxRows):
            # Spark lifts the limit for this trigger only. It asks for nothing after the batch, so no ack could follow.
            raise OptionError("trigger", "once=True would leave its messages in the queue; use availableNow=True")
        if self.options.checkpoint_location:
            self._stop_on_signal()
        first = start[self.queue]
        attempts = Attempts(self.options.address)
        while True:
            try:
                return {self.queue: self._next_end(first, limit.max_rows)}
            except ConnectionLost as lost:
                # The broker redelivers everything that is held, and it gets new numbers.
                if self._held is not None:
                    self._known = self._held.known()
                    if self._end is not None:
                        self._left_count = self._end - first + self._known.total()
                    self._held.close()
                self._held = self._end = None
                attempts.failed(lost)

    def _next_end(self, first: int, count_max: int) -> int:
        held = self.held(first)
        if self._is_available_now and self._end is None:
            # The count may be too low: after a crash, RabbitMQ counts the messages of a lost consumer as unacked.
            self._end = first + max(held.ready_count, self._left_count)
        held.settle(first)
        if held.start < first:
            # Numbers of an earlier run: the broker has requeued these deliveries.
            raise BrokerError(f"offset {first} was never delivered")
        wait_s = WAIT_S
        if self._end is not None:
            count_max = min(count_max, self._end - first)
            wait_s = self.options.poll_timeout_ms / 1000
        if count_max <= 0:
            return first
        return first + held.gather(count_max, wait_s)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Return the deliveries of this range; none after a restart, as the broker has requeued them.

        Spark has put the range into the query's log. Raise OptionError if it is not in that of `checkpointLocation`.
        """
        last = end[self.queue]
        if self._held is None:
            self._held = persist(self.options.address, lambda: HeldQueue(self.options, last))
            return []
        if self.options.checkpoint_location:
            if self._log is None:
                self._log = CommitLog(self.options.checkpoint_location, self.queue)
            self._held.await_commit(self._log, self._log.planned(last), last)
        runs = self._held.runs(start.get(self.queue, 0), last)
        return [QueuePartition(part) for part in _parts(runs, self.options.reader_count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, QueuePartition)
        rows = Rows(self.schema, self.queue, self.options.allows_ms)
        for run in partition.runs:
            rows.add(run)
            if rows.is_full:
                yield rows.take()
        if rows.count:
            yield rows.take()

    def reportLatestOffset(self) -> dict[str, dict[str, int]] | None:
        """Return the messages that are ready and unacked, which Spark shows as the source's `latestOffset`."""
        depth = self._held.depth() if self._held is not None else None
        return None if depth is None else {self.queue: depth}

    def commit(self, end: Offsets) -> None:
        """Do nothing: Spark calls it a batch late, and not for the last one."""

    def stop(self) -> None:
        """Ack what is stored, and close the connection. The broker requeues the rest, also if this is not called."""
        self._is_stopping = True
        if self._held is not None:
            self._held.close()

    def _stop_on_signal(self) -> None:
        """Have the signal by which Spark ends this process ack what is stored before."""
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_stopping:
            return
        # The signal may interrupt another call. This ends the call, and Spark calls `stop` then.
        if self._held is not None:
            self._held.close(SIGNAL_TIMEOUT_S)
        sys.exit(0)


def _parts(runs: list[Run], count_min: int) -> Iterator[list[Run]]:
    """Return the deliveries of each task: equal numbers for at least `count_min` tasks if possible.

    More tasks are made if one had more than `PARTITION_BYTES` otherwise.
    """
    total = total_count(runs)
    count = max(count_min, -(-total_size(runs) // PARTITION_BYTES), 1)
    share = -(-total // count)
    for start in range(0, total, share or 1):
        yield from _limited(list(between(runs, start, start + share)))


def _limited(runs: list[Run]) -> Iterator[list[Run]]:
    """Return the deliveries in parts of at most `PARTITION_BYTES`, or one delivery."""
    count = total_count(runs)
    if total_size(runs) <= PARTITION_BYTES or count == 1:
        yield runs
        return
    yield from _limited(list(between(runs, 0, count // 2)))
    yield from _limited(list(between(runs, count // 2, count)))
