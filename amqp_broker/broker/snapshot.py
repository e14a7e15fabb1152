"""What a queue has, taken out of its positions so that a new queue can have it: the core of snapshots.

What is with a consumer counts as come back, as it would if all clients left just now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amqp_broker.broker.quorum_order import PRIORITY_DEFAULT
from amqp_broker.broker.quorum_queue import QuorumQueue

if TYPE_CHECKING:
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message


class Kept(NamedTuple):
    """A message of a queue; when it expires (ms since the epoch), if it does.

    The rest is for quorum queues: how often it came back and how often that was a failure, and its line.
    """

    message: Message
    deadline_ms: int | None = None
    returns: int = 0
    failures: int = 0
    level: int = PRIORITY_DEFAULT


def kept_in(queue: Queue) -> tuple[list[Kept], list[Kept]]:
    """What was delivered before, and what was not; each in the order in which `Queue.refill` wants it."""
    if queue.deadlines:
        queue.expire()
    items = list(queue.items())
    if isinstance(queue, QuorumQueue):
        return _kept_in_quorum_queue(queue, items)
    by_position = sorted(
        [*items, *((position, message, True) for position, message in _unacked(queue))], key=lambda item: item[0]
    )
    kept = [(Kept(message, queue.deadlines.get(position)), is_old) for position, message, is_old in by_position]
    return [one for one, is_old in kept if is_old], [one for one, is_old in kept if not is_old]


def _kept_in_quorum_queue(queue: QuorumQueue, items: list[tuple[int, Message, bool]]) -> tuple[list[Kept], list[Kept]]:
    def kept(position: int, message: Message, more_returns: int = 0) -> Kept:
        returns = queue.return_counts.get(position, 0) + more_returns
        failures = queue.failure_counts.get(position, 0)
        return Kept(message, queue.deadlines.get(position), returns, failures, queue.level_of(position))

    returned = [kept(position, message) for position, message, is_old in items if is_old]
    # Positions in the order of arrival: the order of delivery follows from that and from the lines.
    arrived = sorted(
        ((position, message) for position, message, is_old in items if not is_old), key=lambda item: item[0]
    )
    others = [kept(position, message) for position, message in arrived]
    held = sorted(_unacked(queue), key=lambda item: item[0])
    unacked = [kept(position, queue.original(position, message), 1) for position, message in held]
    if queue.delivery_limit is None:
        return returned, others + [one._replace(level=PRIORITY_DEFAULT) for one in unacked]
    return returned + unacked, others


def _unacked(queue: Queue) -> list[tuple[int, Message]]:
    held = [
        (position, message)
        for connection in queue.vhost.connections
        for channel in connection.channels.values()
        for source, _, position, message in channel.unacked.values()
        if source is queue
    ]
    late = queue.vhost.broker.faults.late.get(queue, {})
    return [*held, *((position, one.message) for position, one in late.items())]
