"""basic.qos, consume, cancel, get and recover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pamqp import commands

from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.errors import NotAllowed, NotImplemented_, PreconditionFailed
from amqp_broker.broker.operations.interceptors import as_sent
from amqp_broker.broker.queues import arguments
from amqp_broker.broker.queues.consumer import ConsumerAttributes
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.reply import REPLY_TO
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.session.channel import delivery_deadlines
from amqp_broker.session.channel.channel_consumer import ChannelConsumer, NotingConsumer, ReplyConsumer, TimedConsumer
from amqp_broker.session.channel.succession import succeed
from amqp_broker.session.methods.topology_methods import queue_name, require

if TYPE_CHECKING:
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.session.channel.channel import Channel


def qos(channel: Channel, method: commands.Basic.Qos) -> None:
    if method.prefetch_size:
        raise NotImplemented_(f"prefetch_size!=0 ({method.prefetch_size})")
    channel.session.send(channel.number, commands.Basic.QosOk())
    if method.global_:
        channel.session.broker.advice.on_global_prefetch(channel)
    if method.global_ and channel.session.broker.profile.has_global_prefetch:
        channel.limit_total(method.prefetch_count)
    else:
        # In RabbitMQ this limits each new consumer, and ends a limit of the channel.
        channel.prefetch = method.prefetch_count
        if channel.prefetch_total:
            channel.limit_total(0)


def consume(channel: Channel, method: commands.Basic.Consume) -> None:
    session, tag = channel.session, method.consumer_tag
    if method.queue == REPLY_TO:
        _consume_replies(channel, method)
        return
    if tag in channel.consumers:
        raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
    _check_consumer_limit(channel)
    name = queue_name(channel, method.queue)
    require(channel, "read", "queue", name)
    queue = channel.vhost.queue(name, session)
    given: Any = method.arguments
    arguments.check_consumer(given, session.broker.profile, str(queue), queue.type)
    if isinstance(queue, StreamQueue):
        queue.check_consumer(channel.prefetch, method.no_ack)
    if channel.prefetch_total and not queue.takes_global_prefetch:
        raise NotImplemented_(f"{queue} does not support global qos")
    attributes = ConsumerAttributes(
        tag or session.broker.unique_name("amq.ctag-"),
        given,
        no_ack=method.no_ack,
        is_exclusive=method.exclusive,
        prefetch=channel.prefetch,
        priority=int(given.get("x-priority", 0)),
    )
    timeout_ms = delivery_deadlines.own_timeout_ms(session.broker, queue, given)
    if session.broker.settings.delivery_time_header:
        consumer: ChannelConsumer = NotingConsumer(channel, queue, attributes, timeout_ms)
    elif timeout_ms and not attributes.no_ack:
        consumer = TimedConsumer(channel, queue, attributes, timeout_ms)
    else:
        consumer = ChannelConsumer(channel, queue, attributes)
    queue.subscribe(consumer)
    if channel.leavers:
        succeed(channel, consumer)
    session.broker.advice.on_consume(channel, consumer)
    _start(consumer, method.nowait)


def _consume_replies(channel: Channel, method: commands.Basic.Consume) -> None:
    """Consume direct replies. Of the request only tag and no_ack matter."""
    tag, is_consuming = method.consumer_tag, channel.reply_name is not None
    known = channel.consumers.get(tag)
    if known is not None and not isinstance(known, ReplyConsumer):
        raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
    if known is None:
        _check_consumer_limit(channel)
    if not method.no_ack:
        raise PreconditionFailed("reply consumer cannot acknowledge")
    if is_consuming:
        raise PreconditionFailed("reply consumer already set")
    queue = channel.reply_queue = channel.vhost.add_reply_queue()
    attributes = ConsumerAttributes(tag or channel.session.broker.unique_name("amq.ctag-"), {}, no_ack=True)
    consumer = ReplyConsumer(channel, queue, attributes)
    queue.subscribe(consumer)
    _start(consumer, method.nowait)


def _check_consumer_limit(channel: Channel) -> None:
    """Raise NotAllowed if the channel has as many consumers as it may have (rabbit_channel.erl)."""
    limit = channel.session.broker.settings.consumer_max_per_channel
    if limit is not None and len(channel.consumers) >= limit:
        raise NotAllowed(f"reached maximum ({limit}) of consumers per channel")


def _start(consumer: ChannelConsumer, nowait: bool) -> None:
    """Send consume-ok, then deliver."""
    channel, session, queue = consumer.channel, consumer.session, consumer.queue
    channel.consumers[consumer.tag] = consumer
    if channel.limit is not None:
        channel.limit.add(consumer)
    if not nowait:
        session.send(channel.number, commands.Basic.ConsumeOk(consumer.tag))
    if session.is_backpressured:
        queue.backpressured.add(consumer)
    elif consumer.can_take():
        queue.resume(consumer)


def cancel(channel: Channel, method: commands.Basic.Cancel) -> None:
    # Unsettled messages stay on the channel.
    consumer = channel.drop_consumer(method.consumer_tag or "")
    if consumer is not None:
        consumer.queue.unsubscribe(consumer)
        if consumer.in_flight:
            consumer.queue.keep_leaver(consumer)
    if not method.nowait:
        channel.session.send(channel.number, commands.Basic.CancelOk(method.consumer_tag))


def get(channel: Channel, method: commands.Basic.Get) -> Steps[None] | None:
    session = channel.session
    name = queue_name(channel, method.queue)
    require(channel, "read", "queue", name)
    queue = channel.vhost.queue(name, session)
    queue.use()
    if _get_now(channel, queue, no_ack=method.no_ack):
        return None
    return _get_later(channel, queue, no_ack=method.no_ack)


def _get_now(channel: Channel, queue: Queue, *, no_ack: bool) -> bool:
    """Answer a basic.get, unless the queue serves nothing at the moment: then return False."""
    if not queue.holds and not queue.has_deadlines:
        _get(channel, queue, no_ack=no_ack)
        if queue.has_deadlines:
            # Messages that were only in the journal until now have them.
            queue.expire()
        return True
    # Dead letters of messages that have expired follow the answer, and its count is without those that return.
    with channel.session.broker.dead_letters_held(serves_freed=False):
        queue.expire()
        if queue.holds and not queue.is_deleted:
            return False
        _get(channel, queue, no_ack=no_ack)
        queue.expire()
    return True


def _get_later(channel: Channel, queue: Queue, *, no_ack: bool) -> Steps[None]:
    """Answer when the queue serves again. One that is deleted until then is empty."""
    is_answered = False
    while not is_answered and channel.session.channels.get(channel.number) is channel:
        yield from queue.held()
        is_answered = _get_now(channel, queue, no_ack=no_ack)


def _get(channel: Channel, queue: Queue, *, no_ack: bool) -> None:
    session, pulled = channel.session, queue.pull(no_ack=no_ack)
    counters = channel.counts.of_queue(queue)
    if pulled is None:
        for counts in counters:
            counts.get_empty += 1
        session.send(channel.number, commands.Basic.GetEmpty(""))
        return
    message, position, redelivered = pulled
    delivered = as_sent(session.broker, queue.as_delivered(message, position))
    tag = channel.unacked.last_tag = channel.unacked.last_tag + 1
    session.outbox.append(
        wire.get_ok_frame(channel.number, tag, message.address, redelivered, queue.ready_count),
        delivered.content_for(channel.number, session.frame_max),
    )
    if no_ack:
        queue.forget(position, message)
        for counts in counters:
            counts.get_no_ack += 1
    else:
        channel.unacked.deliveries[tag] = (queue, None, position, message)
        queue.unacked_count += 1
        queue.note_pulled(position)
        if timeout_ms := delivery_deadlines.own_timeout_ms(session.broker, queue, {}):
            delivery_deadlines.set_deadline(channel, tag, timeout_ms)
        for counts in counters:
            counts.get += 1
    if redelivered:
        for counts in counters:
            counts.redeliver += 1
    if channel.vhost.trace is not None:
        channel.vhost.trace.delivered(queue, delivered, redelivered, session, channel.number, no_ack)


def recover(channel: Channel, method: commands.Basic.Recover) -> None:
    _check_requeue(method.requeue)
    channel.session.send(channel.number, commands.Basic.RecoverOk())
    _recover(channel)


def recover_async(channel: Channel, method: commands.Basic.RecoverAsync) -> None:
    _check_requeue(method.requeue)
    _recover(channel)


def _check_requeue(requeue: bool) -> None:
    if not requeue:
        raise NotImplemented_("requeue=false")


def _recover(channel: Channel) -> None:
    """Requeue all that is unacked. In RabbitMQ that is no part of a transaction (rabbit_channel.erl)."""
    taken = channel.unacked.take_all()
    channel.release_duplicates(channel.unacked.take_duplicates(0, multiple=True))
    channel.settle_rejected(taken, requeue=True)
