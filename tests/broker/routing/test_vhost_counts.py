"""Counts of a vhost."""

from __future__ import annotations

from amqp_broker.amqp.message import Address
from amqp_broker.broker.routing.route import Route
from tests.broker_parts import new_queue, new_vhost


def test_pending_routes_are_added_to_all_counters_once() -> None:
    vhost = new_vhost()
    queue, exchange = new_queue(vhost), vhost.default_exchange
    route = Route(Address("", queue.name), exchange, False, (queue,), True)
    route.count = 3
    vhost.counts.pending_routes.append(route)
    for _ in range(2):
        vhost.counts.collect()
        counts = (vhost.counts.publishes, exchange.publishes, vhost.broker.counters.publishes)
        assert [(one.publish, one.routed) for one in counts] == [(3, 3)] * 3
    assert (queue.statistics.published, queue.statistics.published_from, route.count) == (3, {exchange: 3}, 0)


def test_publishes_of_a_deleted_exchange_are_not_counted_by_exchange() -> None:
    vhost = new_vhost()
    queue, exchange = new_queue(vhost), vhost.exchanges["amq.fanout"]
    del vhost.exchanges["amq.fanout"]
    vhost.counts.add(exchange, [queue], 2, mandatory=False)
    assert (queue.statistics.published, queue.statistics.published_from) == (2, {})
