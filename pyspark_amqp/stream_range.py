"""Reading of a range of a stream's offsets by a task; repeated reads return the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.arrow_rows import Rows
from pyspark_amqp.delivery_run import Run
from pyspark_amqp.errors import ConnectionLost, DataLoss
from pyspark_amqp.format_options import SourceOptions
from pyspark_amqp.offsets import Range
from pyspark_amqp.reconnecting import Attempts
from pyspark_amqp.stream_probe import StreamProbe, begin, offset_of


@dataclass
class StreamPartition(InputPartition):
    """The range of a task."""

    range: Range


class RangeReader:
    """Reads one range, and resumes after a lost connection, since the consumer of the rows may be slow."""

    def __init__(self, options: SourceOptions, wanted: Range, schema: StructType) -> None:
        self.options = options
        self.queue = wanted.queue
        self.next = wanted.start
        self.end = wanted.end
        self.rows = Rows(schema, wanted.queue, options.allows_ms)

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raise DataLoss, OptionError or BrokerError."""
        attempts = Attempts(self.options.address)
        while self.next < self.end:
            before = self.next
            try:
                connection = Connection(self.options.address)
                try:
                    yield from self._read_on(connection)
                finally:
                    connection.close()
            except ConnectionLost as lost:
                if self.next > before:
                    attempts.succeeded()
                attempts.failed(lost)
        if self.rows.count:
            yield self.rows.take()

    def _read_on(self, connection: Connection) -> Iterator[pa.RecordBatch]:
        prefetch = min(self.options.prefetch, max(self.end - self.next, 1))
        begin(connection, self.queue, self.next, prefetch)
        timeout_s = self.options.poll_timeout_ms / 1000
        unacked = 0
        while self.next < self.end:
            runs = connection.poll(timeout_s)
            if not runs:
                self._lack(connection, timeout_s)
                return
            for run in runs:
                self._add(run)
                unacked += run.count
                if self.next >= self.end:
                    return
            if unacked >= prefetch // 2:
                connection.ack(runs[-1].last_tag)
                unacked = 0
            if self.rows.is_full:
                yield self.rows.take()

    def _add(self, run: Run) -> None:
        """Keep the deliveries of the range.

        Offsets may have holes, but the last offset of a range was seen when it was planned. Retention may overtake a
        slow task, whose consumer then continues at the first message that there is.
        """
        offset = offset_of(run, self.queue)
        end = offset + run.count
        if end <= self.next:
            return
        if offset > self.next and self.options.fail_on_data_loss:
            # The check may lose its connection, and reading then resumes after the rows that are kept.
            self._check_gap()
        start, last = max(offset, self.next), min(end, self.end)
        if start < last:
            self.rows.add(run.part(start - offset, last - offset), start)
        self.next = last

    def _check_gap(self) -> None:
        """Raise DataLoss if retention has removed the next offset. It may also be a hole, with messages before it."""
        with Connection(self.options.address) as connection:
            start = StreamProbe(self.queue, self.options.tail_probe_ms / 1000).first(connection)
        if start > self.next:
            self._lose(self.next, min(start, self.end))

    def _lack(self, connection: Connection, timeout_s: float) -> None:
        connection.close_channel()
        probe = StreamProbe(self.queue, self.options.tail_probe_ms / 1000)
        first, tail = probe.first(connection), probe.look(connection)
        if first <= self.next < tail:
            raise ConnectionLost(f"nothing of queue '{self.queue}' from offset {self.next} on within {timeout_s} s")
        self._lose(self.next, self.end)
        self.next = self.end

    def _lose(self, start: int, end: int) -> None:
        if self.options.fail_on_data_loss:
            raise DataLoss(
                f"offsets {start} to {end - 1} of queue '{self.queue}' are gone: retention has dropped them, or the"
                " queue was deleted. With failOnDataLoss=false they are skipped"
            )
