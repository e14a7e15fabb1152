"""Counts of what is published and delivered in a vhost."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from amqp_broker.broker.counters import Counters, DeliveryCounts, PublishCounts
from amqp_broker.broker.portions import Steps, finished

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.history import History
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.routing.route import Route


class VHostCounts:
    """The counts of a vhost. `pending_routes` have messages that are not counted in `publishes` yet."""

    def __init__(self, exchanges: Mapping[str, Exchange], node: Counters) -> None:
        self.publishes = PublishCounts()
        self.deliveries = DeliveryCounts()
        self.pending_routes: deque[Route] = deque()
        self.history: History | None = None
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
            queue.statistics.count_publishes(source, count, queue.vhost.broker.now)

    def of_exchange(self, exchange: Exchange) -> tuple[PublishCounts, ...]:
        """Return all counts that include what is published to an exchange."""
        return exchange.publishes, self.publishes, self._node.publishes

    def message_stats(self) -> dict[str, int]:
        """Return the `message_stats` of the vhost."""
        return {**self.publishes.stats(), **self.deliveries.stats()}
