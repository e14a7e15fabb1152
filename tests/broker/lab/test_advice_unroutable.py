"""Messages that no queue gets are reported where a loss is one."""

from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from tests.broker.advising import advice_in, declare, habits_in, only
from tests.peer import Lab, Peer


def test_unroutable_messages_are_reported_with_a_key(lab: Lab) -> None:
    peer = lab.connect()
    peer.publish("ordrs", b"m")
    advice = only(lab, "unroutable")
    assert (advice.place.exchange, advice.detail) == ("(default)", "such as with routing key 'ordrs'")


def test_unroutable_messages_are_reported_even_if_the_queue_comes_later(lab: Lab) -> None:
    peer = lab.connect()
    peer.publish("orders", b"m")
    declare(peer, "orders")
    peer.publish("orders", b"m")
    assert habits_in(lab) == ["unroutable"]


def test_another_client_is_reported_although_the_route_is_cached(lab: Lab) -> None:
    for client in ("one", "other"):
        peer = lab.connect()
        peer.session.client_properties["connection_name"] = client
        peer.publish("ordrs", b"m", exchange="amq.direct")
    assert {advice.place.client for advice in advice_in(lab)} == {"one", "other"}


def test_each_client_is_reported_with_a_key_of_its_own(lab: Lab) -> None:
    for client, keys in {"one": ["a"], "other": ["a", "b"]}.items():
        peer = lab.connect()
        peer.session.client_properties["connection_name"] = client
        for key in keys:
            peer.publish(key, b"m", exchange="amq.direct")
    assert {advice.place.client: advice.detail for advice in advice_in(lab)} == {
        "one": "such as with routing key 'a'",
        "other": "such as with routing key 'b'",
    }


@pytest.mark.parametrize("mandatory", [False, True])
def test_a_message_that_a_fault_refuses_is_not_unroutable(lab: Lab, *, mandatory: bool) -> None:
    peer = lab.connect()
    peer.call(commands.Confirm.Select())
    declare(peer, "orders")
    peer.publish("ordrs", b"m")
    lab.broker.faults.add(Rule("confirm_nack", times=3))
    for key in ("orders", "orders", "ordrs"):
        peer.publish(key, b"m", mandatory=mandatory)
    lab.broker.collect_counts()
    counts = lab.vhost.default_exchange.publishes
    assert (counts.publish, counts.drop_unroutable, counts.return_unroutable, counts.routed) == (4, 1, 0, 0)
    advice = only(lab, "unroutable")
    assert (advice.messages, advice.detail) == (1, "such as with routing key 'ordrs'")


def test_a_message_that_a_fault_returns_counts_as_returned(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    lab.broker.faults.add(Rule("return", times=1))
    peer.publish("orders", b"m", mandatory=True)
    lab.broker.collect_counts()
    counts = lab.vhost.default_exchange.publishes
    assert (counts.publish, counts.return_unroutable, counts.routed) == (1, 1, 0)


def test_messages_without_subscribers_are_not_reported(lab: Lab) -> None:
    peer = lab.connect()
    peer.publish("order.new", b"m", exchange="amq.topic")
    assert habits_in(lab) == []
    declare(peer, "orders")
    peer.call(commands.Queue.Bind(queue="orders", exchange="amq.topic", routing_key="ordr.*"))
    peer.publish("order.new", b"m", exchange="amq.topic")
    assert habits_in(lab) == ["unroutable"]


def test_returned_messages_are_not_reported(lab: Lab) -> None:
    peer = lab.connect()
    peer.publish("ordrs", b"m", mandatory=True)
    assert habits_in(lab) == []


def test_messages_taken_by_an_alternate_exchange_are_not_reported(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "others")
    peer.call(commands.Queue.Bind(queue="others", exchange="amq.fanout"))
    arguments: FieldTable = {"alternate-exchange": "amq.fanout"}
    peer.call(commands.Exchange.Declare(exchange="x", durable=True, arguments=arguments))
    peer.publish("k", b"m", exchange="x")
    assert habits_in(lab) == []


@pytest.mark.parametrize("key", ["amq.gen-JzTY20BRgKO-HjmUJj0wLg", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"])
def test_a_reply_to_a_client_that_has_gone_is_not_reported(lab: Lab, key: str) -> None:
    lab.connect().publish(key, b"m")
    assert habits_in(lab) == []


@pytest.fixture
def delaying(lab: Lab) -> Peer:
    """A client with the queue orders, which is bound to the delayed exchange x by its name."""
    peer = lab.connect()
    declare(peer, "orders")
    arguments: FieldTable = {"x-delayed-type": "direct"}
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=arguments))
    peer.call(commands.Queue.Bind(queue="orders", exchange="x", routing_key="orders"))
    return peer


def test_a_delayed_message_is_not_lost(lab: Lab, delaying: Peer) -> None:
    delaying.publish("orders", b"m", exchange="x", headers={"x-delay": 1000})
    delaying.publish("orders", b"m", exchange="x")
    assert habits_in(lab) == []
    lab.advance(1000)
    assert habits_in(lab) == []


@pytest.mark.parametrize("delay_ms", [0, 1000])
def test_a_mistyped_key_on_a_delayed_exchange_is_reported(lab: Lab, delaying: Peer, delay_ms: int) -> None:
    delaying.publish("ordrs", b"m", exchange="x", headers={"x-delay": delay_ms})
    assert habits_in(lab) == ([] if delay_ms else ["unroutable"])
    lab.advance(delay_ms)
    advice = only(lab, "unroutable")
    assert (advice.place.exchange, "routing key 'ordrs'" in advice.detail) == ("x", True)
    assert advice.count == 1


def test_a_mandatory_message_to_a_delayed_exchange_is_returned_and_not_reported(lab: Lab, delaying: Peer) -> None:
    delaying.publish("ordrs", b"m", exchange="x", mandatory=True)
    assert habits_in(lab) == []


@pytest.mark.parametrize("kind", ["fanout", "topic", "headers"])
def test_messages_before_the_first_binding_are_not_reported_after_it(lab: Lab, kind: str) -> None:
    early, late = lab.connect(), lab.connect()
    exchange = f"amq.{kind}"
    early.publish("order", b"m", exchange=exchange)
    declare(late, "orders")
    arguments: FieldTable = {"x-match": "all", "a": 1} if kind == "headers" else {}
    late.call(commands.Queue.Bind(queue="orders", exchange=exchange, routing_key="ordr", arguments=arguments))
    assert habits_in(lab) == []
    if kind == "fanout":
        early.publish("order", b"m", exchange=exchange)
        assert habits_in(lab) == []
        return
    late.publish("order", b"m", exchange=exchange)
    assert [advice.connection for advice in advice_in(lab)] == [late.session.name]
    early.publish("order", b"m", exchange=exchange)
    assert habits_in(lab) == ["unroutable"]


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_messages_to_an_unbound_alternate_exchange_are_reported(lab: Lab, kind: str) -> None:
    peer = lab.connect()
    arguments: FieldTable = {"alternate-exchange": "amq.fanout"}
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type=kind, arguments=arguments))
    peer.publish("order", b"m", exchange="x")
    assert only(lab, "unroutable").place.exchange == "x"
