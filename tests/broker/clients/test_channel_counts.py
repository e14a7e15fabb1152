from __future__ import annotations

import pytest

from amqp_broker.broker.clients.channel_counts import USED_MAX, ChannelCounts
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import new_exchange, new_queue, new_vhost


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


def test_a_delivery_counts_for_the_channel_the_queue_the_vhost_and_the_type(vhost: VHost) -> None:
    queue, counts = new_queue(vhost), ChannelCounts(vhost)
    for one in counts.of_queue(queue):
        one.get += 1
    assert counts.message_stats()["get"] == 1
    assert queue.statistics.deliveries.get == vhost.counts.deliveries.get == 1
    assert vhost.broker.counters.deliveries["classic"].get == 1


def test_a_confirm_counts_for_the_channel_the_exchange_the_vhost_and_the_node(vhost: VHost) -> None:
    counts, exchange = ChannelCounts(vhost), vhost.default_exchange
    for one in counts.of_exchange(exchange):
        one.confirm += 1
    assert counts.publishes[exchange].confirm == exchange.publishes.confirm == 1
    assert vhost.counts.publishes.confirm == vhost.broker.counters.publishes.confirm == 1


def test_a_channel_that_uses_ever_new_queues_and_exchanges_keeps_only_the_sums_of_those_that_are_gone(
    vhost: VHost,
) -> None:
    counts = ChannelCounts(vhost)
    for number in range(5 * USED_MAX):
        queue, exchange = new_queue(vhost), new_exchange(vhost, f"x{number}")
        for delivery_counts in counts.of_queue(queue):
            delivery_counts.get += 1
        for publish_counts in counts.of_exchange(exchange):
            publish_counts.count(1, queues=1, mandatory=False)
        counts.unroutable_keys[exchange] = "k"
        vhost.remove_queue(queue)
        vhost.delete_exchange(exchange.name, if_unused=False)
    assert len(counts.deliveries) + len(counts.publishes) <= USED_MAX + 1
    assert len(counts.unroutable_keys) <= USED_MAX + 1
    stats = counts.message_stats()
    assert (stats["get"], stats["publish"]) == (5 * USED_MAX, 5 * USED_MAX)


def test_counts_of_existing_queues_are_never_dropped(vhost: VHost) -> None:
    counts = ChannelCounts(vhost)
    for number in range(5 * USED_MAX):
        counts.of_queue(new_queue(vhost, f"q{number}"))[0].get += 1
    assert len(counts.deliveries) == 5 * USED_MAX
