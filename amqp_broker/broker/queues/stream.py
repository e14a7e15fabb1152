"""Streams on a single node: logs that consumers read, each from an offset of its own.

Consumers do not change a stream: settling gives them credit, and only retention removes messages.
Source: RabbitMQ, "Streams and Super Streams"; rabbit_stream_queue.erl.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import NotImplemented_, PreconditionFailed
from amqp_broker.amqp.message import HEADER_START_BYTES, Message, SpecialMessage
from amqp_broker.amqp.stamped_message import StampedMessage
from amqp_broker.broker.admin.policy_merging import interval_ms
from amqp_broker.broker.durability.chunk import HEADERS_FLAG, Filter, without_nested_headers
from amqp_broker.broker.durability.stream_log import CHUNK_BYTES_MAX, JournaledLog, StreamLog
from amqp_broker.broker.queues.before_death import with_expiration
from amqp_broker.broker.queues.leaving_reasons import QUEUE_DELETED, RETENTION
from amqp_broker.broker.queues.queue import DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX, Queue, QueueDeclaration
from amqp_broker.broker.queues.queue_settings import QueueSettings, effective
from amqp_broker.broker.scheduling.portions import WORK_MAX, Steps

if TYPE_CHECKING:
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.scheduling.timers import Timer
    from amqp_broker.broker.vhost import VHost

# Cost of looking at a chunk, in delivered messages.
CHUNK_COST: Final = 16
# The distance in messages within which readers read the same chunks, and the number of readers that are compared.
NEAR: Final = 4096
COMPARED_READERS_MAX: Final = 8


class Cursor:
    """A consumer's place in a stream. `next` is the offset to deliver next.

    `messages` are those of its chunk, from offset `first` on.
    """

    __slots__ = ("filter", "first", "messages", "next")

    def __init__(self, offset: int, filter_: Filter | None) -> None:
        self.next = offset
        self.filter = filter_
        self.first = 0
        self.messages: list[Message] = []


# Messages whose end is reported to a trace, and their octets: no event log keeps more.
TRACED_MAX: Final = 10_000
TRACED_BYTES_MAX: Final = 64 * 1024 * 1024

# RabbitMQ's size of a segment.
SEGMENT_BYTES: Final = 500_000_000


class StreamQueue(Queue):
    """A stream. Its ready consumers are those with credit, whether there are messages for them or not."""

    type: ClassVar[str] = "stream"
    takes_global_prefetch = False
    takes_exclusive_consumers = False

    def __init__(self, vhost: VHost, declaration: QueueDeclaration) -> None:
        super().__init__(vhost, declaration)
        self.log: StreamLog = StreamLog()
        self.readers: dict[Consumer, Cursor] = {}
        self._retention_timer: Timer | None = None
        # Offsets and messages whose end is to be reported to the trace, and the octets of these messages.
        self._traced: deque[tuple[int, Message]] = deque()
        self._traced_bytes = 0
        # Set during a delivery, which may push messages to this stream (a trace of deliveries does).
        self._is_delivering = False
        # The place among the ready consumers at which the next batch begins.
        self._first_drained = 0
        self.apply(effective(self.arguments, {}, {}))

    @property
    def ready_count(self) -> int:
        """Number of messages that can be read."""
        return self.log.count

    @property
    def consumer_count(self) -> int:
        """Zero: declare-ok does not count the consumers of a stream (rabbit_stream_queue.erl, stat)."""
        return 0

    @property
    def segment_count(self) -> int:
        """The number of files that RabbitMQ would have at least: there is one more for each full one."""
        return max(1, -(-self.log.content_bytes // (self.settings.segment_bytes_max or SEGMENT_BYTES)))

    def keep(self, range_id: int | None) -> None:
        journal = self.vhost.broker.journal
        self.range_id = journal.new_ranges(1) if range_id is None else range_id
        self.log = JournaledLog(journal, self.range_id, self)
        self.apply(self.settings)

    def release(self) -> None:
        super().release()
        self._report_dropped(self.log.next, QUEUE_DELETED)
        self.log.drop()
        # The log and the timer refer to this queue. Consumers that are cancelled later find nothing more in it.
        self.log = StreamLog()
        if self._retention_timer is not None:
            self._retention_timer.cancel()

    def apply(self, settings: QueueSettings) -> None:
        self.settings = settings
        self.log.chunk_bytes_max = min(settings.segment_bytes_max or CHUNK_BYTES_MAX, CHUNK_BYTES_MAX)
        self._update_extras()
        self._retain()

    def _update_extras(self) -> None:
        # Messages do not expire, and the log itself writes to the journal.
        self.has_extras = self.vhost.trace is not None or self.is_faulty
        if self.vhost.trace is None:
            self._traced.clear()
            self._traced_bytes = 0

    def catch_up(self) -> None:
        pass

    # Messages in

    def push(self, message: Message) -> None:
        if isinstance(message, StampedMessage):
            message = message.for_streams()
        if message.content[HEADER_START_BYTES] & HEADERS_FLAG:
            if isinstance(message, SpecialMessage) and message.has_died:
                # A stream keeps the properties as they were published (mc_amqpl.erl, convert_to).
                message = with_expiration(message)
            message = without_nested_headers(message)
        if not message.is_persistent and self.vhost.broker.profile.streams_name_delivery_mode:
            message = message.with_delivery_mode()
        self.log.append(message, self.vhost.broker.now)
        if self.vhost.trace is not None:
            self.vhost.trace.stored(self, self.log.next - 1, message)
        if self.range_id is None:
            self.on_committed()

    def refilling_from(self, offset: int, chunks: Iterable[tuple[int, Sequence[Message]]]) -> Steps[None]:
        """Take over the chunks of a snapshot: times (ms since the epoch) and messages, from an offset on."""
        self.log.begin_at(offset)
        for timestamp_ms, messages in chunks:
            for message in messages:
                self.log.append(message, timestamp_ms)
            self.log.seal()
            yield
            if self.is_deleted:
                return
        if self.range_id is None:
            self.on_committed()

    def on_committed(self) -> None:
        """Deliver messages that readers may see from now on."""
        self.note_change()
        if not self.is_deleted:
            if self._is_delivering:
                self._pause_drain()
            elif self.ready_consumers and not self.is_undrained:
                self.drain()
            if self.settings.bytes_max is not None or self.settings.age_max_ms is not None:
                self._retain()

    def _retain(self) -> None:
        """Drop chunks from the head that are too much or too old; the newest one stays."""
        bytes_max, age_ms, log = self.settings.bytes_max, self.settings.age_max_ms, self.log
        now, start = self.vhost.broker.now, log.first
        if (bytes_max is None and age_ms is None) or self.is_deleted:
            return
        while (head := log.first_head()) is not None:
            is_too_much = bytes_max is not None and log.content_bytes > bytes_max
            if not is_too_much and (age_ms is None or head.timestamp_ms + age_ms > now):
                break
            log.drop_first(head)
        if log.first != start:
            self.note_change()
            log.forget(start)
            self._report_dropped(log.first, RETENTION)
        if head is not None and age_ms is not None:
            self._retain_again_at(head.timestamp_ms + age_ms)

    def report_end_of(self, offset: int, message: Message) -> None:
        """Report to the trace when the message at an offset is gone."""
        self._traced.append((offset, message))
        self._traced_bytes += len(message.content)
        while len(self._traced) > TRACED_MAX or self._traced_bytes > TRACED_BYTES_MAX:
            self._take_traced()

    def _take_traced(self) -> Message:
        message = self._traced.popleft()[1]
        self._traced_bytes -= len(message.content)
        return message

    def _report_dropped(self, end: int, reason: str) -> None:
        """Report the messages before an offset to the trace: they are gone."""
        trace = self.vhost.trace
        while trace is not None and self._traced and self._traced[0][0] < end:
            trace.given_up(self, self._take_traced(), reason)

    def _retain_again_at(self, deadline_ms: int) -> None:
        timer = self._retention_timer
        if timer is None or timer.deadline_ms > deadline_ms:
            if timer is not None:
                timer.cancel()
            self._retention_timer = self.vhost.broker.timers.at(deadline_ms, self._on_too_old)

    @property
    def next_retention_ms(self) -> int | None:
        """When the oldest messages are too old (ms since the epoch); None if they never are."""
        head, age_ms = self.log.first_head(), self.settings.age_max_ms
        return None if head is None or age_ms is None else head.timestamp_ms + age_ms

    def _on_too_old(self, now: int) -> None:
        self._retention_timer = None
        self._retain()

    # Messages out

    def peek(self) -> Iterator[tuple[int, Message, bool]]:
        return self.peek_from(self.log.first)

    def peek_from(self, offset: int) -> Iterator[tuple[int, Message, bool]]:
        """Yield the messages from an offset on, as `peek` does."""
        offset = max(offset, self.log.first)
        while offset < self.log.committed:
            messages = self.log.read(offset)
            for position, message in enumerate(messages, offset):
                yield position, message, False
            offset = offset + len(messages) if messages else self.log.head_at(offset).end

    def drain(self) -> None:
        """Deliver a portion to each consumer with credit, as far as this turn has time."""
        broker, has_more = self.vhost.broker, False
        consumers = list(self.ready_consumers)
        # Those that this turn has no time for come first in the next.
        first, self._first_drained = min(self._first_drained, len(consumers)), 0
        for number, consumer in enumerate(chain(consumers[first:], consumers[:first])):
            if number and broker.work >= WORK_MAX:
                self._first_drained = (first + number) % len(consumers)
                has_more = True
                break
            # A consumer before this one may have taken its credit, through a limit of their channel.
            if consumer.is_taking and self._deliver_to(consumer):
                has_more = True
        if has_more:
            self._pause_drain()

    def _deliver_to(self, consumer: Consumer) -> bool:
        """Deliver a portion to one consumer; return whether there is more for it."""
        reader = self.readers[consumer]
        next_before, self._is_delivering = reader.next, True
        try:
            return self._deliver_batch(consumer, reader)
        finally:
            self._is_delivering = False
            self.vhost.broker.work += 1 + reader.next - next_before

    def _deliver_batch(self, consumer: Consumer, reader: Cursor) -> bool:
        log, filter_, trace = self.log, reader.filter, self.vhost.trace
        bytes_left, messages_left = DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
        reader.next = max(reader.next, log.first)
        while reader.next < log.committed:
            index = reader.next - reader.first
            if not 0 <= index < len(reader.messages):
                messages_left -= CHUNK_COST
                if messages_left < 0:
                    return True
                if not self._read_chunk(reader):
                    continue
                index = 0
            messages = reader.messages
            for message in messages[index:] if index else messages:
                reader.next += 1
                messages_left -= 1
                if filter_ is None or filter_.matches(message):
                    if self.is_faulty:
                        self.vhost.broker.faults.deliver_from_stream(self, consumer, message, reader.next - 1)
                    else:
                        consumer.deliver(message, reader.next - 1, False)
                        if trace is not None:
                            trace.delivered_to(consumer, message, False)
                    if consumer.is_full or not consumer.is_taking:
                        self.rotation.suspend(consumer)
                        return False
                    bytes_left -= len(message.content)
                if bytes_left < 0 or messages_left < 0:
                    return reader.next < log.committed
        reader.messages = []
        return False

    def _read_chunk(self, reader: Cursor) -> bool:
        """Read the chunk at a reader's offset.

        Return False if its filter matches none of the messages, or if the chunk is damaged: the next one follows then.
        """
        if reader.filter is not None:
            head = self.log.head_at(reader.next)
            if not reader.filter.may_match(head):
                reader.next = head.end
                return False
        is_shared = self._is_awaited_by_others(reader)
        reader.first, reader.messages = reader.next, self.log.read(reader.next, is_shared=is_shared)
        if reader.messages:
            return True
        end = self.log.head_at(reader.next).end
        self.vhost.broker.journal.report_damage(
            f"{self}: the messages at offsets {reader.next} to {end - 1} are damaged; they are skipped"
        )
        reader.next = end
        return False

    def _is_awaited_by_others(self, reader: Cursor) -> bool:
        """Return whether other readers are where this one is, or a few chunks behind it."""
        readers, offset = self.readers.values(), reader.next
        if len(readers) > COMPARED_READERS_MAX:
            return True
        return any(offset - NEAR <= other.next <= offset for other in readers if other is not reader)

    def pull(self, *, no_ack: bool = True) -> tuple[Message, int, bool] | None:
        raise NotImplemented_(f"basic.get not supported by stream queues {self}")

    def return_to_head(self, position: int, message: Message) -> None:
        pass

    def purge(self) -> int:
        """Raise NotImplemented_, unless the stream is being deleted."""
        if not self.is_deleted:
            raise NotImplemented_(f"queue.purge not supported by stream queues {self}")
        return 0

    def expire(self) -> None:
        pass

    # Settling gives a consumer credit, which its channel counts. It does nothing else.

    def forget(self, position: int, message: Message) -> None:
        pass

    def note_failure(self, position: int) -> None:
        pass

    def requeue(self, position: int, message: Message, *, is_lost: bool = False) -> int:
        self.note_change()
        self.unacked_count -= 1
        return position

    def reject(self, position: int, message: Message) -> None:
        self.note_change()
        self.unacked_count -= 1

    # Consumers

    def check_deletable(self, *, if_unused: bool, if_empty: bool) -> None:
        """Allow the deletion: both conditions mean nothing for streams."""

    def check_consumer(self, prefetch: int, no_ack: bool) -> None:
        """Raise PreconditionFailed without a prefetch, and NotImplemented_ without acknowledgements."""
        if not prefetch:
            raise PreconditionFailed(f"consumer prefetch count is not set for stream {self}")
        if no_ack:
            raise NotImplemented_(f"automatic acknowledgement not supported by stream {self}")

    def subscribe(self, consumer: Consumer) -> None:
        self.readers[consumer] = Cursor(
            self._start(consumer.arguments.get("x-stream-offset", "next")), filter_of(consumer.arguments)
        )
        super().subscribe(consumer)

    def _start(self, offset: Any) -> int:
        """Return the offset at which a consumer begins that asks for this one; it has been checked."""
        log = self.log
        if isinstance(offset, bytes):
            offset = offset.decode()
        if offset == "first":
            return log.first
        if offset == "last":
            return log.offset_of_last_chunk()
        if offset == "next":
            return log.committed
        if isinstance(offset, fields.Timestamp):
            return log.offset_since(offset * 1000)
        if isinstance(offset, str):
            return log.offset_since(self.vhost.broker.now - (interval_ms(offset) or 0))
        return max(int(offset), log.first)

    def unsubscribe(self, consumer: Consumer) -> None:
        super().unsubscribe(consumer)
        del self.readers[consumer]

    def resume(self, consumer: Consumer) -> None:
        # Neither a single active consumer nor priorities matter here.
        if not consumer.is_taking:
            consumer.is_taking = True
            self.ready_consumers.append(consumer)
            if self._deliver_to(consumer):
                self._pause_drain()


def filter_of(arguments: fields.Table) -> Filter | None:
    """Return the filter that a consumer's arguments ask for; None lets all messages through."""
    wanted = arguments.get("x-stream-filter")
    if isinstance(wanted, str):
        wanted = [wanted]
    if not isinstance(wanted, list):
        return None
    values = frozenset(value for value in wanted if isinstance(value, str))
    return Filter(values, arguments.get("x-stream-match-unfiltered") is True)
