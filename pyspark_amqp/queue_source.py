"""Streaming reads of classic and quorum queues, at least once.

One consumer, or several, in the process that plans the batches hold their deliveries until Spark asks for the next
batch. Then Spark has committed the previous ones, and they are acked. If Spark, this process or the connection ends
earlier, the broker redelivers them.
"""

from __future__ import annotations

import selectors
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.arrow_rows import Rows
from pyspark_amqp.content_header import PROPERTIES_AT
from pyspark_amqp.delivery_run import Run, between, singles, total_count, total_size
from pyspark_amqp.errors import BrokerError, ConnectionLost, OptionError
from pyspark_amqp.format_options import PREFETCH_MAX, QUEUE_OFFSETS_MAX, SourceOptions
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
# Number of acked deliveries of which a broker that is killed may lose the acks: the last batches.
ACKED_MAX: Final = 2 * QUEUE_OFFSETS_MAX
PARTITION_BYTES: Final = 24 * 1024 * 1024


@dataclass
class QueuePartition(InputPartition):
    """Deliveries that Spark sends to a task, which makes rows of them."""

    runs: list[Run]


class Consumer:
    """A connection with a consumer, without a moment between two: that would end a queue with auto-delete."""

    def __init__(self, options: SourceOptions) -> None:
        self.queue = options.queues[0]
        self.heartbeat_s = options.address.heartbeat_s
        self.connection = Connection(options.address, self.heartbeat_s)
        self.is_paused = False
        self._tag: str | None = None
        # By time.monotonic().
        self.beat_at = time.monotonic()

    def poll(self) -> list[Run]:
        """Return the deliveries that have arrived; keep the connection alive. Raise BrokerError."""
        now = time.monotonic()
        if self.heartbeat_s and now - self.beat_at > self.heartbeat_s / 3:
            self.connection.send_heartbeat()
            self.beat_at = now
        runs = self.connection.poll(0.0)
        silence_s = now - self.connection.heard_at
        if self.heartbeat_s and silence_s > 2 * self.heartbeat_s:
            raise ConnectionLost(f"nothing was heard of {self.connection.host} for {silence_s:.0f} s")
        return runs

    def start(self, prefetch: int) -> None:
        """Consume with this prefetch, instead of the former one."""
        former, self._tag = self._tag, self.connection.consume(self.queue, prefetch)
        if former is not None:
            self.connection.cancel(former)
        self.is_paused = False

    def pause(self) -> None:
        """Take one more message at most."""
        if not self.is_paused:
            self.start(1)
            self.is_paused = True


