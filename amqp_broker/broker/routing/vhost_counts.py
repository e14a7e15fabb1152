"""Counts of what is published and delivered in a vhost."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from amqp_broker.broker.counting.counters import Counters, DeliveryCounts, PublishCounts
from amqp_broker.broker.queues.statistics import NO_MESSAGES, Lengths
from amqp_broker.broker.scheduling.portions import Steps, finished

if TYPE_CHECKING:
    from amqp_broker.broker.counting.history import History
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.routing.route import Route


class VHostCounts:
    """The counts of a vhost. `pending_routes` have messages that are not counted in `publishes` yet.

    `lengths` are the sums of those of the queues at their last samples.
    """

    def __init__(self, exchanges: Mapping[str, Exchange], node: Counters) -> None:
        self.publishes = PublishCounts()
        self.deliveries = DeliveryCounts()
        self.pending_routes: deque[Route] = deque()
        self.history: History | None = None
        self.lengths = NO_MESSAGES
        self._exchanges = exchanges
        self._node = node

    def collect(self) -> None:
        """Add what the pending routes have counted to the counts of exchanges, queues, vhost and node."""
        finished(self.collecting())

    def collecting(self) -> Steps[None]:
        """Do `collect` in steps, for the routes that are pending at the first one."""
        routes = self.pending_routes
        for _ in range(len(routes)):
            if not routes:
                # A change of topology has collected the rest.
                return
            route = routes.popleft()
            count, route.count = route.count, 0
            self.add(route.exchange, route.queues, count, route.mandatory)
            yield

    def add(self, exchange: Exchange, queues: Sequence[Queue], count: int, mandatory: bool) -> None:
        """Count messages that a client has published to an exchange, each routed to all of these queues."""
        for counts in self.of_exchange(exchange):
            counts.count(count, len(queues), mandatory)
        exists = self._exchanges.get(exchange.name) is exchange
        for queue in queues:
            source = exchange if exists and not queue.is_deleted else None
            queue.note_change()
            queue.statistics.count_publishes(source, count, queue.vhost.broker.now)

    def sample_lengths(self, queue: Queue, lengths: Lengths) -> None:
        """Take the lengths of a queue into account, instead of those of its sample before."""
        (all_, ready, unacked), before = self.lengths, queue.statistics.lengths
        self.lengths = (
            all_ + lengths[0] - before[0],
            ready + lengths[1] - before[1],
            unacked + lengths[2] - before[2],
        )
        queue.statistics.lengths = lengths

    def of_exchange(self, exchange: Exchange) -> tuple[PublishCounts, ...]:
        """Return all counts that include what is published to an exchange."""
        return exchange.publishes, self.publishes, self._node.publishes

    def message_stats(self) -> dict[str, int]:
        """Return the `message_stats` of the vhost."""
        return {**self.publishes.stats(), **self.deliveries.stats()}
