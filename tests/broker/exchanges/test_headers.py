from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.fields import Decimal, Float32, Long, Short, Timestamp, UnsignedByte
from amqp_broker.broker.exchanges.exchange import Binding
from amqp_broker.broker.exchanges.headers import HeadersExchange, header_matcher
from amqp_broker.broker.queues.queue import Queue
from tests.broker.exchanges.bindings import bound, names
from tests.broker_parts import new_queue, new_vhost


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


_VALUES = st.sampled_from(
    [None, 0, 1, Long(1), Timestamp(1), True, False, "a", b"a", "", 1.0, float("nan"), Decimal(1, 5), [1], {"a": 1}]
)
_TABLES = st.dictionaries(st.sampled_from(["a", "b", "x-c"]), _VALUES)
_ARGUMENTS = st.builds(
    lambda wanted, x_match: wanted if x_match is None else {**wanted, "x-match": x_match},
    _TABLES,
    st.sampled_from([None, "all", "any", "all-with-x", "any-with-x"]),
)


@given(st.lists(_ARGUMENTS, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8), _TABLES)
def test_an_exchange_finds_the_bindings_that_match_one_by_one(
    every: list[fields.Table], kept: list[bool], headers: fields.Table
) -> None:
    exchange = HeadersExchange("/", "x")
    queues = [new_queue(new_vhost(), f"q{number}") for number in range(len(every))]
    bindings = [bound(exchange, queue, **arguments) for queue, arguments in zip(queues, every, strict=True)]
    for binding, is_kept in zip(bindings, kept, strict=False):
        if not is_kept:
            exchange.remove(binding)
    found = {
        queue.name
        for queue, arguments, is_kept in zip(queues, every, kept, strict=False)
        if is_kept and header_matcher(arguments)(headers)
    }
    assert names(exchange, **headers) == sorted(found)


def test_no_index_is_left_behind_by_bindings_that_are_gone(queues: list[Queue]) -> None:
    exchange = HeadersExchange("/", "x")
    bindings = [bound(exchange, queues[0], a=number) for number in range(3)]
    bindings.append(bound(exchange, queues[0], **with_x_match("any", a=1)))
    for binding in bindings:
        exchange.remove(binding)
    assert (exchange._by_header, exchange._others) == ({}, {})


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
