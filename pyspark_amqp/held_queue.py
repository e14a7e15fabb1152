"""The unacked deliveries of the consumers that a streaming read of a classic or quorum queue has."""

from __future__ import annotations

import selectors
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.commit_log import CommitLog
from pyspark_amqp.content_header import PROPERTIES_AT
from pyspark_amqp.delivery_run import Run, between, singles, total_count, total_size
from pyspark_amqp.errors import BrokerError, ConnectionLost, OptionError
from pyspark_amqp.format_options import PREFETCH_MAX, QUEUE_OFFSETS_MAX, SourceOptions

# Interval of reading the socket while Spark works on a batch.
BREATH_S: Final = 0.05
# Interval of looking whether a batch is stored.
LOOK_S: Final = 0.2
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

    def stop(self) -> None:
        """Take no more messages; those that are on their way still arrive."""
        if self._tag is not None:
            self.connection.cancel(self._tag)
        self._tag = None


@dataclass(frozen=True)
class AwaitedBatch:
    """A batch that Spark works on, and the log that will tell that it is stored."""

    log: CommitLog
    number: int
    # The number after its last delivery.
    end: int


class HeldQueue:
    """Consumers and their unacked deliveries, numbered from `start` in the order of arrival.

    A thread reads the socket between calls, so that heartbeats continue during long batches. It also acks a batch as
    soon as the query's log says that it is stored. The deliveries are also bounded in octets: prefetch counts messages,
    so it is adapted to their size.

    A broker requeues what is unacked for too long (consumer timeout). So deliveries that no batch has go back to the
    queue when Spark has asked for no batch during the idle timeout. A query whose trigger is longer than that is slow:
    from then on it takes the messages of one batch only, and none between two triggers.

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
        self._awaited: AwaitedBatch | None = None
        # The end of the last batch that was planned, and when that was (time.monotonic()).
        self._planned_end = start
        self._asked_at = time.monotonic()
        self._is_slow = self._is_idle = False
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

    @property
    def _batches_held(self) -> int:
        """Number of batches that are held: the one that Spark works on and, if it is not slow, the next one."""
        return 1 if self._is_slow else 2

    def _wanted(self) -> int:
        """Return the prefetch of each consumer for messages of any size."""
        count = self._batches_held * batch_max(self.options)
        return min(-(-count // len(self._consumers)), PREFETCH_MAX)

    def _keep_alive(self) -> None:
        look_at = 0.0
        stored: AwaitedBatch | None = None
        while not self._is_closed and self.failure is None:
            time.sleep(BREATH_S)
            now = time.monotonic()
            if now >= look_at:
                look_at = now + LOOK_S
                stored = self._stored()
            with self._lock:
                if stored is not None:
                    self._ack(stored)
                    stored = None
                self._pump(0.0)
                if not self._is_idle and now - self._asked_at > self.options.idle_timeout_s:
                    self._try(self._rest)

    def _try(self, act: Callable[[], None]) -> None:
        """Act if the connection is there. Keep an error for the next call."""
        if self._is_closed or self.failure is not None:
            return
        try:
            act()
        except BrokerError as failure:
            self.failure = failure

    def await_commit(self, log: CommitLog, number: int, end: int) -> None:
        """Ack the deliveries before `end` as soon as this batch is in the log."""
        with self._lock:
            self._awaited = AwaitedBatch(log, number, end)

    def _stored(self) -> AwaitedBatch | None:
        """Return the batch that Spark works on if it is stored."""
        awaited = self._awaited
        return awaited if awaited is not None and awaited.log.is_committed(awaited.number) else None

    def _ack(self, stored: AwaitedBatch) -> None:
        if self._awaited is stored:
            self._awaited = None
        self._try(lambda: self._settle(stored.end))

    def _rest(self) -> None:
        """Consume nothing until the next batch is asked for, and give back what no batch has."""
        self._is_idle = True
        for consumer in self._consumers:
            consumer.stop()
        self._poll()
        surplus: dict[Consumer, list[int]] = {}
        while self.held and self.start + self.held_count > self._planned_end:
            consumer, run = self.held.pop()
            kept_count = max(run.count - (self.start + self.held_count - self._planned_end), 0)
            if kept_count:
                self.held.append((consumer, run.part(0, kept_count)))
                run = run.part(kept_count, run.count)
            surplus.setdefault(consumer, []).extend(range(run.tag, run.last_tag + 1))
            self.held_count -= run.count
            self.held_bytes -= run.size
        for consumer, tags in surplus.items():
            # Quorum queues deliver them in the order in which they return.
            consumer.connection.requeue(sorted(tags))

    def _wake(self) -> None:
        """Consume again."""
        self._is_idle = False
        fitting = self._wanted()
        if self._seen_count >= SAMPLE:
            fitting = self._fitting_prefetch()
        self.prefetch = min(self.options.prefetch or PREFETCH_MAX, fitting if self._seen_count else SAMPLE, fitting)
        for consumer in self._consumers:
            consumer.start(self.prefetch)

    def _fitting_prefetch(self) -> int:
        """Return the prefetch of each consumer for messages of the size of those that were seen."""
        average = max(self._seen_bytes // self._seen_count, 1)
        all_fitting = self._batches_held * self.options.bytes_per_trigger_max // average
        return max(1, min(self._wanted(), all_fitting // len(self._consumers)))

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
        if self._is_idle:
            return
        if self.held_bytes > 2 * self.options.bytes_per_trigger_max:
            for consumer in self._consumers:
                consumer.pause()
        if self.options.prefetch or self._seen_count < min(SAMPLE, self.prefetch):
            return
        fitting = self._fitting_prefetch()
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
            self._settle(start)

    def _settle(self, start: int) -> None:
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
        if self.held_bytes <= self.options.bytes_per_trigger_max and not self._is_idle:
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
        now = time.monotonic()
        deadline = now + wait_s
        with self._lock:
            self._is_slow = now - self._asked_at > self.options.idle_timeout_s
            if self._is_idle:
                self._try(self._wake)
            while self.held_count < count_max and not self.is_full:
                timeout_s = QUIET_S if self.held_count else max(deadline - time.monotonic(), 0.0)
                if not self._pump(timeout_s):
                    break
            self._check()
            count = self._fitting(count_max)
            self._planned_end = self.start + count
            self._asked_at = time.monotonic()
            if self._is_slow:
                self._rest()
            return count

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

    def close(self, timeout_s: float = -1) -> bool:
        """Ack the batch that is stored, and close the connections.

        Return False, and do nothing, if another call is not over within this time (-1: wait for it).
        """
        if not self._lock.acquire(timeout=timeout_s):
            return False
        try:
            if self._is_closed:
                return True
            if (stored := self._stored()) is not None:
                self._ack(stored)
            self._is_closed = True
            self._selector.close()
            for consumer in self._consumers:
                consumer.connection.close()
            return True
        finally:
            self._lock.release()


def batch_max(options: SourceOptions) -> int:
    """Return the largest number of messages in a batch."""
    return options.offsets_per_trigger_max or QUEUE_OFFSETS_MAX


def _marks(run: Run) -> list[int]:
    # The header of a run has the size of one body.
    key, properties = run.routing_key, run.header[PROPERTIES_AT:]
    return [hash((key, properties, body)) for body in run.bodies]
