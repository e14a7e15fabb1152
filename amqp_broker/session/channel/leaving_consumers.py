"""The consumers of channels that end: they get nothing more at once, and leave in portions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from amqp_broker.broker.queues.leaving_reasons import CONNECTION_CLOSED
from amqp_broker.broker.scheduling.portions import WORK_MAX, popping
from amqp_broker.session.channel.returning import coming_back

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.consumer_rotation import ConsumerRotation
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.session.channel.channel import Channel
    from amqp_broker.session.session import Session

# The work (`Broker.work`) of a consumer that leaves its queue.
LEAVE_WORK: Final = 4

# Each consumer with its channel.
Leaving: TypeAlias = "deque[tuple[Channel, Consumer]]"


def withdraw(channels: Iterable[Channel]) -> Leaving:
    """Let the consumers of channels get nothing more; return them in the order in which they leave."""
    leaving: Leaving = deque()
    taking: dict[ConsumerRotation, set[Consumer]] = {}
    for channel in channels:
        for consumer in reversed(channel.consumers.values()):
            consumer.is_leaving = True
            leaving.append((channel, consumer))
            if consumer.is_taking:
                taking.setdefault(consumer.queue.rotation, set()).add(consumer)
    for rotation, consumers in taking.items():
        rotation.suspend_all(consumers)
    return leaving


def leave(broker: Broker, leaving: Leaving) -> Steps[None]:
    """Remove withdrawn consumers from their queues, in portions."""
    for channel, consumer in popping(leaving):
        queue = consumer.queue
        channel.drop_consumer(consumer.tag)
        # The queue may have been deleted since.
        if consumer in queue.consumers:
            queue.unsubscribe(consumer)
        broker.work += LEAVE_WORK
        if broker.work >= WORK_MAX:
            yield


def ending(session: Session, channels: Sequence[Channel], leaving: Leaving) -> Steps[None]:
    """End the channels of a lost session after their consumers have left, and then the session."""
    broker = session.broker
    yield from leave(broker, leaving)
    taken = [channel.take_unacked(CONNECTION_CLOSED) for channel in channels]
    broker.do_in_portions(coming_back(broker, taken, CONNECTION_CLOSED))
    for channel in channels:
        channel.end()
    if session.freed_consumers:
        # They refer to the session.
        broker.resume_freed_consumers()
    broker.dismiss(session)
