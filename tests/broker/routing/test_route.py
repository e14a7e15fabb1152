from __future__ import annotations

from amqp_broker.amqp.message import Address
from amqp_broker.broker.routing.route import Route
from tests.broker_parts import new_queue, new_vhost


def test_a_route_to_a_single_queue_has_it_as_its_only_queue() -> None:
    vhost = new_vhost()
    one, other = new_queue(vhost, "one"), new_queue(vhost, "other")
    address, exchange = Address("", "one"), vhost.default_exchange
    found = [
        Route(address, exchange, False, queues, True).only_queue for queues in ((), (one,), (one, other), (other,))
    ]
    assert found == [None, one, None, other]
