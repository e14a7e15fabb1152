"""Deliveries that have timed out. Their queues have them again, and the client has yet to settle them.

A consumer gets nothing until its late deliveries are settled (RabbitMQ 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.session.channel.channel import Channel


def add_late(channel: Channel, tag: int, consumer: Consumer, message: Message) -> None:
    """Remember a delivery that has timed out; settling it changes no queue."""
    channel.add_duplicate(tag, consumer.queue, message)
    if channel.timed_out is None:
        channel.timed_out = {}
    channel.timed_out[tag] = consumer
    if consumer.late_tags is None:
        consumer.late_tags = set()
    consumer.late_tags.add(tag)


def settle_late(channel: Channel, tags: Iterable[int]) -> None:
    """Forget late deliveries, and free the consumers that have no other."""
    late = channel.timed_out or {}
    for tag in tags:
        consumer = late.pop(tag, None)
        if consumer is not None and consumer.late_tags is not None:
            consumer.late_tags.remove(tag)
            if not consumer.late_tags:
                channel.session.freed_consumers.append(consumer)
