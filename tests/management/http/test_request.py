from __future__ import annotations

import pytest

from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.request import Request
from tests.management.asking import Desk


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
