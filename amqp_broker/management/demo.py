"""GET /_broker/demo: how the demo is doing that runs at this broker (docs/demo.md)."""

from __future__ import annotations

from typing import Any

from amqp_broker.management.access import MONITORING
from amqp_broker.management.request import Request, Resource, not_found


def demo(request: Request) -> dict[str, Any]:
    """The figures of the demo: its publisher, the storm, and what its strategies have come to."""
    if request.node.demo is None:
        raise not_found()
    return request.node.demo()


RESOURCES = (Resource("/_broker/demo", MONITORING, {"GET": demo}),)
