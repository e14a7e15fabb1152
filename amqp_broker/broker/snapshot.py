"""The messages of a queue without their positions, so that a new queue can have them.

Messages that are with consumers count as returned, as if all clients left just now. `FrozenVHost` copies what holds the
messages, at the speed of C, and reads the copies in steps: they all are from one moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.quorum_order import LEVELS, PRIORITY_DEFAULT
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import Steps

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.chunk import Chunk
    from amqp_broker.broker.durability.journal import Journal, Stored
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.quorum_backlog import QuorumBacklog
    from amqp_broker.broker.vhost import VHost

# Position and message.
Item: TypeAlias = "tuple[int, Message]"


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


class FrozenQueue:
    """The messages of a queue, its `unacked` ones apart, as they are now."""

    def __init__(self, queue: BacklogQueue[Any], delayed: list[Item], journal: Journal) -> None:
        """Freeze a queue; `delayed` are unacked messages whose deliveries a fault delays, `journal` is frozen."""
        self.name = queue.name
        self.unacked = delayed
        self._deadlines = queue.deadlines.copy()
        backlog = queue.backlog
        self._items: Iterator[tuple[int, Message, bool]] = iter(())
        if backlog:
            self._items = self._items_of(backlog.frozen(journal))

    def _items_of(self, backlog: Any) -> Iterator[tuple[int, Message, bool]]:
        """Return the items of a frozen backlog."""
        return iter(backlog.items())

    def kept(self) -> Steps[KeptMessages]:
        """Return the messages."""
        items = []
        for item in self._items:
            items.append(item)
            yield
        items += [(position, message, True) for position, message in self.unacked]
        items.sort(key=itemgetter(0))
        returned, others = list[Kept](), list[Kept]()
        for position, message, is_old in items:
            (returned if is_old else others).append(self._kept(position, message))
            yield
        return KeptMessages(returned, others)

    def _kept(self, position: int, message: Message) -> Kept:
        return Kept(message, self._deadlines.get(position))


class FrozenQuorumQueue(FrozenQueue):
    """A quorum queue: it counts returns, and has messages that wait for a retry or for their targets."""

    def __init__(self, queue: QuorumQueue, delayed: list[Item], journal: Journal) -> None:
        # Messages that were delivered before a restart, and that only the journal has.
        self._taken: dict[int, Stored] = {}
        super().__init__(queue, delayed, journal)
        self._turn = queue.backlog.order.turn
        self._counts = queue.counts.frozen()
        self._withheld = [*queue.retries.items(), *queue.dead_letters.items()]

    def _items_of(self, backlog: QuorumBacklog) -> Iterator[tuple[int, Message, bool]]:
        return backlog.items(self._taken)

    def kept(self) -> Steps[KeptMessages]:
        returned, arrived = list[Kept](), list[Item]()
        for position, message, is_old in self._items:
            if is_old:
                returned.append(self._kept(position, message))
            else:
                arrived.append((position, message))
                taken = self._taken.pop(position, None)
                if taken is not None and taken.death is None:
                    self._counts.on_recovered(position, taken.returns, taken.failures)
            yield
        # The order of delivery follows from the order of arrival and the levels.
        arrived.sort(key=itemgetter(0))
        others = list[Kept]()
        for at, message in arrived:
            others.append(self._kept(at, message))
            yield
        given_back = yield from self._given_back()
        return KeptMessages(returned + given_back, others, self._turn)

    def _given_back(self) -> Steps[list[Kept]]:
        """Return the messages that come back, those that are with consumers as returned once more."""
        given_back = list[Kept]()
        self.unacked.sort(key=itemgetter(0))
        for at, message in self.unacked:
            kept = self._kept(at, self._counts.original(at, message))
            given_back.append(kept._replace(returns=kept.returns + 1))
            yield
        return given_back + [self._kept(at, message) for at, message in self._withheld]

    def _kept(self, position: int, message: Message) -> Kept:
        returns, failures = self._counts.returns.get(position, 0), self._counts.failures.get(position, 0)
        return Kept(message, self._deadlines.get(position), returns, failures, position % LEVELS)


class FrozenVHost:
    """The messages of the queues of a vhost that do not belong to a connection, as they are now."""

    def __init__(self, vhost: VHost, journal: Journal) -> None:
        """Freeze a vhost; `journal` is frozen, and is read as long as steps are done."""
        queues = [queue for queue in vhost.queues.values() if isinstance(queue, BacklogQueue) and queue.owner is None]
        for queue in queues:
            # All of them before the first is frozen, which may get the dead letters of another.
            queue.expire()
        delayed = vhost.broker.faults.delayed
        self._queues: dict[Queue, FrozenQueue] = {}
        for queue in queues:
            held = [(position, one.handover.message) for position, one in delayed.get(queue, {}).items()]
            if isinstance(queue, QuorumQueue):
                self._queues[queue] = FrozenQuorumQueue(queue, held, journal)
            else:
                self._queues[queue] = FrozenQueue(queue, held, journal)
        self._deliveries = [
            channel.deliveries() for connection in vhost.connections for channel in connection.channels.values()
        ]

    def queues(self) -> Steps[list[FrozenQueue]]:
        """Return the queues, with their unacked messages."""
        for deliveries in self._deliveries:
            for queue, _, position, message in deliveries:
                if queue in self._queues:
                    self._queues[queue].unacked.append((position, message))
                yield
        return list(self._queues.values())


class FrozenStream(NamedTuple):
    """The chunks of a stream, and its first offset."""

    name: str
    first: int
    chunks: Iterator[Chunk]


def frozen_streams(vhost: VHost, journal: Journal) -> list[FrozenStream]:
    """Return the streams of a vhost as they are now; `journal` is frozen."""
    logs = [
        (queue.name, queue.log.frozen(journal)) for queue in vhost.queues.values() if isinstance(queue, StreamQueue)
    ]
    return [FrozenStream(name, log.first, log.chunks()) for name, log in logs]


def refilling(queue: BacklogQueue[Any], returned: Iterable[Kept], others: Iterable[Kept], turn: int) -> Steps[None]:
    """Give a new queue without consumers the messages that another had, in steps.

    `returned` are those that were delivered before; they are ready when all are there. A deletion ends the steps.
    """
    backlog = queue.backlog
    taken: list[Item] = []
    for kept in returned:
        _add(queue, kept)
        # Nothing else is ready yet.
        message, position, _ = backlog.pop_head()
        taken.append((position, message))
        yield
        if queue.is_deleted:
            return
    _put_back(queue, taken)
    for kept in others:
        _add(queue, kept)
        yield
        if queue.is_deleted:
            return
    queue.recount()
    if isinstance(queue, QuorumQueue):
        queue.backlog.order.turn = turn


def _add(queue: BacklogQueue[Any], kept: Kept) -> None:
    if isinstance(queue, QuorumQueue):
        _add_kept(queue, kept)
    else:
        queue.backlog.append(kept.message, kept.deadline_ms)


def _put_back(queue: BacklogQueue[Any], taken: list[Item]) -> None:
    if isinstance(queue, QuorumQueue):
        queue.backlog.put_back_all(dict(taken))
        return
    for position, message in taken:
        queue.backlog.put_back(position, message)


def _add_kept(queue: QuorumQueue, kept: Kept) -> None:
    position = queue.backlog.append_at(kept.level, kept.message, kept.deadline_ms)
    if kept.failures:
        queue.counts.failures[position] = kept.failures
    if kept.returns:
        queue.counts.returns[position] = kept.returns
        queue.backlog.rewrite(position, queue.counts.stored(position, kept.message, kept.deadline_ms))
