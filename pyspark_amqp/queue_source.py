"""Streaming reads of classic and quorum queues, at least once.

One consumer in the process that plans the batches holds its deliveries until Spark asks for the next batch. Then Spark
has committed the previous ones, and they are acked. If Spark, this process or the connection ends earlier, the broker
redelivers them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.arrow_rows import Rows
from pyspark_amqp.errors import BrokerError, ConnectionLost, OptionError
from pyspark_amqp.format_options import SourceOptions
from pyspark_amqp.frame_parser import Delivery
from pyspark_amqp.offsets import Offsets
from pyspark_amqp.reconnecting import Attempts, persist
from pyspark_amqp.shipping import Shipped

# Interval of reading the socket while Spark works on a batch.
BREATH_S: Final = 0.05
# Delay of an answer without news: an idle query asks again at once.
WAIT_S: Final = 0.3
# A batch ends after this time without a delivery.
QUIET_S: Final = 0.03
# Number of messages from which the average size is estimated.
SAMPLE: Final = 200
PREFETCH_MAX: Final = 65_535
# Number of acked deliveries of which a broker that is killed may lose the acks.
ACKED_MAX: Final = 20_000
PARTITION_BYTES: Final = 4 * 1024 * 1024


@dataclass
class QueuePartition(InputPartition):
    """Rows as an Arrow stream, which Spark sends to a task."""

    packed: bytes


class HeldQueue:
    """A consumer and its unacked deliveries, numbered from `start` in the order of arrival.

    A thread reads the socket between calls, so that heartbeats continue during long batches. The deliveries are also
    bounded in octets: prefetch counts messages, so it is adapted to their size.

    A broker that is killed may forget what it has delivered. So `known` has the marks of the deliveries of a lost
    connection: when they come again, they are marked as redelivered here.
    """

    def __init__(self, options: SourceOptions, start: int, known: Counter[int] | None = None) -> None:
        self.options = options
        self.queue = options.queues[0]
        self.start = start
        self.held: deque[Delivery] = deque()
        self.held_bytes = 0
        self.failure: BrokerError | None = None
        self._known = known or Counter()
        self._acked: deque[int] = deque(maxlen=ACKED_MAX)
        self._lock = threading.Lock()
        self._is_closed = False
        self._seen_count = self._seen_bytes = 0
        self._heartbeat_s = options.address.heartbeat_s
        self._connection = Connection(options.address, self._heartbeat_s)
        self._beat_at = time.monotonic()
        self.ready_count: int = self._connection.check_no_stream(self.queue).message_count
        self.prefetch = options.prefetch or min(SAMPLE, self._wanted())
        self._tag: str | None = self._connection.consume(self.queue, self.prefetch)
        threading.Thread(target=self._keep_alive, name=f"amqp {self.queue}", daemon=True).start()

    def _wanted(self) -> int:
        return min(2 * (self.options.offsets_per_trigger_max or 10_000), PREFETCH_MAX)

    def _keep_alive(self) -> None:
        while not self._is_closed and self.failure is None:
            time.sleep(BREATH_S)
            with self._lock:
                self._pump(0.0)

    def _pump(self, timeout_s: float) -> bool:
        """Read the socket; return whether there was data. Keep an error for the next call."""
        if self._is_closed or self.failure is not None:
            return False
        try:
            if self._heartbeat_s and time.monotonic() - self._beat_at > self._heartbeat_s / 3:
                self._connection.send_heartbeat()
                self._beat_at = time.monotonic()
            deliveries = self._connection.poll(timeout_s)
            silence_s = time.monotonic() - self._connection.heard_at
            if self._heartbeat_s and silence_s > 2 * self._heartbeat_s:
                raise ConnectionLost(f"nothing was heard of {self._connection.host} for {silence_s:.0f} s")
            if deliveries:
                self._hold(deliveries)
                self._adapt()
        except BrokerError as failure:
            self.failure = failure
            return False
        return bool(deliveries)

    def _hold(self, deliveries: list[Delivery]) -> None:
        if self._known:
            deliveries = [self._recognised(delivery) for delivery in deliveries]
        size = sum(_size(delivery) for delivery in deliveries)
        self.held.extend(deliveries)
        self.held_bytes += size
        self._seen_count += len(deliveries)
        self._seen_bytes += size

    def _recognised(self, delivery: Delivery) -> Delivery:
        mark = _mark(delivery)
        if not self._known[mark]:
            return delivery
        self._known[mark] -= 1
        return delivery._replace(redelivered=True)

    def known(self) -> Counter[int]:
        """Return the marks of all deliveries that may come again if the connection is lost now."""
        with self._lock:
            return +self._known + Counter(self._acked) + Counter(map(_mark, self.held))

    def _adapt(self) -> None:
        """Consume again with a prefetch that fits the size of the messages, or pause if too much is held."""
        if self._tag is not None and self.held_bytes > 2 * self.options.bytes_per_trigger_max:
            self._connection.cancel(self._tag)
            self._tag = None
        if self.options.prefetch or self._seen_count < min(SAMPLE, self.prefetch):
            return
        average = max(self._seen_bytes // self._seen_count, 1)
        fitting = max(1, min(self._wanted(), 2 * self.options.bytes_per_trigger_max // average))
        if self._tag is not None and not self.prefetch // 2 <= fitting <= self.prefetch * 2:
            self._connection.cancel(self._tag)
            self._tag = self._connection.consume(self.queue, fitting)
            self.prefetch = fitting
        if self._seen_count > 10 * SAMPLE:
            self._seen_count, self._seen_bytes = self._seen_count // 2, self._seen_bytes // 2

    def settle(self, start: int) -> None:
        """Ack all deliveries before this number, which Spark has committed. Raise BrokerError."""
        with self._lock:
            self._check()
            tag = 0
            while self.held and self.start < start:
                delivery = self.held.popleft()
                self.start += 1
                self.held_bytes -= _size(delivery)
                tag = delivery.tag
                self._acked.append(_mark(delivery))
            if tag:
                self._connection.ack(tag)
            if self._tag is None and self.held_bytes <= self.options.bytes_per_trigger_max:
                average = max(self._seen_bytes // max(self._seen_count, 1), 1)
                self.prefetch = max(1, min(self.prefetch, self.options.bytes_per_trigger_max // average))
                self._tag = self._connection.consume(self.queue, self.prefetch)

    def gather(self, count_max: int, wait_s: float) -> int:
        """Return the number of deliveries for a batch, after waiting for the first one. Raise BrokerError."""
        deadline = time.monotonic() + wait_s
        with self._lock:
            while len(self.held) < count_max and not self.is_full:
                timeout_s = QUIET_S if self.held else max(deadline - time.monotonic(), 0.0)
                if not self._pump(timeout_s):
                    break
            self._check()
            return self._fitting(count_max)

    @property
    def is_full(self) -> bool:
        return self.held_bytes >= self.options.bytes_per_trigger_max

    def _fitting(self, count_max: int) -> int:
        size = count = 0
        for delivery in self.held:
            size += _size(delivery)
            if count >= count_max or (count and size > self.options.bytes_per_trigger_max):
                break
            count += 1
        return count

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def deliveries(self, start: int, end: int) -> list[Delivery]:
        """Return the held deliveries with these numbers; others were requeued and will be redelivered."""
        with self._lock:
            return list(islice(self.held, max(start - self.start, 0), max(end - self.start, 0)))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._connection.close()


def _size(delivery: Delivery) -> int:
    return len(delivery.body) + len(delivery.header)


def _mark(delivery: Delivery) -> int:
    return hash((delivery.routing_key, delivery.header, delivery.body))


class QueueSource(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming reader. Spark creates it twice and pickles one, so it connects when Spark asks for offsets."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.queue = options.queues[0]
        self._held: HeldQueue | None = None
        self._known: Counter[int] = Counter()
        # With AvailableNow, the number of messages still to be read.
        self._budget: int | None = None
        self._end: int | None = None
        self._is_available_now = False

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_held": None}

    def held(self, start: int) -> HeldQueue:
        """Return the consumer; its numbers continue the offsets of the last run. Raise ConnectionLost."""
        if self._held is None:
            self._held = HeldQueue(self.options, start, self._known)
        return self._held

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.offsets_per_trigger_max or 10_000)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    def initialOffset(self) -> Offsets:
        return {self.queue: 0}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Ack all deliveries before `start` and return the end of the next batch."""
        if set(start) != {self.queue}:
            raise OptionError("queue", f"the checkpoint is of queue {', '.join(start)}")
        first = start[self.queue]
        attempts = Attempts(self.options.address)
        while True:
            try:
                return {self.queue: self._next_end(first, limit)}
            except ConnectionLost as lost:
                # The broker redelivers everything that is held, and it gets new numbers.
                if self._held is not None:
                    self._known = self._held.known()
                    self._held.close()
                self._held = self._end = None
                attempts.failed(lost)

    def _next_end(self, first: int, limit: ReadLimit) -> int:
        held = self.held(first)
        if self._is_available_now and self._end is None:
            self._end = first + held.ready_count
        held.settle(first)
        if held.start < first:
            # Numbers of an earlier run: the broker has requeued these deliveries.
            raise BrokerError(f"offset {first} was never delivered")
        count_max = limit.max_rows if isinstance(limit, ReadMaxRows) else self.options.offsets_per_trigger_max or 10_000
        wait_s = WAIT_S
        if self._end is not None:
            count_max = min(count_max, self._end - first)
            wait_s = self.options.poll_timeout_ms / 1000
        if count_max <= 0:
            return first
        return first + held.gather(count_max, wait_s)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Return the deliveries of this range; none after a restart, as the broker has requeued them."""
        last = end[self.queue]
        if self._held is None:
            self._held = persist(self.options.address, lambda: HeldQueue(self.options, last))
            return []
        deliveries = self._held.deliveries(start.get(self.queue, 0), last)
        return [
            QueuePartition(packed)
            for packed in _packed(Rows(self.schema, self.queue, self.options.allows_ms), deliveries)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, QueuePartition)
        with pa.ipc.open_stream(partition.packed) as stream:
            yield from stream

    def commit(self, end: Offsets) -> None:
        """Do nothing: Spark calls it a batch late, and not for the last one, so `latestOffset` acks."""

    def stop(self) -> None:
        """Close the connection; Spark rarely calls it, but the broker requeues all when this process ends."""
        if self._held is not None:
            self._held.close()


def _packed(rows: Rows, deliveries: list[Delivery]) -> Iterator[bytes]:
    """Return the deliveries as Arrow streams of some megabytes each."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for index, delivery in enumerate(deliveries, 1):
        rows.add(delivery, None)
        if not rows.is_full and index < len(deliveries):
            continue
        size += rows.size
        batches.append(rows.take())
        if size < PARTITION_BYTES and index < len(deliveries):
            continue
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batches[0].schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        yield sink.getvalue().to_pybytes()
        batches, size = [], 0
