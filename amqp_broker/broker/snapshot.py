"""The messages of a queue without their positions, so that a new queue can have them.

Messages that are with consumers count as returned, as if all clients left just now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.backlog_queue import BacklogQueue, Kept
    from amqp_broker.broker.vhost import VHost


def kept_in(vhost: VHost, queue: BacklogQueue) -> tuple[list[Kept], list[Kept]]:
    """Return redelivered messages and the others, as `BacklogQueue.refill` takes them."""
    return queue.kept(_unacked(vhost, queue))


def _unacked(vhost: VHost, queue: BacklogQueue) -> list[tuple[int, Message]]:
    held = [
        (position, message)
        for connection in vhost.connections
        for channel in connection.channels.values()
        for source, _, position, message in channel.unacked.values()
        if source is queue
    ]
    late = vhost.broker.faults.late.get(queue, {})
    return [*held, *((position, one.message) for position, one in late.items())]
