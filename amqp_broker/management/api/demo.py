"""The figures of the demo at this broker."""

from __future__ import annotations

from typing import Any

from amqp_broker.management.http.answers import not_found
from amqp_broker.management.http.auth import MONITORING
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

endpoints = Endpoints()


@endpoints.on("GET /_broker/demo", tag=MONITORING)
def demo(request: Request) -> dict[str, Any]:
    """Return the figures of the [demo](demo.md): publishers, faults, results of its strategies; 404 without a demo."""
    if request.node.demo is None:
        raise not_found()
    return request.node.demo()
