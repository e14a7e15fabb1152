"""The messages of a queue without their positions, so that a new queue can have them.

Messages that are with consumers count as returned, as if all clients left just now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.quorum_order import LEVELS, PRIORITY_DEFAULT

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.backlog_queue import BacklogQueue
    from amqp_broker.broker.vhost import VHost

# Positions and messages that are with consumers, in the order of their positions.
Unacked: TypeAlias = "Sequence[tuple[int, Message]]"


class Kept(NamedTuple):
    """A message and the time at which it expires (ms since the epoch; None: never), without its position.

    The rest is for quorum queues: how often it was returned, how often that was a failure, and its level of priority.
    """

    message: Message
    deadline_ms: int | None = None
    returns: int = 0
    failures: int = 0
    level: int = PRIORITY_DEFAULT


class KeptMessages(NamedTuple):
    """The messages of a queue: those that were delivered before, and the others, in the order of delivery.

    `turn` is the position in the cycle in which the levels of a quorum queue take turns.
    """

    returned: Sequence[Kept]
    others: Sequence[Kept]
    turn: int = 0


def kept_in(vhost: VHost, queue: BacklogQueue) -> KeptMessages:
    """Return the messages of a queue that have not expired."""
    queue.expire()
    unacked = sorted(_unacked(vhost, queue), key=lambda item: item[0])
    if isinstance(queue, QuorumQueue):
        return _kept_in_quorum(queue, unacked)
    items = [*queue.backlog.items(), *((position, message, True) for position, message in unacked)]
    items.sort(key=lambda item: item[0])
    kept = [(Kept(message, queue.deadlines.get(position)), is_old) for position, message, is_old in items]
    return KeptMessages([one for one, is_old in kept if is_old], [one for one, is_old in kept if not is_old])


def _unacked(vhost: VHost, queue: BacklogQueue) -> Unacked:
    held = [
        (position, message)
        for connection in vhost.connections
        for channel in connection.channels.values()
        for source, _, position, message in channel.unacked.values()
        if source is queue
    ]
    late = vhost.broker.faults.late.get(queue, {})
    return [*held, *((position, one.message) for position, one in late.items())]


def _kept_in_quorum(queue: QuorumQueue, unacked: Unacked) -> KeptMessages:
    items, turn = list(queue.backlog.items()), queue.backlog.order.turn
    returned = [_kept(queue, position, message) for position, message, is_old in items if is_old]
    # The order of delivery follows from the order of arrival and the levels.
    arrived = sorted((item for item in items if not item[2]), key=lambda item: item[0])
    others = [_kept(queue, position, message) for position, message, _ in arrived]
    given_back = [_kept(queue, at, queue.counts.original(at, message), more_returns=1) for at, message in unacked]
    given_back += [_kept(queue, at, message) for at, message in [*queue.retries.items(), *queue.dead_letters.items()]]
    if queue.backlog.returns_to_tail:
        return KeptMessages(returned, others + [one._replace(level=PRIORITY_DEFAULT) for one in given_back], turn)
    return KeptMessages(returned + given_back, others, turn)


def _kept(queue: QuorumQueue, position: int, message: Message, more_returns: int = 0) -> Kept:
    returns = queue.counts.returns.get(position, 0) + more_returns
    failures = queue.counts.failures.get(position, 0)
    return Kept(message, queue.deadlines.get(position), returns, failures, position % LEVELS)


def refill(queue: BacklogQueue, messages: KeptMessages) -> None:
    """Give a new queue without consumers the messages that another had. No limit applies until the next arrives."""
    if isinstance(queue, QuorumQueue):
        _refill_quorum(queue, messages)
        return
    for kept in messages.returned:
        queue.backlog.append(kept.message, kept.deadline_ms)
    # All are taken before the first is put back: what is put back stands at the head.
    for message, position, _ in [queue.backlog.pop_head() for _ in messages.returned]:
        queue.backlog.put_back(position, message)
    for kept in messages.others:
        queue.backlog.append(kept.message, kept.deadline_ms)
    queue.recount()


def _refill_quorum(queue: QuorumQueue, messages: KeptMessages) -> None:
    backlog = queue.backlog
    for kept in messages.returned:
        _add_kept(queue, kept)
    taken = {position: message for message, position, _ in [backlog.pop_head() for _ in messages.returned]}
    backlog.put_back_all(taken)
    for kept in messages.others:
        _add_kept(queue, kept)
    queue.recount()
    backlog.order.turn = messages.turn


def _add_kept(queue: QuorumQueue, kept: Kept) -> None:
    position = queue.backlog.append_at(kept.level, kept.message, kept.deadline_ms)
    if kept.failures:
        queue.counts.failures[position] = kept.failures
    if kept.returns:
        queue.counts.returns[position] = kept.returns
        queue.backlog.rewrite(position, queue.counts.stored(position, kept.message, kept.deadline_ms))
