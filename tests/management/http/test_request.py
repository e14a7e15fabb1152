from __future__ import annotations

import json
from typing import Any

import pytest

from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.request import VALUES_MAX, Request
from tests.management.asking import Desk
from tests.stepping import counted


def request(body: bytes) -> Request:
    desk = Desk()
    return Request(desk.broker, desk.node, desk.user, body=body)


@pytest.mark.parametrize("body", [b"", b"null", b"undefined", b"{}"])
def test_no_body_is_an_empty_object(body: bytes) -> None:
    assert request(body).json() == {}


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"1", b'"x"', b"1e999", b"[" * 100_000])
def test_a_body_that_is_not_an_object_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        request(body).json()
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "octets",
    [
        *(b"[" * 2000, b'{"a":' * 2000, b'{"a": "\xff"}', b'{"a": "\\ud800"}'),
        *(b'{"a":' * 2000 + inner + b"}" * 2000 for inner in (b'"\\ud800"', b'"\xff"', b"NaN", b"01")),
    ],
)
def test_an_unreadable_body_is_refused(octets: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        request(octets).json()
    assert (caught.value.status, caught.value.reason) == (400, "not_json")


def read_in_steps(body: bytes) -> tuple[int, dict[str, Any]]:
    """Return the number of steps, and the value that `json` returns then."""
    found = request(body)
    steps, _ = counted(found.reading())
    return steps, found.json()


@pytest.mark.parametrize("texts", [["x" * 200_000], [",:[{" * 50_000], ['\\"' * 70_000, "\\u00e9", "é"]])
def test_a_large_body_is_read_with_any_texts(texts: list[str]) -> None:
    body = '{"a": ["' + '", "'.join(texts) + '"], "b": {"c": [1, null, {}]}}'
    assert read_in_steps(body.encode())[1] == json.loads(body)


@pytest.mark.parametrize("item", ["{}", "[]", '{"a":[1]}', "1", '"\\u00e9"'])
def test_a_body_with_too_many_values_is_refused_in_steps(item: str) -> None:
    body = ('{"a": [' + ",".join([item] * (VALUES_MAX + 1)) + "]}").encode()
    steps = request(body).reading()
    for _ in range(1000):
        next(steps)
    with pytest.raises(Refusal) as caught:
        finished(steps)
    assert (caught.value.status, caught.value.reason) == (400, f"the document has more than {VALUES_MAX} values")


@pytest.mark.parametrize("octets", [b'"\\ud800"', b'"\xff"', b"NaN", b"01", b"{", b"]", b'{"\\ud800": 1}'])
def test_a_large_unreadable_body_is_refused(octets: bytes) -> None:
    found = request(b'{"a": ["' + b"," * 200_000 + b'", ' + octets + b"]}")
    with pytest.raises(Refusal) as caught:
        finished(found.reading())
    assert (caught.value.status, caught.value.reason) == (400, "not_json")
