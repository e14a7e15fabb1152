from __future__ import annotations

from typing import Annotated, Any

import pytest
from msgspec import UNSET, Struct, UnsetType, field

from amqp_broker.management.http import shapes
from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.shapes import Count, Flag, Integer, Switch, Text, one_of, read


class Body(Struct):
    first: Text
    second: Text
    flag: Flag = False
    apply_to: Text = field(default="all", name="apply-to")
    number: Integer | UnsetType = UNSET


class Query(Struct, forbid_unknown_fields=True):
    count: Count = 10
    state: Annotated[str, one_of("ready", "unacked", "delayed")] = "ready"
    clear: Switch = False
    vhost: str | None = None


def refusal(shape: type[Struct], given: dict[str, Any], *, is_query: bool = False) -> Any:
    with pytest.raises(Refusal) as caught:
        read(shape, given, is_query=is_query)
    assert caught.value.status == 400
    return caught.value.reason


def test_all_missing_keys_are_named() -> None:
    assert refusal(Body, {}) == "[{key_missing,first},{key_missing,second}]"
    assert refusal(Body, {"first": None}) == "[{key_missing,second}]"


def test_a_body_has_defaults_and_may_have_unknown_keys() -> None:
    assert read(Body, {"first": "a", "second": "b", "third": 1}) == Body("a", "b")


def test_a_key_may_differ_from_the_attribute() -> None:
    assert read(Body, {"first": "a", "second": "b", "apply-to": "queues"}).apply_to == "queues"


def test_an_invalid_value_is_refused_in_the_words_of_rabbitmq() -> None:
    assert refusal(Body, {"first": 5, "second": "b"}) == ["not_string", "first"]
    assert refusal(Body, {"first": "a", "second": "b", "number": "x"}) == ["not_integer", "x"]


def test_the_values_of_a_query_are_text() -> None:
    query = read(Query, {"count": "5", "clear": "true", "vhost": "\udcff"}, is_query=True)
    assert query == Query(5, "ready", True, "\udcff")
    assert read(Query, {"clear": "yes"}, is_query=True).clear is False


@pytest.mark.parametrize("value", ["x", "", "-1", "1.5", "1" * 19, "٣", "\udcff"])
def test_the_refusal_of_a_number_names_the_valid_ones(value: str) -> None:
    assert refusal(Query, {"count": value}, is_query=True) == "count must be a non-negative whole number"


def test_a_word_that_is_not_declared_is_refused() -> None:
    assert refusal(Query, {"state": "gone"}, is_query=True) == "state must be ready, unacked or delayed"


def test_unknown_parameters_are_refused_if_the_declaration_forbids_them() -> None:
    assert refusal(Query, {"b": "", "a": ""}, is_query=True) == "unknown parameters: a, b"


@pytest.mark.parametrize("value", ["x", "", "1.5", "1" * 5000, 1.5, None, True, [], {}])
def test_the_refusal_of_an_integer_has_the_given_value(value: Any) -> None:
    with pytest.raises(Refusal) as caught:
        shapes.integer("count", value)
    assert caught.value.reason == ["not_integer", value]


@pytest.mark.parametrize(("value", "number"), [(5, 5), ("5", 5), (-1, -1)])
def test_an_integer_may_be_text(value: Any, number: int) -> None:
    assert shapes.integer("count", value) == number


@pytest.mark.parametrize(("value", "flag"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_a_flag_may_be_text(value: Any, flag: bool) -> None:
    assert shapes.boolean("tracing", value) is flag


@pytest.mark.parametrize("value", ["maybe", 1, [], {}, None])
def test_the_refusal_of_a_flag_has_the_given_value(value: Any) -> None:
    with pytest.raises(Refusal) as caught:
        shapes.boolean("tracing", value)
    assert caught.value.reason == ["not_boolean", value]


@pytest.mark.parametrize("value", ["a,b", " a , b ,", ["a", "b"]])
def test_tags_are_text_with_commas_or_a_list(value: Any) -> None:
    assert shapes.tags("tags", value) == ["a", "b"]


@pytest.mark.parametrize("value", [5, None, [5], {}, True])
def test_invalid_tags_are_refused(value: Any) -> None:
    with pytest.raises(Refusal):
        shapes.tags("tags", value)


def test_the_refusal_of_invalid_base64_has_the_given_value() -> None:
    assert shapes.octets_of_base64("/wA=") == b"\xff\0"
    with pytest.raises(Refusal) as caught:
        shapes.octets_of_base64("!!")
    assert caught.value.reason == ["not_base64", "!!"]
