from __future__ import annotations

import pytest

from amqp_broker.amqp import fields
from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import bind, new_exchange, new_queue, new_vhost
from tests.peer import Lab, Peer


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


def routed(vhost: VHost, exchange: Exchange, *keys: str, headers: fields.Table | None = None) -> list[str]:
    queues, _ = vhost.route(exchange, keys or ("",), headers or {}, None)
    return sorted(queue.name for queue in queues)


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


@pytest.fixture
def peer() -> Peer:
    """A client of a broker whose delayed exchange x has the queue q, with the key k."""
    lab = Lab()
    new_exchange(lab.vhost, "x", "x-delayed-message", arguments={"x-delayed-type": "topic"})
    bind(lab.vhost.exchanges["x"], new_queue(lab.vhost), lab.vhost, "k")
    return lab.connect()


def bodies(peer: Peer) -> list[bytes]:
    return [bytes(message.body) for message in peer.lab.vhost.queues["q"].messages()]


def test_a_message_of_many_keys_reaches_its_queue_when_it_is_due(peer: Peer) -> None:
    lab, copies = peer.lab, [*(f"k{number}" for number in range(2000)), "k"]
    peer.publish("nowhere", b"1", exchange="x", headers={"CC": copies, "x-delay": 1000})
    peer.publish("nowhere", b"2", exchange="x", headers={"CC": copies})
    lab.drain()
    assert bodies(peer) == [b"2"]
    lab.advance(1000)
    lab.drain()
    assert bodies(peer) == [b"2", b"1"]


def test_a_message_of_many_keys_is_gone_with_its_exchange(peer: Peer) -> None:
    lab = peer.lab
    peer.publish("nowhere", b"1", exchange="x", headers={"CC": ["k"] * 2000, "x-delay": 1000})
    lab.drain()
    lab.advance(1000)
    assert lab.broker.undrained
    lab.vhost.delete_exchange("x", if_unused=False)
    lab.drain()
    assert bodies(peer) == []
