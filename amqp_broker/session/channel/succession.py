"""Consumers that follow a cancelled one with the same tag on the same channel and queue.

RabbitMQ knows a consumer by its channel and tag, so the new one settles what the former one has left. In a quorum queue
these deliveries count for its prefetch (rabbit_fifo.erl, update_consumer). In other queues it begins with its whole
prefetch, and each of these that is settled allows one delivery more (rabbit_limiter.erl, ack_from_queue).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.session.channel.channel import Channel


def succeed(channel: Channel, consumer: Consumer) -> None:
    """Have a new consumer settle the deliveries of former ones, if there are any.

    One without acknowledgements settles nothing, but a quorum queue counts both as one consumer.
    """
    former = [leaver for leaver in channel.leavers if leaver.tag == consumer.tag and leaver.queue is consumer.queue]
    if not former or (consumer.no_ack and not consumer.queue.keeps_leavers):
        return
    unacked = list(channel.unacked.deliveries.items())
    count = _hand_over(unacked, former, consumer)
    channel.unacked.deliveries.update(unacked)
    if channel.transaction is not None:
        for settled in (channel.transaction.acks, *(deliveries for _, deliveries in channel.transaction.rejects)):
            count += _hand_over(settled, former, consumer)
    if count and consumer.queue.keeps_leavers:
        # Its deliveries come back in the turn of the former one (rabbit_fifo.erl, consumer_key_from_id).
        consumer.sequence = min(leaver.sequence for leaver in former)
    for leaver in former:
        channel.forget_leaver(leaver)
    consumer.take_over(count)


def _hand_over(deliveries: list[tuple[int, Delivery]], former: list[Consumer], consumer: Consumer) -> int:
    """Replace former consumers of deliveries, given with their tags, by another; return how often."""
    count = 0
    for index, (tag, (queue, holder, position, message)) in enumerate(deliveries):
        if holder in former:
            deliveries[index] = tag, (queue, consumer, position, message)
            count += 1
    return count
