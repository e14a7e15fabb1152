"""The lengths of queues, and sums over queues and vhosts. They are sampled before the API is imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from amqp_broker.broker.scheduling.portions import Steps

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost


def lengths_of(queue: Queue) -> dict[str, int]:
    """Return the numbers of messages in a queue."""
    ready, unacked = queue.ready_count, queue.unacked_count
    return {"messages": queue.message_count, "messages_ready": ready, "messages_unacknowledged": unacked}


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


def sampled(vhosts: Iterable[VHost]) -> dict[str, int]:
    """Return the numbers of messages in the queues of some vhosts, as they were at their last samples."""
    total = ready = unacked = 0
    for vhost in vhosts:
        lengths = vhost.counts.lengths
        total, ready, unacked = total + lengths[0], ready + lengths[1], unacked + lengths[2]
    return {"messages": total, "messages_ready": ready, "messages_unacknowledged": unacked}


def message_stats(vhosts: Iterable[VHost]) -> Mapping[str, int]:
    """Return the sum of the counters of some vhosts."""
    totals: Counter[str] = Counter()
    for vhost in vhosts:
        totals.update(vhost.counts.message_stats())
    return totals
