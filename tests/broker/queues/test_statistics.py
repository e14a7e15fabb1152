from __future__ import annotations

from amqp_broker.broker.counting.counters import DeliveryCounts
from amqp_broker.broker.exchanges.exchange import DirectExchange
from amqp_broker.broker.queues.statistics import QueueStatistics


def test_publishes_are_counted_by_exchange_unless_it_was_deleted() -> None:
    statistics, exchange = QueueStatistics(0), DirectExchange("/", "orders")
    statistics.count_publishes(exchange, 2, 10)
    statistics.count_publishes(exchange, 3, 20)
    statistics.count_publishes(None, 4, 30)
    assert (statistics.published, statistics.published_from) == (9, {exchange: 5})
    assert statistics.active_at_ms == 30


def test_message_stats_have_publishes_only_after_the_first() -> None:
    statistics = QueueStatistics(0)
    assert statistics.message_stats() == {}
    statistics.count_publishes(None, 1, 0)
    assert statistics.message_stats() == {"publish": 1}


def test_a_delivery_changes_the_counts_of_the_queue_and_all_totals() -> None:
    total = DeliveryCounts()
    statistics = QueueStatistics(0, total)
    assert statistics.delivery_counts == (statistics.deliveries, total)
