from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import AccessRefused, DoesNotExist, InvalidParameter, NotFound, PreconditionFailed
from amqp_broker.management.http.answers import bad_request, refusal_of


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (bad_request("wrong"), 400, "wrong"),
        (DoesNotExist("no user 'u'"), 404, "Not Found"),
        (NotFound("no queue 'q'"), 404, "no queue 'q'"),
        (AccessRefused("not yours"), 401, "Access refused."),
        (PreconditionFailed("in use"), 400, "in use"),
        (InvalidParameter("too long"), 400, "too long"),
    ],
)
def test_errors_of_the_broker_have_the_status_that_rabbitmq_answers(error: Exception, status: int, reason: str) -> None:
    refusal = refusal_of(error)
    assert refusal is not None
    assert (refusal.status, refusal.reason) == (status, reason)


def test_other_errors_are_answered_with_500() -> None:
    assert refusal_of(KeyError("x")) is None
