"""GET /api/overview, whoami, version: what the node says of itself."""

from __future__ import annotations

from typing import Any

from amqp_broker.management.access import MANAGEMENT
from amqp_broker.management.request import Request, Resource


def whoami(request: Request) -> dict[str, Any]:
    return {"name": request.user.name, "tags": sorted(request.user.tags), "is_internal_user": True}


def overview(request: Request) -> dict[str, Any]:
    broker = request.broker
    version = broker.profile.version
    return {
        "management_version": version,
        "rabbitmq_version": version,
        "product_name": "RabbitMQ",
        "product_version": version,
        "node": broker.node,
        "cluster_name": broker.node,
        "listeners": [
            {"node": broker.node, "protocol": listener.protocol, "ip_address": listener.host, "port": listener.port}
            for listener in request.node.listeners()
        ],
    }


RESOURCES = (
    Resource("/api/overview", MANAGEMENT, {"GET": overview}),
    Resource("/api/whoami", MANAGEMENT, {"GET": whoami}),
)
