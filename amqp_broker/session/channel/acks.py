"""Acks of many deliveries at once (basic.ack with multiple)."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from amqp_broker.session.channel.returning import by_consumer, portions, settled_order

if TYPE_CHECKING:
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.session.channel.channel import Channel
    from amqp_broker.session.channel.unacked import Taken

# Acks that count as one piece of work (`Session.spend`).
ACKS_OF_WORK: Final = 4
# The work of an ack among many that are done in portions.
ACK_WORK: Final = 4
# Deliveries that are acked at once; more are acked in portions.
ACKED_MAX: Final = 4096


def ack_up_to(channel: Channel, tag: int) -> bool:
    """Settle all deliveries up to a tag (0: all) as acked, in one pass.

    Do nothing and return False if this concerns more than their queues and consumers, or if the tag is unknown.
    """
    unacked = channel.unacked
    if (
        (tag and tag not in unacked.deliveries)
        or channel.transaction is not None
        or unacked.duplicates
        or channel.prefetch_total
        or channel.vhost.trace is not None
        or channel.session.broker.faults.on_ack
    ):
        return False
    taken = unacked.take_up_to(tag)
    if len(taken) > ACKED_MAX:
        channel.session.work(_acking(channel, taken))
    else:
        _ack_all(channel, taken)
        channel.session.spend(len(taken) // ACKS_OF_WORK)
    return True


def _acking(channel: Channel, taken: Taken) -> Steps[None]:
    groups = yield from by_consumer(channel.session.broker, taken)
    # Deliveries are freed as they are acked.
    taken = ()
    for portion in portions(groups.items()):
        _ack_all(channel, portion)
        channel.session.broker.work += ACK_WORK * len(portion)
        yield


def acking_by_consumer(channel: Channel, taken: Taken) -> Steps[None]:
    """Settle deliveries as acked, in the order in which RabbitMQ does, in portions."""
    broker = channel.session.broker
    groups = settled_order((yield from by_consumer(broker, taken)))
    # Deliveries are freed as they are acked.
    taken = ()
    for portion in portions(groups):
        for _, delivery in portion:
            channel.finish(delivery)
        channel.release_prefetch(portion)
        broker.work += ACK_WORK * len(portion)
        yield


def _ack_all(channel: Channel, deliveries: Taken) -> None:
    freed = channel.session.freed_consumers
    freed_before = len(freed)
    for _, (queue, consumer, position, message) in deliveries:
        if queue.has_extras:
            queue.forget(position, message)
        queue.unacked_count -= 1
        if consumer is None:
            channel.count_ack(queue)
            continue
        consumer.in_flight -= 1
        if consumer.is_full:
            channel.mark_freed(consumer)
    if len(freed) > freed_before + 1:
        # Consumers take again in the order in which RabbitMQ settles their messages (returning.py).
        freed[freed_before:] = sorted(freed[freed_before:], key=attrgetter("tag"))
