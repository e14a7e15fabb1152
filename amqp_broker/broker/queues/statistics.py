"""Counts of a queue: publishes, deliveries, and messages that left unacknowledged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from amqp_broker.broker.counting.counters import DeliveryCounts
from amqp_broker.broker.counting.incident import QueueIncidents

if TYPE_CHECKING:
    from amqp_broker.broker.counting.history import History
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.arrival_times import ArrivalTimes


# The numbers of all messages, of ready and of unacked ones.
Lengths: TypeAlias = tuple[int, int, int]
NO_MESSAGES: Final[Lengths] = (0, 0, 0)


class QueueStatistics:
    """Counts that never decrease. `published` and `published_from` are up to date after `VHostCounts.collect`.

    `delivery_counts` are all the counts that a delivery changes: those of the queue, its vhost and its type.
    `given_up` counts by reason: those of dead-lettering, and "purged". `lengths` are those of the last sample.
    """

    __slots__ = (
        "active_at_ms",
        "arrivals",
        "deliveries",
        "delivery_counts",
        "given_up",
        "history",
        "incidents",
        "lengths",
        "published",
        "published_from",
    )

    def __init__(self, now: int, *totals: DeliveryCounts) -> None:
        self.published = 0
        self.published_from: dict[Exchange, int] = {}
        self.deliveries = DeliveryCounts()
        self.delivery_counts = (self.deliveries, *totals)
        self.given_up: Counter[str] = Counter()
        self.history: History | None = None
        # None while nothing is ready.
        self.arrivals: ArrivalTimes | None = None
        self.incidents: QueueIncidents | None = None
        self.lengths = NO_MESSAGES
        # When messages were last seen to have come or gone (ms since the epoch).
        self.active_at_ms = now

    def count_publishes(self, exchange: Exchange | None, count: int, now: int) -> None:
        """Count messages that clients published to an exchange (None: a deleted one) and that came here."""
        self.published += count
        self.active_at_ms = now
        if exchange is not None:
            self.published_from[exchange] = self.published_from.get(exchange, 0) + count

    def noted_incidents(self) -> QueueIncidents:
        """Return the incidents of the queue, which it has from now on."""
        if self.incidents is None:
            self.incidents = QueueIncidents()
        return self.incidents

    def message_stats(self) -> dict[str, int]:
        """Return the queue's `message_stats`."""
        stats = self.deliveries.stats()
        return {"publish": self.published, **stats} if self.published else stats
