from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.fields import Decimal, Float32, Long, Short, Timestamp, UnsignedByte
from amqp_broker.broker.exchanges.exchange import Binding
from amqp_broker.broker.exchanges.headers import HeadersExchange, header_matcher
from amqp_broker.broker.queues.queue import Queue
from tests.broker.exchanges.bindings import bound, names


def with_x_match(x_match: str, **wanted: Any) -> fields.Table:
    return {"x-match": x_match, **wanted}


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
