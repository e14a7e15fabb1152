from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.fields import Decimal, Float32, Long, Short, Timestamp, UnsignedByte
from amqp_broker.broker.exchanges.exchange import (
    Binding,
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    TopicExchange,
    header_matcher,
)
from amqp_broker.broker.queues.queue import Queue
from tests.broker_parts import new_queue, new_vhost

KINDS = (DirectExchange, FanoutExchange, TopicExchange, HeadersExchange)


@pytest.fixture
def queues() -> list[Queue]:
    vhost = new_vhost()
    return [new_queue(vhost, name) for name in ("q0", "q1", "q2")]


def bound(exchange: Exchange, destination: Any, routing_key: str = "", **arguments: Any) -> Binding:
    binding = Binding(exchange, destination, routing_key, arguments)
    exchange.check(binding)
    exchange.add(binding)
    return binding


def names(exchange: Exchange, routing_key: str = "", **headers: Any) -> list[str]:
    """Return the names of a message's destinations."""
    return sorted(destination.name for destination in exchange.match(routing_key, headers))


def with_x_match(x_match: str, **wanted: Any) -> fields.Table:
    return {"x-match": x_match, **wanted}


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


# Direct, fanout, topic


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


def test_a_topic_exchange_routes_to_each_matching_destination_once(queues: list[Queue]) -> None:
    exchange = TopicExchange("/", "x")
    bound(exchange, queues[0], "a.*")
    bound(exchange, queues[0], "a.#")
    bound(exchange, queues[1], "*.b")
    bound(exchange, queues[2], "b")
    assert names(exchange, "a.b") == ["q0", "q1"]
    assert names(exchange, "b") == ["q2"]


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


# Headers


def test_a_headers_exchange_routes_to_each_matching_destination_once(queues: list[Queue]) -> None:
    exchange = HeadersExchange("/", "x")
    bound(exchange, queues[0], a=1)
    bound(exchange, queues[0], b=1)
    bound(exchange, queues[1], b=2)
    assert names(exchange, "ignored", a=1, b=1) == ["q0"]
    assert names(exchange, "ignored", b=2) == ["q1"]
    assert names(exchange, "ignored") == []


def test_x_match_is_all_by_default_which_requires_every_header() -> None:
    for arguments in ({"a": 1, "b": 2}, with_x_match("all", a=1, b=2)):
        matches = header_matcher(arguments)
        assert matches({"a": 1, "b": 2, "c": 3})
        assert not matches({"a": 1})
        assert not matches({"a": 1, "b": 3})


def test_x_match_any_requires_one_header() -> None:
    matches = header_matcher(with_x_match("any", a=1, b=2))
    assert matches({"a": 1})
    assert matches({"a": 5, "b": 2})
    assert not matches({"a": 5, "b": 5})
    assert not matches({})


def test_a_binding_without_headers_matches_every_message_with_all_and_none_with_any() -> None:
    assert header_matcher({})({})
    assert header_matcher(with_x_match("all"))({"a": 1})
    assert not header_matcher(with_x_match("any"))({"a": 1})


def test_a_void_value_requires_only_the_key() -> None:
    matches = header_matcher({"a": None})
    assert matches({"a": 1})
    assert matches({"a": None})
    assert not matches({"b": None})


@pytest.mark.parametrize(("x_match", "expected"), [("all", True), ("any", False)])
def test_keys_that_start_with_x_are_ignored(x_match: str, expected: bool) -> None:
    matches = header_matcher({"x-match": x_match, "x-key": 1})
    assert matches({}) is expected
    assert matches({"x-key": 1}) is expected


@pytest.mark.parametrize("x_match", ["all-with-x", "any-with-x"])
def test_all_with_x_and_any_with_x_also_match_keys_that_start_with_x(x_match: str) -> None:
    matches = header_matcher({"x-match": x_match, "x-key": 1})
    assert matches({"x-key": 1})
    assert not matches({})


def test_x_match_itself_is_never_required() -> None:
    assert header_matcher({"x-match": "all-with-x", "a": 1})({"a": 1})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, Long(1)),
        (UnsignedByte(1), Short(1)),
        (Timestamp(1), 1),
        (1.5, Float32(1.5)),
        ("text", b"text"),
        (True, True),
        ([1, "a"], [1, "a"]),
        ({"a": {"b": None}}, {"a": {"b": None}}),
        (Decimal(1, 5), Decimal(1, 5)),
    ],
)
def test_values_match_whatever_their_type_tag(one: Any, other: Any) -> None:
    assert header_matcher({"a": one})({"a": other})
    assert header_matcher({"a": other})({"a": one})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (1, "1"),
        ("a", "A"),
        (1, [1]),
        ([1], [True]),
        ([1], [1.0]),
        ({"a": 1}, {"a": True}),
        (Decimal(1, 5), [1, 5]),
        ("", False),
    ],
)
def test_values_of_different_kinds_do_not_match(one: Any, other: Any) -> None:
    assert not header_matcher({"a": one})({"a": other})
    assert not header_matcher({"a": other})({"a": one})


@pytest.mark.parametrize(
    ("x_match", "message"),
    [
        ("some", 'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x'),
        ("", "Invalid x-match field value <<>>; expected all, any, all-with-x, or any-with-x"),
        (1, "Invalid x-match field type signedint (value 1); expected longstr"),
        (True, "Invalid x-match field type bool (value true); expected longstr"),
    ],
)
def test_an_unknown_x_match_is_refused(x_match: Any, message: str, queues: list[Queue]) -> None:
    exchange = HeadersExchange("/", "x")
    with pytest.raises(PreconditionFailed) as caught:
        exchange.check(Binding(exchange, queues[0], "", {"x-match": x_match}))
    assert str(caught.value) == message


def test_other_types_ignore_x_match(queues: list[Queue]) -> None:
    for kind in (DirectExchange, FanoutExchange, TopicExchange):
        exchange = kind("/", "x")
        exchange.check(Binding(exchange, queues[0], "", {"x-match": "some"}))
