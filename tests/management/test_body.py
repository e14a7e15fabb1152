from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.management import body
from amqp_broker.management.request import Refusal, Request
from tests.management.asking import Desk


def request(octets: bytes) -> Request:
    desk = Desk()
    return Request(desk.broker, desk.node, desk.user, body=octets)


def test_all_missing_keys_are_named() -> None:
    with pytest.raises(Refusal) as caught:
        body.body_of(request(b'{"a": null}'), "a", "b", "c")
    assert (caught.value.status, caught.value.reason) == (400, "[{key_missing,b},{key_missing,c}]")


@pytest.mark.parametrize("octets", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a": "\xff"}', b'{"a": "\\ud800"}'])
def test_a_body_that_nobody_can_read_is_refused(octets: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        body.body_of(request(octets))
    assert (caught.value.status, caught.value.reason) == (400, "not_json")


@pytest.mark.parametrize("value", ["x", "", "1.5", "1" * 5000, 1.5, None, True, [], {}])
def test_what_is_no_integer_is_named(value: Any) -> None:
    with pytest.raises(Refusal) as caught:
        body.integer({"count": value}, "count")
    assert caught.value.reason == ["not_integer", value]


@pytest.mark.parametrize(("value", "number"), [(5, 5), ("5", 5), (-1, -1)])
def test_an_integer_may_be_text(value: Any, number: int) -> None:
    assert body.integer({"count": value}, "count") == number


@pytest.mark.parametrize(("value", "flag"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_a_flag_may_be_text(value: Any, flag: bool) -> None:
    assert body.boolean({"tracing": value}, "tracing") is flag


@pytest.mark.parametrize("value", ["maybe", 1, [], {}])
def test_what_is_no_flag_is_named(value: Any) -> None:
    with pytest.raises(Refusal) as caught:
        body.boolean({"tracing": value}, "tracing")
    assert caught.value.reason == ["not_boolean", value]


@pytest.mark.parametrize("value", ["a,b", " a , b ,", ["a", "b"]])
def test_tags_are_text_with_commas_or_a_list(value: Any) -> None:
    assert body.tags({"tags": value}) == ["a", "b"]


@pytest.mark.parametrize("value", [5, None, [5], {}, True])
def test_other_tags_are_refused(value: Any) -> None:
    with pytest.raises(Refusal):
        body.tags({"tags": value})


def test_what_is_not_base64_is_named() -> None:
    assert body.octets("/wA=") == b"\xff\0"
    with pytest.raises(Refusal) as caught:
        body.octets("!!")
    assert caught.value.reason == ["not_base64", "!!"]
