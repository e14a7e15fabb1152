from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.broker import PORTION_STEPS
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


# Route caches


def test_every_change_of_topology_empties_the_route_caches(vhost: VHost) -> None:
    cache: dict[bytes, Any] = vhost.route_cache.of("guest")
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
    cache: dict[bytes, Any] = vhost.route_cache.of("guest")
    cache[b"route"] = object()
    new_queue(vhost)
    bind(exchange, queue, vhost)
    vhost.delete_exchange("missing", if_unused=False)
    assert cache


def test_an_exchange_is_gone_at_once_and_its_bindings_follow_in_batches(vhost: VHost) -> None:
    exchange, queue, broker = new_exchange(vhost, "x", "direct"), new_queue(vhost), vhost.broker
    count = PORTION_STEPS + 1
    for number in range(count):
        bind(exchange, queue, vhost, f"k{number}")
    events: list[tuple[str, str]] = []
    broker.events.listen(lambda name, headers: events.append((name, headers["user_who_performed_action"])))
    broker.events.actor = "anna"
    vhost.delete_exchange("x", if_unused=False)
    broker.events.actor = "someone else"
    assert (len(queue.incoming), "x" in vhost.exchanges) == (1, False)
    assert events == [("exchange.deleted", "anna"), *[("binding.deleted", "anna")] * PORTION_STEPS]
    assert not broker.drain_on()
    assert queue.incoming == {}
    assert events[1:] == [("binding.deleted", "anna")] * count
    assert broker.events.actor == "someone else"
