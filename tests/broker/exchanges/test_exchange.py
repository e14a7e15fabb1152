from __future__ import annotations

import pytest

from amqp_broker.broker.exchanges.exchange import (
    Binding,
    DirectExchange,
    Exchange,
    FanoutExchange,
)
from amqp_broker.broker.exchanges.headers import HeadersExchange
from amqp_broker.broker.exchanges.topic import TopicExchange
from amqp_broker.broker.queues.queue import Queue
from tests.broker.exchanges.bindings import bound, names

KINDS = (DirectExchange, FanoutExchange, TopicExchange, HeadersExchange)


def test_an_exchange_is_named_in_errors_with_its_vhost() -> None:
    assert str(DirectExchange("/", "x")) == "exchange 'x' in vhost '/'"


def test_an_alternate_exchange_is_an_argument() -> None:
    assert DirectExchange("/", "x").alternate is None
    assert DirectExchange("/", "x", arguments={"alternate-exchange": "other"}).alternate == "other"


# Bindings


def test_a_binding_is_found_by_destination_key_and_arguments(queues: list[Queue]) -> None:
    exchange = HeadersExchange("/", "x")
    binding = bound(exchange, queues[0], "key", a=1)
    assert exchange.binding(queues[0], "key", {"a": 1}) is binding
    assert exchange.binding(queues[1], "key", {"a": 1}) is None
    assert exchange.binding(queues[0], "other", {"a": 1}) is None
    assert exchange.binding(queues[0], "key", {}) is None


def test_the_order_of_arguments_does_not_make_another_binding(queues: list[Queue]) -> None:
    exchange = DirectExchange("/", "x")
    binding = bound(exchange, queues[0], "key", a=1, b=2)
    assert exchange.binding(queues[0], "key", {"b": 2, "a": 1}) is binding


def test_the_type_of_an_argument_makes_another_binding(queues: list[Queue]) -> None:
    exchange = DirectExchange("/", "x")
    bound(exchange, queues[0], "key", a=True)
    assert exchange.binding(queues[0], "key", {"a": 1}) is None
    assert exchange.binding(queues[0], "key", {"a": "true"}) is None


# Types


def test_a_direct_exchange_routes_to_equal_keys(queues: list[Queue]) -> None:
    exchange = DirectExchange("/", "x")
    bound(exchange, queues[0], "a")
    bound(exchange, queues[1], "a")
    bound(exchange, queues[2], "b")
    assert names(exchange, "a") == ["q0", "q1"]
    assert names(exchange, "A") == []
    assert names(exchange, "a.*") == []


def test_unknown_keys_do_not_grow_a_direct_exchange(queues: list[Queue]) -> None:
    exchange = DirectExchange("/", "x")
    bound(exchange, queues[0], "a")
    for number in range(10):
        names(exchange, f"unknown{number}")
    assert list(exchange._by_key) == ["a"]


def test_a_fanout_exchange_routes_to_each_destination_once(queues: list[Queue]) -> None:
    exchange = FanoutExchange("/", "x")
    bound(exchange, queues[0], "a")
    bound(exchange, queues[0], "b")
    bound(exchange, queues[1])
    assert names(exchange, "whatever") == ["q0", "q1"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_exchange_may_be_bound_to_an_exchange(kind: type[Exchange]) -> None:
    exchange = kind("/", "x")
    bound(exchange, DirectExchange("/", "target"), "key")
    assert names(exchange, "key") == ["target"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_destination_stays_until_its_last_binding_is_removed(kind: type[Exchange], queues: list[Queue]) -> None:
    exchange = kind("/", "x")
    first = bound(exchange, queues[0], "key", n=1)
    second = bound(exchange, queues[0], "key", n=2)
    exchange.remove(first)
    assert names(exchange, "key", n=2) == ["q0"]
    exchange.remove(second)
    assert names(exchange, "key", n=2) == []
    assert not exchange.bindings


def test_a_direct_exchange_forgets_unbound_keys(queues: list[Queue]) -> None:
    exchange = DirectExchange("/", "x")
    exchange.remove(bound(exchange, queues[0], "a"))
    assert not exchange._by_key


def test_only_a_headers_exchange_uses_more_than_routing_keys() -> None:
    assert [kind.type for kind in KINDS if kind("/", "x").routes_by_message] == ["headers"]


@pytest.mark.parametrize("kind", KINDS)
def test_several_routing_keys_lead_to_the_destinations_of_each(kind: type[Exchange], queues: list[Queue]) -> None:
    exchange = kind("/", "x")
    for queue, key in zip(queues, ("a", "b", "c"), strict=True):
        bound(exchange, queue, key, key=key)
    whole = exchange.destinations(["a", "b"], {"key": "a"}, None)
    assert set(whole) == {*exchange.match("a", {"key": "a"}), *exchange.match("b", {"key": "a"})}
    assert len(whole) == len(set(whole))


def test_other_types_ignore_x_match(queues: list[Queue]) -> None:
    for kind in (DirectExchange, FanoutExchange, TopicExchange):
        exchange = kind("/", "x")
        exchange.check(Binding(exchange, queues[0], "", {"x-match": "some"}))
