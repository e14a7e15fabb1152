from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.exchanges.exchange import Destination, Exchange
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import CollectingConsumer, bind, new_exchange, new_queue, new_vhost


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


def unbind(source: Exchange, destination: Destination, vhost: VHost, key: str = "", **arguments: Any) -> None:
    binding = source.binding(destination, key, arguments)
    assert binding is not None
    vhost.unbind(binding)


def routed(vhost: VHost, exchange: Exchange, *keys: str, headers: fields.Table | None = None) -> list[str]:
    queues, _ = vhost.route(exchange, keys or ("",), headers or {}, None)
    return sorted(queue.name for queue in queues)


# Bindings


def test_binding_twice_makes_one_binding(vhost: VHost) -> None:
    exchange, queue = vhost.exchange("amq.direct"), new_queue(vhost)
    for _ in range(2):
        bind(exchange, queue, vhost, "key", a=1)
    assert len(exchange.bindings) == len(queue.incoming) == 1
    unbind(exchange, queue, vhost, "key", a=1)
    assert routed(vhost, exchange, "key") == []


def test_bindings_with_different_arguments_are_different(vhost: VHost) -> None:
    exchange, queue = vhost.exchange("amq.direct"), new_queue(vhost)
    bind(exchange, queue, vhost, "key", a=1)
    bind(exchange, queue, vhost, "key", a=2)
    unbind(exchange, queue, vhost, "key", a=1)
    assert routed(vhost, exchange, "key") == ["q"]


def test_an_invalid_binding_is_not_added(vhost: VHost) -> None:
    exchange, queue = vhost.exchange("amq.headers"), new_queue(vhost)
    with pytest.raises(PreconditionFailed, match="Invalid x-match"):
        vhost.bind(exchange, queue, "", {"x-match": "some"})
    assert (exchange.bindings, queue.incoming) == ({}, {})


def test_an_auto_delete_exchange_goes_with_its_last_binding(vhost: VHost) -> None:
    exchange, queue = new_exchange(vhost, "x", is_auto_delete=True), new_queue(vhost)
    bind(exchange, queue, vhost, "a")
    bind(exchange, queue, vhost, "b")
    unbind(exchange, queue, vhost, "a")
    assert "x" in vhost.exchanges
    unbind(exchange, queue, vhost, "b")
    assert "x" not in vhost.exchanges


def test_an_auto_delete_exchange_is_deleted_with_its_last_queue(vhost: VHost) -> None:
    exchange, queue = new_exchange(vhost, "x", is_auto_delete=True), new_queue(vhost)
    bind(exchange, queue, vhost, "a")
    bind(exchange, queue, vhost, "b")
    vhost.remove_queue(queue)
    assert "x" not in vhost.exchanges


