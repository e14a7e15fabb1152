from __future__ import annotations

from collections import Counter

import pytest

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import bind, new_exchange, new_queue, new_vhost
from tests.peer import Lab


@pytest.fixture
def vhost() -> VHost:
    vhost = new_vhost()
    for name in ("q0", "q1", "q2"):
        new_queue(vhost, name)
    return vhost


def targets(exchange: Exchange, *keys: str, number: int = 300) -> Counter[str]:
    """Return how often each destination is chosen; the random octets of the test are a running number."""
    found: Counter[str] = Counter()
    for _ in range(number):
        found.update(destination.name for destination in exchange.destinations(keys or ("k",), {}, None))
    return found


@pytest.mark.parametrize("kind", ["x-random", "x-local-random"])
def test_each_message_goes_to_one_random_queue(vhost: VHost, kind: str) -> None:
    exchange = new_exchange(vhost, "x", kind)
    for queue in vhost.queues.values():
        bind(exchange, queue, vhost)
    assert targets(exchange) == {"q0": 100, "q1": 100, "q2": 100}


@pytest.mark.parametrize("kind", ["x-random", "x-local-random"])
def test_a_message_with_several_keys_goes_to_one_queue(vhost: VHost, kind: str) -> None:
    exchange = new_exchange(vhost, "x", kind)
    for queue in vhost.queues.values():
        bind(exchange, queue, vhost)
    assert targets(exchange, "k", "copy", "blind").total() == 300


def test_each_binding_has_the_same_chance(vhost: VHost) -> None:
    exchange = new_exchange(vhost, "x", "x-random")
    for key in ("a", "b"):
        bind(exchange, vhost.queues["q0"], vhost, key)
    bind(exchange, vhost.queues["q1"], vhost, "z")
    assert targets(exchange) == {"q0": 200, "q1": 100}
    binding = exchange.binding(vhost.queues["q0"], "a", {})
    assert binding is not None
    vhost.unbind(binding)
    assert targets(exchange) == {"q0": 150, "q1": 150}


def test_an_empty_random_exchange_has_no_destinations(vhost: VHost) -> None:
    assert targets(new_exchange(vhost, "x", "x-random")) == {}


def test_the_random_octets_are_the_brokers() -> None:
    lab = Lab()
    lab.broker.entropy = lambda size: bytes(size)
    exchange = new_exchange(lab.vhost, "x", "x-random")
    for name in ("q0", "q1"):
        bind(exchange, new_queue(lab.vhost, name), lab.vhost)
    peer = lab.connect()
    for _ in range(10):
        peer.publish("k", exchange="x")
    assert lab.vhost.queues["q0"].ready_count == 10


def test_each_publish_is_random() -> None:
    lab = Lab()
    exchange = new_exchange(lab.vhost, "x", "x-random")
    for name in ("q0", "q1"):
        bind(exchange, new_queue(lab.vhost, name), lab.vhost)
    peer = lab.connect()
    for _ in range(10):
        peer.publish("k", exchange="x")
    counts = [lab.vhost.queues[name].ready_count for name in ("q0", "q1")]
    assert sum(counts) == 10
    assert min(counts) > 0


def refusal(vhost: VHost, destination: str, key: str = "") -> str:
    exchange = new_exchange(vhost, "x", "x-local-random")
    with pytest.raises(PreconditionFailed) as caught:
        bind(exchange, vhost.queues.get(destination) or vhost.exchanges[destination], vhost, key)
    assert not exchange.bindings
    return str(caught.value)


def test_a_local_random_exchange_is_bound_without_a_key(vhost: VHost) -> None:
    assert refusal(vhost, "q0", "k") == "Non empty binding 'k' key not permitted"


def test_a_local_random_exchange_is_bound_to_classic_queues_only(vhost: VHost) -> None:
    new_queue(vhost, "quorum", is_durable=True, arguments={"x-queue-type": "quorum"})
    assert refusal(vhost, "quorum") == "Queue type rabbit_quorum_queue not valid for this exchange type"
    new_queue(vhost, "priority", arguments={"x-max-priority": 3})
    bind(vhost.exchanges["x"], vhost.queues["priority"], vhost)


def test_a_local_random_exchange_is_bound_to_no_exchange(vhost: VHost) -> None:
    assert refusal(vhost, "amq.fanout") == "Destination not found"