class HeldQueue:
    """Consumers and their unacked deliveries, numbered from `start` in the order of arrival.

    A thread reads the socket between calls, so that heartbeats continue during long batches. The deliveries are also
    bounded in octets: prefetch counts messages, so it is adapted to their size.

    A broker that is killed may forget what it has delivered. So `known` has the marks of the deliveries of a lost
    connection: when they come again, they are marked as redelivered here. They come before others, except for those of
    a higher priority, so the marks are forgotten after twice as many deliveries.
    """

    def __init__(self, options: SourceOptions, start: int, known: Counter[int] | None = None) -> None:
        self.options = options
        self.queue = options.queues[0]
        self.start = start
        self.held: deque[tuple[Consumer, Run]] = deque()
        self.held_count = self.held_bytes = 0
        self.failure: BrokerError | OptionError | None = None
        self._known = known or Counter()
        self._recognisable_count = 2 * self._known.total()
        self._acked: deque[int] = deque(maxlen=ACKED_MAX)
        self._lock = threading.Lock()
        self._is_closed = False
        self._seen_count = self._seen_bytes = 0
        self._consumers: list[Consumer] = []
        self._selector = selectors.DefaultSelector()
        try:
            for _ in range(options.reader_count):
                self._consumers.append(Consumer(options))
                self._selector.register(self._consumers[-1].connection, selectors.EVENT_READ)
            for consumer in self._consumers:
                self.ready_count: int = consumer.connection.check_no_stream(self.queue).message_count
            self.prefetch = options.prefetch or min(SAMPLE, self._wanted())
            for consumer in self._consumers:
                consumer.start(self.prefetch)
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._keep_alive, name=f"amqp {self.queue}", daemon=True).start()

    def _wanted(self) -> int:
        """Return the prefetch of each consumer for messages of any size: in all, twice as many as a batch has."""
        count = 2 * _offsets_max(self.options)
        return min(-(-count // len(self._consumers)), PREFETCH_MAX)

    def _keep_alive(self) -> None:
        while not self._is_closed and self.failure is None:
            time.sleep(BREATH_S)
            with self._lock:
                self._pump(0.0)

    def _pump(self, timeout_s: float) -> bool:
        """Read the socket; return whether there was data. Keep an error for the next call."""
        if self._is_closed or self.failure is not None:
            return False
        deadline = time.monotonic() + timeout_s
        try:
            while not self._poll():
                # A heartbeat ends it early.
                if not self._selector.select(max(deadline - time.monotonic(), 0.0)):
                    return False
        except BrokerError as failure:
            self.failure = failure
            return False
        return True

    def _poll(self) -> bool:
        """Take what has arrived; return whether there was something. Raise BrokerError."""
        is_any = False
        for consumer in self._consumers:
            if runs := consumer.poll():
                self._hold(consumer, runs)
                is_any = True
        if is_any:
            self._adapt()
        return is_any

    def _hold(self, consumer: Consumer, runs: list[Run]) -> None:
        if self._known:
            runs = [self._recognised(one) for run in runs for one in singles(run)]
            self._recognisable_count -= len(runs)
            if self._recognisable_count <= 0:
                self._known = Counter()
        size, count = total_size(runs), total_count(runs)
        self.held.extend((consumer, run) for run in runs)
        self.held_bytes += size
        self.held_count += count
        self._seen_count += count
        self._seen_bytes += size

    def _recognised(self, one: Run) -> Run:
        (mark,) = _marks(one)
        if not self._known[mark]:
            return one
        self._known[mark] -= 1
        return replace(one, redelivered=True)

    def known(self) -> Counter[int]:
        """Return the marks of all deliveries that may come again if the connection is lost now."""
        with self._lock:
            held = chain.from_iterable(_marks(run) for _, run in self.held)
            return +self._known + Counter(self._acked) + Counter(held)

    def _adapt(self) -> None:
        """Consume again with a prefetch that fits the size of the messages, or pause if too much is held."""
        if self.held_bytes > 2 * self.options.bytes_per_trigger_max:
            for consumer in self._consumers:
                consumer.pause()
        if self.options.prefetch or self._seen_count < min(SAMPLE, self.prefetch):
            return
        average = max(self._seen_bytes // self._seen_count, 1)
        all_fitting = 2 * self.options.bytes_per_trigger_max // average
        fitting = max(1, min(self._wanted(), all_fitting // len(self._consumers)))
        if not self.prefetch // 2 <= fitting <= self.prefetch * 2:
            self.prefetch = fitting
            for consumer in self._consumers:
                if not consumer.is_paused:
                    consumer.start(fitting)
        if self._seen_count > 10 * SAMPLE:
            self._seen_count, self._seen_bytes = self._seen_count // 2, self._seen_bytes // 2

    def settle(self, start: int) -> None:
        """Ack all deliveries before this number, which Spark has committed. Raise BrokerError."""
        with self._lock:
            self._check()
            tags: dict[Consumer, int] = {}
            while self.held and self.start < start:
                consumer, run = self.held.popleft()
                settled = run.part(0, start - self.start)
                if settled is not run:
                    self.held.appendleft((consumer, run.part(settled.count, run.count)))
                self.start += settled.count
                self.held_count -= settled.count
                self.held_bytes -= settled.size
                tags[consumer] = settled.last_tag
                self._acked.extend(_marks(settled))
            for consumer, tag in tags.items():
                consumer.connection.ack(tag)
            if self.held_bytes <= self.options.bytes_per_trigger_max:
                self._resume()

    def _resume(self) -> None:
        paused = [consumer for consumer in self._consumers if consumer.is_paused]
        if paused:
            average = max(self._seen_bytes // max(self._seen_count, 1), 1)
            fitting = self.options.bytes_per_trigger_max // average // len(self._consumers)
            self.prefetch = max(1, min(self.prefetch, fitting))
        for consumer in paused:
            consumer.start(self.prefetch)

    def gather(self, count_max: int, wait_s: float) -> int:
        """Return the number of deliveries for a batch, after waiting for the first one. Raise BrokerError."""
        deadline = time.monotonic() + wait_s
        with self._lock:
            while self.held_count < count_max and not self.is_full:
                timeout_s = QUIET_S if self.held_count else max(deadline - time.monotonic(), 0.0)
                if not self._pump(timeout_s):
                    break
            self._check()
            return self._fitting(count_max)

    @property
    def is_full(self) -> bool:
        return self.held_bytes >= self.options.bytes_per_trigger_max

    def _fitting(self, count_max: int) -> int:
        if self.held_bytes <= self.options.bytes_per_trigger_max:
            return min(self.held_count, count_max)
        size = count = 0
        for body_bytes, header_bytes in ((len(body), len(run.header)) for _, run in self.held for body in run.bodies):
            size += body_bytes + header_bytes
            if count >= count_max or (count and size > self.options.bytes_per_trigger_max):
                break
            count += 1
        return count

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def runs(self, start: int, end: int) -> list[Run]:
        """Return the held deliveries with these numbers; others were requeued and will be redelivered."""
        with self._lock:
            return list(between((run for _, run in self.held), start - self.start, end - self.start))

    def depth(self) -> dict[str, int] | None:
        """Return the numbers of messages: ready in the queue, and unacked here; None if the connection is lost."""
        with self._lock:
            if self._is_closed or self.failure is not None:
                return None
            try:
                ready_count = self._consumers[0].connection.check_queue(self.queue).message_count
            except (BrokerError, OptionError) as failure:
                # The next batch tells it.
                self.failure = failure
                return None
            return {"ready": ready_count, "unacked": self.held_count}

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._selector.close()
            for consumer in self._consumers:
                consumer.connection.close()


def _offsets_max(options: SourceOptions) -> int:
    return options.offsets_per_trigger_max or QUEUE_OFFSETS_MAX


def _marks(run: Run) -> list[int]:
    # The header of a run has the size of one body.
    key, properties = run.routing_key, run.header[PROPERTIES_AT:]
    return [hash((key, properties, body)) for body in run.bodies]


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
        self._is_available_now = False

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_held": None}

    def held(self, start: int) -> HeldQueue:
        """Return the consumer; its numbers continue the offsets of the last run. Raise ConnectionLost."""
        if self._held is None:
            self._held = HeldQueue(self.options, start, self._known)
        return self._held

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(_offsets_max(self.options))

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
        """Return the deliveries of this range; none after a restart, as the broker has requeued them."""
        last = end[self.queue]
        if self._held is None:
            self._held = persist(self.options.address, lambda: HeldQueue(self.options, last))
            return []
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
        """Do nothing: Spark calls it a batch late, and not for the last one, so `latestOffset` acks."""

    def stop(self) -> None:
        """Close the connection; Spark rarely calls it, but the broker requeues all when this process ends."""
        if self._held is not None:
            self._held.close()


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