def test_an_auto_delete_exchange_that_was_never_bound_stays(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", is_auto_delete=True)
    bind(vhost.exchange("amq.fanout"), exchange, vhost)
    unbind(vhost.exchange("amq.fanout"), exchange, vhost)
    assert "x" in vhost.exchanges


def test_a_chain_of_auto_delete_exchanges_is_deleted_with_its_end(vhost: VHost) -> None:
    chain = [new_exchange(vhost, f"x{number}", is_auto_delete=True) for number in range(3)]
    queue = new_queue(vhost)
    bind(chain[0], chain[1], vhost)
    bind(chain[1], chain[2], vhost)
    bind(chain[2], queue, vhost)
    vhost.remove_queue(queue)
    assert not any(exchange.name in vhost.exchanges for exchange in chain)


def test_a_ring_of_auto_delete_exchanges_can_be_deleted(vhost: VHost) -> None:
    ring = [new_exchange(vhost, f"x{number}", is_auto_delete=True) for number in range(3)]
    for number in range(3):
        bind(ring[number], ring[(number + 1) % 3], vhost)
    bind(ring[0], ring[0], vhost)
    vhost.delete_exchange("x0", if_unused=False)
    assert not any(exchange.name in vhost.exchanges for exchange in ring)


# Routing


def test_the_default_exchange_routes_to_the_queue_of_that_name(vhost: VHost) -> None:
    new_queue(vhost, "a")
    new_queue(vhost, "b")
    assert routed(vhost, vhost.default_exchange, "a") == ["a"]
    assert routed(vhost, vhost.default_exchange, "c") == []
    assert routed(vhost, vhost.default_exchange, "a", "b", "a", "c") == ["a", "b"]


def test_a_queue_gets_one_copy_by_any_number_of_bindings(vhost: VHost) -> None:
    queue, direct, fanout = new_queue(vhost), vhost.exchange("amq.direct"), vhost.exchange("amq.fanout")
    bind(direct, queue, vhost, "a")
    bind(direct, queue, vhost, "b")
    bind(direct, fanout, vhost, "a")
    bind(fanout, queue, vhost)
    queues, _ = vhost.route(direct, ("a", "b"), {}, None)
    assert queues == [queue]


def test_exchanges_may_be_bound_in_a_circle(vhost: VHost) -> None:
    one, other, queue = new_exchange(vhost, "one"), new_exchange(vhost, "other"), new_queue(vhost)
    bind(one, other, vhost)
    bind(other, one, vhost)
    bind(one, one, vhost)
    bind(other, queue, vhost)
    assert routed(vhost, one) == ["q"]


def test_messages_without_a_match_go_to_the_alternate_exchange(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "direct", arguments={"alternate-exchange": "amq.fanout"})
    bound, unrouted = new_queue(vhost, "bound"), new_queue(vhost, "unrouted")
    bind(exchange, bound, vhost, "key")
    bind(vhost.exchange("amq.fanout"), unrouted, vhost)
    assert routed(vhost, exchange, "key") == ["bound"]
    assert routed(vhost, exchange, "other") == ["unrouted"]


def test_one_match_among_several_keys_bypasses_the_alternate_exchange(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "direct", arguments={"alternate-exchange": "amq.fanout"})
    bind(exchange, new_queue(vhost, "bound"), vhost, "key")
    bind(vhost.exchange("amq.fanout"), new_queue(vhost, "unrouted"), vhost)
    assert routed(vhost, exchange, "other", "key") == ["bound"]


def test_alternate_exchanges_may_form_a_chain_or_a_circle(vhost: VHost) -> None:
    first = new_exchange(vhost, "first", "direct", arguments={"alternate-exchange": "second"})
    second = new_exchange(vhost, "second", "direct", arguments={"alternate-exchange": "first"})
    assert routed(vhost, first, "key") == []
    bind(second, new_queue(vhost), vhost, "key")
    assert routed(vhost, first, "key") == ["q"]


def test_a_missing_alternate_exchange_takes_nothing(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", arguments={"alternate-exchange": "missing"})
    assert routed(vhost, exchange, "key") == []


def test_the_default_exchange_as_an_alternate_takes_nothing(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", arguments={"alternate-exchange": ""})
    new_queue(vhost, "key")
    assert routed(vhost, exchange, "key") == []


def test_a_match_without_a_queue_is_still_a_match(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", arguments={"alternate-exchange": "amq.direct"})
    bind(exchange, new_exchange(vhost, "dead end"), vhost)
    bind(vhost.exchange("amq.direct"), new_queue(vhost), vhost, "key")
    assert routed(vhost, exchange, "key") == []


def test_routing_reports_if_headers_decided(vhost: VHost) -> None:
    direct, headers, queue = vhost.exchange("amq.direct"), vhost.exchange("amq.headers"), new_queue(vhost)
    bind(direct, headers, vhost, "key")
    bind(headers, queue, vhost, a=1)
    assert vhost.route(direct, ("other",), {"a": 1}, None) == ([], False)
    assert vhost.route(direct, ("key",), {"a": 1}, None) == ([queue], True)
    assert vhost.route(direct, ("key",), {}, None) == ([], True)


def test_every_change_of_topology_empties_the_route_caches(vhost: VHost) -> None:
    cache: dict[bytes, Any] = {}
    vhost.route_caches["guest"] = cache
    exchange = vhost.exchange("amq.fanout")
    auto_delete = new_queue(vhost, "auto", is_auto_delete=True)
    collector = CollectingConsumer(auto_delete).start()

    def delete_queue() -> None:
        vhost.remove_queue(vhost.queues["q"])

    changes = [
        lambda: new_queue(vhost),
        lambda: new_exchange(vhost, "x"),
        lambda: bind(exchange, vhost.queues["q"], vhost),
        lambda: unbind(exchange, vhost.queues["q"], vhost),
        lambda: vhost.delete_exchange("x", if_unused=True),
        delete_queue,
        collector.stop,
    ]
    for change in changes:
        cache[b"route"] = object()
        change()
        assert cache == {}, change


def test_a_change_without_effect_keeps_the_route_caches(vhost: VHost) -> None:
    queue, exchange = new_queue(vhost), vhost.exchange("amq.fanout")
    bind(exchange, queue, vhost)
    cache: dict[bytes, Any] = {b"route": object()}
    vhost.route_caches["guest"] = cache
    new_queue(vhost)
    bind(exchange, queue, vhost)
    vhost.delete_exchange("missing", if_unused=False)
    assert cache
