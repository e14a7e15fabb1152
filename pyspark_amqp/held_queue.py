"""The unacked deliveries of the consumers that a streaming read of a classic or quorum queue has."""

from __future__ import annotations

import selectors
import threading
import time
from collections import Counter, deque
from dataclasses import replace
from itertools import chain
from typing import Final

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.content_header import PROPERTIES_AT
from pyspark_amqp.delivery_run import Run, between, singles, total_count, total_size
from pyspark_amqp.errors import BrokerError, ConnectionLost, OptionError
from pyspark_amqp.format_options import PREFETCH_MAX, QUEUE_OFFSETS_MAX, SourceOptions

# Interval of reading the socket while Spark works on a batch.
BREATH_S: Final = 0.05
# A batch ends after this time without a delivery.
QUIET_S: Final = 0.03
# Number of messages from which the average size is estimated.
SAMPLE: Final = 200
# Number of acked deliveries of which a broker that is killed may lose the acks: the last batches.
ACKED_MAX: Final = 2 * QUEUE_OFFSETS_MAX


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
        count = 2 * batch_max(self.options)
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


def batch_max(options: SourceOptions) -> int:
    """Return the largest number of messages in a batch."""
    return options.offsets_per_trigger_max or QUEUE_OFFSETS_MAX


def _marks(run: Run) -> list[int]:
    # The header of a run has the size of one body.
    key, properties = run.routing_key, run.header[PROPERTIES_AT:]
    return [hash((key, properties, body)) for body in run.bodies]
