from __future__ import annotations

import pytest

from amqp_broker.errors import AccessRefused, DoesNotExist, InvalidParameter, NotFound, PreconditionFailed
from amqp_broker.management.request import Refusal, Request, refusal_of
from tests.management.asking import Desk


def request(body: bytes) -> Request:
    desk = Desk()
    return Request(desk.broker, desk.node, desk.user, body=body)


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (NotFound("no queue 'q' in vhost '/'"), 404, "no queue 'q' in vhost '/'"),
        (DoesNotExist("User 'u' does not exist"), 404, "Not Found"),
        (AccessRefused("no"), 401, "Access refused."),
        (PreconditionFailed("inequivalent arg"), 400, "inequivalent arg"),
        (InvalidParameter("bad"), 400, "bad"),
    ],
)
def test_what_the_core_raises_has_a_status_and_a_reason(error: Exception, status: int, reason: str) -> None:
    refusal = refusal_of(error)
    assert refusal is not None
    assert (refusal.status, refusal.reason) == (status, reason)


def test_a_bug_is_no_refusal() -> None:
    assert refusal_of(KeyError("x")) is None


@pytest.mark.parametrize("body", [b"", b"null", b"undefined", b"{}"])
def test_no_body_is_an_empty_object(body: bytes) -> None:
    assert request(body).json() == {}


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"1", b'"x"', b"1e999", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        request(body).json()
    assert caught.value.status == 400
