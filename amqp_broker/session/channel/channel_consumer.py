"""The consumers of a channel: they put deliveries into the outbox of the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.frames import pack_tag
from amqp_broker.broker.operations.interceptors import as_sent
from amqp_broker.broker.queues.consumer import Consumer, ConsumerAttributes
from amqp_broker.session.channel import delivery_deadlines

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel.channel import Channel
    from amqp_broker.session.session import Session


class ChannelConsumer(Consumer):
    """A consumer of a channel. It delivers by appending to its session's outbox."""

    __slots__ = (
        "channel",
        "frame_max",
        "outbox",
        "plain_bytes_max",
        "prefix",
        "prefixes",
        "session",
        "suffix",
        "unacked",
    )

    def __init__(self, channel: Channel, queue: Queue, attributes: ConsumerAttributes) -> None:
        super().__init__(channel.session, queue, attributes)
        self.channel = channel
        self.session: Session = channel.session
        self.unacked = channel.unacked
        self.outbox = channel.session.outbox
        self.number = channel.number
        self.sequence = channel.subscription_count = channel.subscription_count + 1
        self.counts = channel.counts.of_queue(queue)
        self.frame_max = channel.session.frame_max
        # A content up to this size can be joined with other output.
        self.plain_bytes_max = min(self.frame_max, self.outbox.JOINED_BYTES_MAX)
        # basic.deliver up to the delivery tag; its frame size depends on what follows the tag.
        self.prefixes: dict[int, bytes] = {}
        # Bytes of the last delivery behind its tag and before it: most often the next delivery has the same.
        self.suffix = self.prefix = b""

    def can_take(self) -> bool:
        if self.is_leaving or self.session.is_backpressured or self.timed_out_tags:
            return False
        if self.channel.consumers.get(self.tag) is not self:
            return False
        return self.has_room

    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        unacked = self.unacked
        tag = unacked.last_tag = unacked.last_tag + 1
        self.delivered += 1
        if redelivered:
            self.redelivered += 1
            suffix = message.address.suffix_redelivered
        else:
            suffix = message.address.suffix
        if suffix is not self.suffix:
            self._take_suffix(suffix)
        content = message.content
        if message.channel != self.number or len(content) > self.plain_bytes_max:
            content = self._content_of(message)
        outbox = self.outbox
        pieces = outbox.pieces
        if not pieces:
            outbox.dirty.append(outbox.session)
        pieces += (self.prefix, pack_tag(tag), suffix, content)
        queue = self.queue
        if self.no_ack:
            if queue.has_extras:
                queue.forget(position, message)
            return
        unacked.deliveries[tag] = (queue, self, position, message)
        queue.unacked_count += 1
        in_flight = self.in_flight = self.in_flight + 1
        if in_flight == self.prefetch:
            self.is_full = True
        if self.limit is not None:
            self.limit.enter()

    def reserve(self) -> None:
        if self.no_ack:
            return
        self.reserved_count += 1
        self.in_flight += 1
        self.is_full = self.in_flight == self.prefetch
        self.unacked.reserved_count += 1
        if self.limit is not None:
            self.limit.enter()

    def deliver_reserved(self, message: Message, position: int, redelivered: bool) -> None:
        if not self.no_ack:
            self.reserved_count -= 1
            self.in_flight -= 1
            self.unacked.reserved_count -= 1
            limit = self.channel.limit
            if limit is not None and self.queue.takes_global_prefetch:
                limit.count -= 1
        self.deliver(message, position, redelivered)

    def release(self) -> None:
        if self.no_ack:
            return
        self.reserved_count -= 1
        self.in_flight -= 1
        self.unacked.reserved_count -= 1
        limit = self.channel.limit
        if limit is not None and self.queue.takes_global_prefetch:
            limit.leave(1)

    def deliver_again(self, message: Message) -> None:
        unacked = self.unacked
        tag = unacked.last_tag = unacked.last_tag + 1
        suffix = message.address.suffix_redelivered
        content = message.content_for(self.number, self.frame_max)
        self.outbox.append(wire.deliver_prefix(self.number, self.tag, len(suffix)), pack_tag(tag), suffix, content)
        if not self.no_ack:
            unacked.duplicates[tag] = self.queue, message

    def _content_of(self, message: Message) -> bytes:
        """Return the content of a message from another channel, or of a large one."""
        content = message.content
        if message.channel != self.number or len(content) > self.frame_max:
            content = message.content_for(self.number, self.frame_max)
        if len(content) > self.outbox.JOINED_BYTES_MAX:
            self.outbox.has_large_pieces = True
        return content

    def _take_suffix(self, suffix: bytes) -> None:
        self.suffix, size = suffix, len(suffix)
        prefix = self.prefixes.get(size)
        if prefix is None:
            prefix = self.prefixes[size] = wire.deliver_prefix(self.number, self.tag, size)
        self.prefix = prefix

    def on_queue_deleted(self) -> None:
        self.channel.drop_consumer(self.tag)
        if self.is_leaving:
            return
        # RabbitMQ extension "Consumer Cancel Notification"; no reply is expected.
        if self.session.has_capability("consumer_cancel_notify"):
            self.session.send(self.number, commands.Basic.Cancel(self.tag, True))


class TimedConsumer(ChannelConsumer):
    """A consumer that has a time of its own to settle each delivery."""

    __slots__ = ()

    def __init__(self, channel: Channel, queue: Queue, attributes: ConsumerAttributes, timeout_ms: int | None) -> None:
        super().__init__(channel, queue, attributes)
        self.timeout_ms = timeout_ms

    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        super().deliver(message, position, redelivered)
        if self.timeout_ms and not self.no_ack:
            delivery_deadlines.set_deadline(self.channel, self.unacked.last_tag, self.timeout_ms)


class ReplyConsumer(ChannelConsumer):
    """A consumer of direct replies."""

    __slots__ = ()

    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        super().deliver(as_sent(self.session.broker, message), position, redelivered)
        if not self.session.broker.profile.reply_tags_count:
            self.unacked.last_tag -= 1


class NotingConsumer(TimedConsumer):
    """A consumer whose messages have the time of their delivery, and that may have a time to settle each."""

    __slots__ = ()

    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        super().deliver(as_sent(self.session.broker, message), position, redelivered)
        if not self.no_ack:
            # It may return to its queue, without the time.
            self.unacked.deliveries[self.unacked.last_tag] = (self.queue, self, position, message)
