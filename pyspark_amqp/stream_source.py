"""Streaming reads of stream queues: offsets define a batch, so a repeated batch is the same."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.errors import ConnectionLost, DataLoss, OptionError
from pyspark_amqp.format_options import SourceOptions
from pyspark_amqp.offsets import EARLIEST, LATEST, Offsets, Range, capped, split
from pyspark_amqp.reconnecting import persist
from pyspark_amqp.shipping import Shipped
from pyspark_amqp.stream_probe import StreamProbe
from pyspark_amqp.stream_range import RangeReader, StreamPartition

T = TypeVar("T")

# Delay of an answer without news: an idle query asks again at once.
WAIT_S: Final = 0.3
# Streams that are probed at once, and connections that a query keeps for this.
PROBES_AT_ONCE: Final = 16
# Time after which all messages that were confirmed before must have been seen.
FINAL_QUIET_S: Final = 0.25


class StreamEnds:
    """The first and last offsets of a reader's streams; connects when it is first used.

    A probe waits most of its time, so several streams are probed at once, each over a connection of its own.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self._probes = {queue: StreamProbe(queue, options.tail_probe_ms / 1000) for queue in options.queues}
        # Those that no probe uses now.
        self._connections: deque[Connection] = deque()

    def __getstate__(self) -> dict[str, Any]:
        # Spark sends a reader to its workers, which need only ranges.
        return {**self.__dict__, "_connections": deque()}

    def close(self) -> None:
        while self._connections:
            self._connections.pop().close()

    def starting(self) -> Offsets:
        """Return `startingOffsets` or `startingTimestamp` as offsets."""
        given = self.options.starting_offsets
        times_ms = self.options.starting_times_ms
        if times_ms is not None:
            return self.at(times_ms)
        if isinstance(given, dict):
            return self._resolved(given)
        if given == "latest":
            return self.tails()
        return self._each(lambda probe, connection: probe.first(connection))

    def at(self, times_ms: dict[str, int]) -> Offsets:
        """Return the first offset of the chunk at or after these times, by queue."""
        return self._each(lambda probe, connection: probe.at(connection, times_ms[probe.queue]))

    def _resolved(self, given: Offsets) -> Offsets:
        """Return given offsets, which may be EARLIEST or LATEST. Raise OptionError for one after the end."""
        tails = self.tails()
        firsts = self._each(
            lambda probe, connection: probe.first(connection),
            [queue for queue, offset in given.items() if offset == EARLIEST],
        )
        offsets = {
            queue: tails[queue] if offset == LATEST else firsts.get(queue, offset) for queue, offset in given.items()
        }
        for queue in self.shorter(offsets, tails):
            tail = tails[queue]
            raise OptionError("startingOffsets", f"queue '{queue}' ends at offset {tail}, before {given[queue]}")
        return offsets

    def tails(self, wait_s: float = 0.0, quiet_s: float = 0.0) -> Offsets:
        """Return the offset after the last message of each queue, after waiting for news up to a limit.

        A lost connection is opened again. Raise ConnectionLost if the broker is away for too long.
        """
        rounds = -(-len(self._probes) // PROBES_AT_ONCE)
        return self._each(lambda probe, connection: probe.look(connection, wait_s / rounds, quiet_s))

    def shorter(self, offsets: Offsets, tails: Offsets) -> list[str]:
        """Return the queues that end before these offsets; the tails may be those of a moment before."""
        behind = [queue for queue, tail in tails.items() if tail < offsets.get(queue, 0)]
        reached = self._each(lambda probe, connection: probe.reaches(connection, offsets[probe.queue]), behind)
        return [queue for queue in behind if not reached[queue]]

    def _each(self, ask: Callable[[StreamProbe, Connection], T], queues: Sequence[str] | None = None) -> dict[str, T]:
        """Return what each probe, or those of these queues, answers."""
        asked = self.options.queues if queues is None else queues

        def answer(queue: str) -> T:
            try:
                connection = self._connections.pop()
            except IndexError:
                connection = Connection(self.options.address, heartbeat_s=0)
            try:
                found = ask(self._probes[queue], connection)
            except BaseException:
                connection.drop()
                raise
            self._connections.append(connection)
            return found

        def act() -> dict[str, T]:
            try:
                if len(asked) < 2:
                    return {queue: answer(queue) for queue in asked}
                with ThreadPoolExecutor(min(len(asked), PROBES_AT_ONCE), "amqp probe") as pool:
                    return dict(zip(asked, pool.map(answer, asked), strict=True))
            except ConnectionLost:
                self.close()
                raise

        return persist(self.options.address, act)

    def final_tails(self) -> Offsets:
        """Return the final tails, with more patience, as there is no later probe."""
        return self.tails(quiet_s=FINAL_QUIET_S)

    def known_tails(self) -> Offsets:
        return {queue: probe.tail for queue, probe in self._probes.items() if probe.tail is not None}


class FinalTails:
    """The tails at the time of construction, which take `FINAL_QUIET_S` to be certain.

    They are found in a thread, with a connection of its own. Meanwhile the first batches use what is certain earlier.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._early: Future[Offsets] = Future()
        self._final: Future[Offsets] = Future()
        threading.Thread(target=self._find, args=(options,), name="amqp final offsets", daemon=True).start()

    def _find(self, options: SourceOptions) -> None:
        ends = StreamEnds(options)
        try:
            if options.offsets_per_trigger_max is not None:
                self._early.set_result(ends.tails())
            self._final.set_result(ends.final_tails())
        except BaseException as error:
            self._final.set_exception(error)
        finally:
            # Without effect if there is a result.
            self._early.cancel()
            ends.close()

    def known(self) -> Offsets | None:
        """Return the tails as far as they are known, without waiting."""
        for found in (self._final, self._early):
            if found.done() and not found.cancelled() and found.exception() is None:
                return found.result()
        return None

    @property
    def is_certain(self) -> bool:
        return self._final.done()

    def after(self, start: Offsets, rows_max: int | None) -> Offsets:
        """Return the tails; earlier ones if each queue has this number of messages before. Raise BrokerError."""
        if rows_max is not None and not self.is_certain:
            with contextlib.suppress(CancelledError):
                early = self._early.result()
                if all(tail - start.get(queue, 0) >= rows_max for queue, tail in early.items()):
                    return early
        return self._final.result()


class StreamSource(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming reader. Spark creates it twice and pickles one, so it connects when Spark asks for offsets."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.ends = StreamEnds(options)
        self._initial: Offsets | None = None
        self._is_pinned = True
        # The end for AvailableNow.
        self._final: FinalTails | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_final": None}

    def getDefaultReadLimit(self) -> ReadLimit:
        rows_max = self.options.offsets_per_trigger_max
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._final = FinalTails(self.options)

    def initialOffset(self) -> Offsets:
        """Return the start; Spark asks twice, and again if it repeats the first batch."""
        if self._initial is None:
            self._initial = self.ends.starting()
            # Spark does not store this start, and "latest" would differ when the first batch is repeated. So that batch
            # is empty, and Spark stores its end.
            given = self.options.starting_offsets
            is_latest = LATEST in given.values() if isinstance(given, dict) else given == "latest"
            self._is_pinned = self.options.starting_times_ms is not None or not is_latest
        return self._initial

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Return the end of the next batch; `start` if there is nothing new.

        Queues that the query no longer reads keep their offsets, and go on from there when they are added again. Raise
        OptionError for a checkpoint of other queues alone.
        """
        if start and start.keys().isdisjoint(self.options.queues):
            raise OptionError("queue", f"the checkpoint is of queue {', '.join(start)}")
        if not self._is_pinned:
            self._is_pinned = True
            if start == self._initial:
                return start
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        tails = self._tails(start, rows_max)
        if shorter := self.ends.shorter(start, tails):
            return self._begin_anew(start, shorter)
        ends = capped({queue: start[queue] for queue in tails if queue in start}, tails, rows_max)
        if lacking := tails.keys() - start.keys():
            # A batch has no messages of a queue that its start lacks. Its end stores where the next one begins.
            initial = self.initialOffset()
            ends |= {queue: initial[queue] for queue in lacking}
        return dict(sorted({**start, **ends}.items()))

    def _tails(self, start: Offsets, rows_max: int | None) -> Offsets:
        if self._final is not None:
            return self._final.after(start, rows_max)
        known = self.ends.known_tails()
        if set(known) == set(self.options.queues) and any(known[queue] > start.get(queue, 0) for queue in known):
            # The known tails are ahead: do not wait for news.
            return self.ends.tails()
        return self.ends.tails(WAIT_S)

    def _begin_anew(self, start: Offsets, queues: list[str]) -> Offsets:
        """Handle streams shorter than their read part: they were deleted and declared again."""
        if self.options.fail_on_data_loss:
            queue = queues[0]
            raise DataLoss(
                f"queue '{queue}' ends before offset {start[queue]}, up to which it was read: it was deleted and"
                " declared again. With failOnDataLoss=false it is read from its beginning"
            )
        return dict(sorted({**start, **dict.fromkeys(queues, 0)}.items()))

    def reportLatestOffset(self) -> Offsets | None:
        if self._final is not None:
            return self._final.known()
        return self.ends.known_tails() or None

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        ranges = split(start, end, self.options.partitions_min, self.options.records_per_partition_max)
        return [StreamPartition(wanted) for wanted in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        return RangeReader(self.options, Range(*partition.range), self.schema).read()

    def commit(self, end: Offsets) -> None:
        """Do nothing: the broker keeps no position."""

    def stop(self) -> None:
        """Close the connection; Spark rarely calls it, but the connection ends with the process."""
        self.ends.close()
