"""Sums over queues and vhosts. The broker samples them from its start on, before the API is imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from amqp_broker.broker.portions import Steps

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.management.rates import Rates


def queue_totals(vhosts: Iterable[VHost]) -> Steps[dict[str, int]]:
    """Return the numbers of messages in the queues of some vhosts, in steps."""
    total = ready = unacked = 0
    for vhost in list(vhosts):
        for queue in list(vhost.queues.values()):
            if not queue.is_deleted:
                total += queue.message_count
                ready += queue.ready_count
                unacked += queue.unacked_count
            yield
    return {"messages": total, "messages_ready": ready, "messages_unacknowledged": unacked}


def all_queue_totals(broker: Broker) -> Steps[dict[str, int]]:
    return queue_totals(broker.vhosts.values())


def message_stats(vhosts: Iterable[VHost]) -> Mapping[str, int]:
    """Return the sum of the counters of some vhosts."""
    totals: Counter[str] = Counter()
    for vhost in vhosts:
        totals.update(vhost.counts.message_stats())
    return totals


def all_message_stats(broker: Broker) -> dict[str, int]:
    return broker.counters.message_stats()


def begin_history(broker: Broker, rates: Rates) -> None:
    """Sample the counters of the overview's charts from now on, even if no page is open."""
    broker.collect_counts()
    rates.keep(broker, "lengths", all_queue_totals)
    rates.keep(broker, "message_stats", all_message_stats)
