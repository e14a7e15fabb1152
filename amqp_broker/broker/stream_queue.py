"""A queue of type stream, on the one node there is: a log that consumers read, each from an offset of its own.

Nothing that a consumer does changes what is there: settling gives credit, and only retention removes messages.
Source: RabbitMQ, "Streams and Super Streams"; rabbit_stream_queue.erl.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker import fields
from amqp_broker.broker.chunk import Filter
from amqp_broker.broker.queue import DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX, Queue
from amqp_broker.broker.settings import QueueSettings, interval_ms
from amqp_broker.broker.stream_log import CHUNK_BYTES_MAX, JournaledLog, StreamLog
from amqp_broker.errors import NotImplemented_, PreconditionFailed
from amqp_broker.message import Message

if TYPE_CHECKING:
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.timers import Timer

# What it takes to look at a chunk, in messages handed out.
CHUNK_COST: Final = 16


class Reader:
    """Where a consumer is: `next` is the offset that it gets next, `messages` those of its chunk from `first` on."""

    __slots__ = ("filter", "first", "messages", "next")

    def __init__(self, offset: int, filter_: Filter | None) -> None:
        self.next = offset
        self.filter = filter_
        self.first = 0
        self.messages: list[Message] = []


class StreamQueue(Queue):
    """A stream. `takers` are the consumers that have credit, whether there is something for them or not."""

    type: ClassVar[str] = "stream"
    takes_global_prefetch = False

    def __init__(self, *args: Any, **attributes: Any) -> None:
        self.log: StreamLog = StreamLog()
        self.readers: dict[Consumer, Reader] = {}
        self._retention_timer: Timer | None = None
        # Set while messages are handed out, which may bring others here (a trace of deliveries does).
        self._is_handing_out = False
        super().__init__(*args, **attributes)

    @property
    def ready_count(self) -> int:
        """How many messages there are to read."""
        return self.log.count

    def keep(self, range_id: int) -> None:
        self.range_id = range_id
        self.log = JournaledLog(self, self.vhost.broker.journal, range_id)
        self.apply(self.settings)

    def drop_windows(self) -> None:
        self.log.drop()

    def apply(self, settings: QueueSettings) -> None:
        self.settings = settings
        self.log.chunk_bytes_max = min(settings.segment_bytes_max or CHUNK_BYTES_MAX, CHUNK_BYTES_MAX)
        self._update_extras()
        self._retain()

    def _update_extras(self) -> None:
        # Messages do not expire, and the log knows itself what the journal must know.
        self.has_extras = self.vhost.trace is not None

    # Messages in

    def push(self, message: Message) -> None:
        self.log.append(message, self.vhost.broker.now)
        if self.range_id is None:
            self.on_committed()

    def push_with_extras(self, message: Message, expiration_ms: int | None = None) -> None:
        self.push(message)

    def refill_from(self, offset: int, chunks: Iterable[tuple[int, Sequence[Message]]]) -> None:
        """Have what a snapshot has, from an offset on: when each chunk came (ms since the epoch), and its messages."""
        self.log.begin_at(offset)
        for timestamp_ms, messages in chunks:
            for message in messages:
                self.log.append(message, timestamp_ms)
            self.log.seal()
        if self.range_id is None:
            self.on_committed()

    def on_committed(self) -> None:
        """There is more to read."""
        if not self.is_deleted:
            if self._is_handing_out:
                self._stop_at_portion()
            elif self.takers and not self.is_undrained:
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
            log.forget(start)
        if head is not None and age_ms is not None:
            self._look_again_at(head.timestamp_ms + age_ms)

    def _look_again_at(self, deadline_ms: int) -> None:
        timer = self._retention_timer
        if timer is None or timer.deadline_ms > deadline_ms:
            if timer is not None:
                timer.cancel()
            self._retention_timer = self.vhost.broker.timers.at(deadline_ms, self._on_too_old)

    def _on_too_old(self, now: int) -> None:
        self._retention_timer = None
        self._retain()

    # Messages out

    def messages(self) -> Iterator[Message]:
        offset = self.log.first
        while offset < self.log.committed:
            messages = self.log.read(offset)
            yield from messages
            offset += len(messages)

    def peek(self) -> Iterator[tuple[Message, bool]]:
        return self.peek_from(self.log.first)

    def peek_from(self, offset: int) -> Iterator[tuple[Message, bool]]:
        """What there is from an offset on."""
        offset = max(offset, self.log.first)
        while offset < self.log.committed:
            messages = self.log.read(offset)
            yield from ((message, False) for message in messages)
            offset += len(messages)

    def drain(self, with_expired: bool = False) -> None:
        """Hand out what is there to all that have credit, a portion to each."""
        has_more = False
        for consumer in list(self.takers):
            # Who had his turn before may have taken this one its credit, through a limit of their channel.
            if consumer.is_taking and self._hand_out(consumer):
                has_more = True
        if has_more:
            self._stop_at_portion()

    def _hand_out(self, consumer: Consumer) -> bool:
        """Hand out a portion to one consumer; returns whether there is more for it."""
        self._is_handing_out = True
        try:
            return self._hand_to(consumer, self.readers[consumer])
        finally:
            self._is_handing_out = False

    def _hand_to(self, consumer: Consumer, reader: Reader) -> bool:
        log, filter_, trace = self.log, reader.filter, self.vhost.trace
        bytes_left, messages_left = DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
        reader.next = max(reader.next, log.first)
        while reader.next < log.committed:
            index = reader.next - reader.first
            if not 0 <= index < len(reader.messages):
                messages_left -= CHUNK_COST
                if messages_left < 0:
                    return True
                if not self._turn_page(reader):
                    continue
                index = 0
            messages = reader.messages
            for message in messages[index:] if index else messages:
                reader.next += 1
                messages_left -= 1
                if filter_ is None or filter_.matches(message):
                    consumer.deliver(message, reader.next - 1, False)
                    if trace is not None:
                        trace.delivered(self, message, False, consumer.connection, consumer.number, consumer.no_ack)
                    if consumer.is_full or not consumer.is_taking:
                        self.suspend(consumer)
                        return False
                    bytes_left -= len(message.content)
                if bytes_left < 0 or messages_left < 0:
                    return reader.next < log.committed
        reader.messages = []
        return False

    def _turn_page(self, reader: Reader) -> bool:
        """Read the chunk at which a reader is; returns False if there is nothing in it for its filter."""
        if reader.filter is not None:
            head = self.log.head_at(reader.next)
            if not reader.filter.may_match(head):
                reader.next = head.end
                return False
        reader.first, reader.messages = reader.next, self.log.read(reader.next)
        return True

    def pull(self) -> tuple[Message, int, bool] | None:
        raise NotImplemented_(f"basic.get not supported by stream queues {self}")

    def purge(self) -> int:
        """Nothing but the deletion of a stream empties it. Raises NotImplemented_."""
        if not self.is_deleted:
            raise NotImplemented_(f"queue.purge not supported by stream queues {self}")
        return 0

    def expire(self) -> None:
        """Messages of streams do not."""

    # Settling: credit for the consumer, which its channel keeps, and nothing else

    def forget(self, position: int, message: Message) -> None:
        pass

    def requeue(self, position: int, message: Message) -> int:
        self.unacked_count -= 1
        return position

    def reject(self, position: int, message: Message) -> None:
        self.unacked_count -= 1

    # Consumers

    def check_deletable(self, *, if_unused: bool, if_empty: bool) -> None:
        """A stream is deleted in any case."""

    def check_consumer(self, prefetch: int, no_ack: bool) -> None:
        if not prefetch:
            raise PreconditionFailed(f"consumer prefetch count is not set for stream {self}")
        if no_ack:
            raise NotImplemented_(f"automatic acknowledgement not supported by stream {self}")

    def subscribe(self, consumer: Consumer) -> None:
        self.readers[consumer] = Reader(
            self._start(consumer.arguments.get("x-stream-offset", "next")), filter_of(consumer.arguments)
        )
        super().subscribe(consumer)

    def _check_exclusive(self, consumer: Consumer) -> None:
        """Nobody has a stream alone, whatever he asks for."""

    def _start(self, offset: Any) -> int:
        """The offset at which a consumer begins that asks for this one, which has been checked."""
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
        if not consumer.is_taking:
            consumer.is_taking = True
            self.takers.append(consumer)
            if self._hand_out(consumer):
                self._stop_at_portion()


def filter_of(arguments: fields.Table) -> Filter | None:
    """What a consumer with these arguments wants of a stream; None is everything."""
    wanted = arguments.get("x-stream-filter")
    if isinstance(wanted, str):
        wanted = [wanted]
    if not isinstance(wanted, list):
        return None
    values = frozenset(value for value in wanted if isinstance(value, str))
    return Filter(values, arguments.get("x-stream-match-unfiltered") is True)
