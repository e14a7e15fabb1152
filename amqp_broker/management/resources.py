"""All resources of the HTTP API, in one list."""

from __future__ import annotations

from typing import Final

from amqp_broker.management import bindings, channels, connections, consumers, exchanges, nodes, overview, queues
from amqp_broker.management.request import Resource

RESOURCES: Final[tuple[Resource, ...]] = (
    *overview.RESOURCES,
    *nodes.RESOURCES,
    *connections.RESOURCES,
    *channels.RESOURCES,
    *consumers.RESOURCES,
    *exchanges.RESOURCES,
    *queues.RESOURCES,
    *bindings.RESOURCES,
)
