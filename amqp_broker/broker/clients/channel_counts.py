"""The counts of a channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.counting.counters import DeliveryCounts, PublishCounts

if TYPE_CHECKING:
    from amqp_broker.broker.counting.history import History
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost

# With more used exchanges and queues than these, the counts of deleted ones are dropped.
USED_MAX: Final = 64


class ChannelCounts:
    """The counts of a channel: in all, by exchange published to, and by queue received from.

    `Broker.collect_counts` brings them up to date. Deleted exchanges and queues remain only in the sums.
    """

    __slots__ = (
        "_used_max",
        "_vhost",
        "active_at_ms",
        "delivered",
        "deliveries",
        "history",
        "published",
        "publishes",
        "unroutable_keys",
    )

    def __init__(self, vhost: VHost) -> None:
        self._vhost = vhost
        self._used_max = USED_MAX
        self.published = PublishCounts()
        self.delivered = DeliveryCounts()
        self.publishes: dict[Exchange, PublishCounts] = {}
        self.deliveries: dict[Queue, DeliveryCounts] = {}
        # The last routing key that led to no queue, published without mandatory, by exchange.
        self.unroutable_keys: dict[Exchange, str] = {}
        self.history: History | None = None
        # When activity was last noticed (ms since the epoch).
        self.active_at_ms = vhost.broker.now

    def of_exchange(self, exchange: Exchange) -> tuple[PublishCounts, ...]:
        """Return all counts that include publishes to an exchange; the first two are those of the channel."""
        counts = self.publishes.get(exchange)
        if counts is None:
            self._forget_gone()
            counts = self.publishes[exchange] = PublishCounts()
        return (counts, self.published, *self._vhost.counts.of_exchange(exchange))

    def of_queue(self, queue: Queue) -> tuple[DeliveryCounts, ...]:
        """Return all counts that include deliveries from a queue to this channel."""
        counts = self.deliveries.get(queue)
        if counts is None:
            self._forget_gone()
            counts = self.deliveries[queue] = DeliveryCounts()
        return (counts, self.delivered, *queue.statistics.delivery_counts)

    def by_exchange(self) -> Iterator[tuple[Exchange, PublishCounts]]:
        """Yield the counts of each exchange that still exists; one of the same name may be another."""
        exchanges = self._vhost.exchanges
        for one, counts in self.publishes.items():
            if exchanges.get(one.name) is one:
                yield one, counts

    def by_queue(self) -> Iterator[tuple[Queue, DeliveryCounts]]:
        """Yield the counts of each queue that still exists."""
        for one, counts in self.deliveries.items():
            if not one.is_deleted:
                yield one, counts

    def _forget_gone(self) -> None:
        if len(self.publishes) + len(self.deliveries) < self._used_max:
            return
        self.publishes, self.deliveries = dict(self.by_exchange()), dict(self.by_queue())
        self.unroutable_keys = {one: key for one, key in self.unroutable_keys.items() if one in self.publishes}
        self._used_max = USED_MAX + 2 * (len(self.publishes) + len(self.deliveries))

    def message_stats(self) -> dict[str, int]:
        """Return the `message_stats` of the channel."""
        return {**self.published.stats(), **self.delivered.stats()}
