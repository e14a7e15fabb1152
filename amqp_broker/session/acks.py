"""Acks of many deliveries at once (basic.ack with multiple)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.session.channel import Channel


def ack_up_to(channel: Channel, tag: int) -> bool:
    """Settle all deliveries up to a tag (0: all) as acked, in one pass.

    Do nothing and return False if this concerns more than their queues and consumers, or if the tag is unknown.
    """
    unacked = channel.unacked
    if (
        (tag and tag not in unacked)
        or channel.transaction is not None
        or channel.duplicates is not None
        or channel.prefetch_total
        or channel.vhost.trace is not None
        or channel.session.broker.faults.on_ack
    ):
        return False
    settled = []
    for other, (queue, consumer, position, message) in unacked.items():
        if tag and other > tag:
            break
        settled.append(other)
        if queue.has_extras:
            queue.forget(position, message)
        queue.unacked_count -= 1
        if consumer is None:
            channel.count_ack(queue)
            continue
        consumer.in_flight -= 1
        if consumer.is_full:
            channel.mark_freed(consumer)
    for other in settled:
        del unacked[other]
    return True
