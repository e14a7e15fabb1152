"""Streaming reads of stream queues: offsets decide everything, so a batch is the same whenever it is read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_amqp.connection import Connection
from pyspark_amqp.errors import ConnectionLost, DataLoss
from pyspark_amqp.offsets import Offsets, Range, capped, split
from pyspark_amqp.options import SourceOptions
from pyspark_amqp.stream_probe import StreamProbe
from pyspark_amqp.stream_range import RangeReader, StreamPartition

# An idle query asks again at once, so it is kept waiting for so long.
WAIT_S: Final = 0.3
# Nothing that was confirmed before is to be left out.
FINAL_QUIET_S: Final = 0.25


class StreamEnds:
    """Where the streams of a reader begin and end; opens its connection when it is first asked."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self._probes = {queue: StreamProbe(queue, options.tail_probe_ms / 1000) for queue in options.queues}
        self._connection: Connection | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Spark sends a reader to its workers, which look at nothing but ranges.
        return {**self.__dict__, "_connection": None}

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self.options.address, heartbeat_s=0)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def starting(self) -> Offsets:
        """What `startingOffsets` or `startingTimestamp` says, as numbers."""
        given = self.options.starting_offsets
        timestamp_ms = self.options.starting_timestamp_ms
        if timestamp_ms is not None:
            return {queue: probe.at(self.connection, timestamp_ms) for queue, probe in self._probes.items()}
        if isinstance(given, dict):
            for queue in given:
                self._probes[queue].look(self.connection)
            return dict(given)
        if given == "latest":
            return self.tails()
        return {queue: probe.first(self.connection) for queue, probe in self._probes.items()}

    def tails(self, wait_s: float = 0.0, quiet_s: float = 0.0) -> Offsets:
        """Behind the last message of each queue; waits so long for news, in all.

        A connection that was lost is opened again once: nothing is kept in it.
        """
        wait_s /= len(self._probes)
        try:
            return {queue: probe.look(self.connection, wait_s, quiet_s) for queue, probe in self._probes.items()}
        except ConnectionLost:
            self._connection = None
            return {queue: probe.look(self.connection, 0.0, quiet_s) for queue, probe in self._probes.items()}

    def final_tails(self) -> Offsets:
        """The same where nobody looks again, so with more patience."""
        return self.tails(quiet_s=FINAL_QUIET_S)

    def known_tails(self) -> Offsets:
        return {queue: probe.tail for queue, probe in self._probes.items() if probe.tail is not None}


class StreamSource(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark constructs it twice and sends one copy away, so nothing is open before Spark asks for offsets."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.ends = StreamEnds(options)
        self._initial: Offsets | None = None
        self._is_pinned = True
        # Where AvailableNow ends.
        self._target: Offsets | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        rows_max = self.options.offsets_per_trigger_max
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.ends.final_tails()

    def initialOffset(self) -> Offsets:
        """Spark asks twice, and again when it repeats the first batch, whose start it does not write down."""
        if self._initial is None:
            self._initial = self.ends.starting()
            # "latest" is another place when the first batch is repeated. So that one is empty, and its end is what
            # Spark writes down.
            is_latest = self.options.starting_offsets == "latest" and self.options.starting_timestamp_ms is None
            self._is_pinned = not is_latest
        return self._initial

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Where the next batch ends; `start` when there is nothing new."""
        if not self._is_pinned:
            self._is_pinned = True
            if start == self._initial:
                return start
        tails = self._tails(start)
        anew = {queue: 0 for queue, tail in tails.items() if tail < start.get(queue, 0)}
        if anew:
            return self._begin_anew(start, anew)
        start = {**{queue: 0 for queue in tails if queue not in start}, **start}
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return capped({queue: start[queue] for queue in tails}, tails, rows_max)

    def _tails(self, start: Offsets) -> Offsets:
        if self._target is not None:
            return self._target
        known = self.ends.known_tails()
        if set(known) == set(self.options.queues) and any(known[queue] > start.get(queue, 0) for queue in known):
            # There is more to read than was read: no need to wait for news.
            return self.ends.tails()
        return self.ends.tails(WAIT_S)

    def _begin_anew(self, start: Offsets, anew: Offsets) -> Offsets:
        """Streams that are shorter than what was read of them are others of the same name."""
        if self.options.fail_on_data_loss:
            queue = next(iter(anew))
            raise DataLoss(
                f"queue '{queue}' ends before offset {start[queue]}, up to which it was read: it was deleted and"
                " declared again. With failOnDataLoss=false it is read from its beginning"
            )
        return dict(sorted({**start, **anew}.items()))

    def reportLatestOffset(self) -> Offsets | None:
        return self.ends.known_tails() or None

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        ranges = split(start, end, self.options.partitions_min, self.options.records_per_partition_max)
        return [StreamPartition(wanted) for wanted in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        return RangeReader(self.options, Range(*partition.range), self.schema).read()

    def commit(self, end: Offsets) -> None:
        """Nothing is kept in the broker."""

    def stop(self) -> None:
        """Spark rarely calls it; a connection that ends with its process leaves nothing behind."""
        self.ends.close()
