from __future__ import annotations

from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request


def test_an_endpoint_is_declared_by_its_decorator_and_docstring() -> None:
    endpoints = Endpoints()

    @endpoints.on("GET /a", "POST /a/{name}", tag=MANAGEMENT)
    def handler(request: Request) -> None:
        """Do something.

        Nothing of this is for users.
        """

    first, second = endpoints
    assert (str(first), first.tag, first.handler, first.statuses) == ("GET /a", MANAGEMENT, handler, (200,))
    assert (str(second), second.path, second.summary, second.statuses) == (
        "POST /a/{name}",
        "/a/{name}",
        "Do something.",
        (204,),
    )
