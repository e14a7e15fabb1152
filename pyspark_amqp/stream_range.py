"""Reading of a range of a stream's offsets by a task; repeated reads return the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.arrow_rows import Rows
from pyspark_amqp.errors import ConnectionLost, DataLoss
from pyspark_amqp.format_options import SourceOptions
from pyspark_amqp.frame_parser import Delivery
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
            deliveries = connection.poll(timeout_s)
            if not deliveries:
                self._lack(connection, timeout_s)
                return
            if self._add(deliveries):
                return
            unacked += len(deliveries)
            if unacked >= prefetch // 2:
                connection.ack(deliveries[-1].tag)
                unacked = 0
            if self.rows.is_full:
                yield self.rows.take()

    def _add(self, deliveries: list[Delivery]) -> bool:
        """Keep the deliveries of the range; return whether it has ended.

        Offsets may have holes, but the last offset of a range was seen when it was planned. Retention may overtake a
        slow task, whose consumer then continues at the first message that there is.
        """
        offsets = [delivery.offset for delivery in deliveries]
        first, last = offsets[0], offsets[-1]
        if first is not None and last is not None and None not in offsets:
            is_dense = last - first == len(offsets) - 1
            if is_dense and first == self.next and last < self.end:
                self.rows.add(deliveries, offsets)
                self.next = last + 1
                return self.next >= self.end
        kept: list[Delivery] = []
        places: list[int] = []
        for delivery in deliveries:
            offset = offset_of(delivery, self.queue)
            if offset < self.next:
                continue
            if offset > self.next and self.options.fail_on_data_loss:
                # The check may lose its connection, and reading then resumes after these rows.
                self.rows.add(kept, places)
                kept, places = [], []
                self._check_gap()
            self.next = min(offset + 1, self.end)
            if offset >= self.end:
                break
            kept.append(delivery)
            places.append(offset)
        self.rows.add(kept, places)
        return self.next >= self.end

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
