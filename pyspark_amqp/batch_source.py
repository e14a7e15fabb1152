"""Batch reads: a range of a stream, fixed in the plan, or a peek at a classic or quorum queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.arrow_rows import Rows
from pyspark_amqp.delivery_run import between
from pyspark_amqp.errors import BrokerError, OptionError
from pyspark_amqp.format_options import PREFETCH_MAX, SourceOptions
from pyspark_amqp.offsets import LATEST, Offsets, Range, split
from pyspark_amqp.reconnecting import persist
from pyspark_amqp.shipping import Shipped
from pyspark_amqp.stream_range import RangeReader, StreamPartition
from pyspark_amqp.stream_source import StreamEnds


class StreamBatch(Shipped, DataSourceReader):
    """Reads streams between two offsets."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges; called once for each DataFrame, so all its actions see the same rows."""
        ends = StreamEnds(self.options)
        try:
            start, tails = ends.starting(), ends.final_tails()
            end = self._ending(ends, tails)
        finally:
            ends.close()
        self._check(start, end, tails)
        options = self.options
        ranges = split(start, end, options.partitions_min, options.records_per_partition_max)
        # Spark treats an empty list as one partition that is None.
        return [StreamPartition(wanted) for wanted in ranges] or [StreamPartition(Range(options.queues[0], 0, 0))]

    def _ending(self, ends: StreamEnds, tails: Offsets) -> Offsets:
        """Return `endingOffsets` or `endingTimestamp` as offsets."""
        given = self.options.ending_offsets
        if self.options.ending_times_ms is not None:
            return ends.at(self.options.ending_times_ms)
        if isinstance(given, dict):
            return {queue: tails[queue] if offset == LATEST else offset for queue, offset in given.items()}
        return tails

    def _check(self, start: Offsets, end: Offsets, tails: Offsets) -> None:
        for queue, tail in tails.items():
            if end[queue] > tail:
                raise OptionError("endingOffsets", f"queue '{queue}' ends at offset {tail}, before {end[queue]}")
            if start[queue] > end[queue]:
                raise OptionError(
                    "endingOffsets", f"{end[queue]} of queue '{queue}' is before the start, {start[queue]}"
                )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        return RangeReader(self.options, Range(*partition.range), self.schema).read()


@dataclass
class BrowsePartition(InputPartition):
    """The number of messages to peek at."""

    count: int


class QueueBrowse(Shipped, DataSourceReader):
    """Peeks at the ready messages of a queue, since Spark does not tell a batch reader when to ack.

    The broker marks the messages as redelivered, and quorum queues count a delivery. Each action reads again.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        count = persist(self.options.address, self._count)
        if count > PREFETCH_MAX:
            raise OptionError(
                "queue",
                f"a batch read holds all messages of a queue unacked, which {PREFETCH_MAX} may be;"
                f" '{self.options.queues[0]}' has {count}. Drain it with readStream and trigger(availableNow=True)",
            )
        return [BrowsePartition(count)]

    def _count(self) -> int:
        with Connection(self.options.address) as connection:
            return int(connection.check_no_stream(self.options.queues[0]).message_count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows; none before all have arrived, so that a lost connection begins anew.

        Raise BrokerError if the queue delivers to another consumer only.
        """
        assert isinstance(partition, BrowsePartition)
        yield from persist(self.options.address, lambda: list(self._browse(partition.count)))

    def _browse(self, left: int) -> Iterator[pa.RecordBatch]:
        queue = self.options.queues[0]
        rows = Rows(self.schema, queue, self.options.allows_ms)
        with Connection(self.options.address) as connection:
            connection.open_channel()
            if left:
                connection.consume(queue, left)
            # Other consumers may take messages in the meantime.
            while left and (runs := connection.poll(self.options.poll_timeout_ms / 1000)):
                for run in between(runs, 0, left):
                    rows.add(run)
                    left -= run.count
                if rows.is_full:
                    yield rows.take()
            if left and (ready := connection.check_queue(queue).message_count):
                raise BrokerError(
                    f"queue '{queue}' has {ready} ready messages that it did not deliver within pollTimeoutMs"
                    f" ({self.options.poll_timeout_ms} ms): it may have another single active consumer"
                )
        if rows.count:
            yield rows.take()
