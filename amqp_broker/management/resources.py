"""All resources of the HTTP API, in one list."""

from __future__ import annotations

from typing import Final

from amqp_broker.management import (
    actions,
    auth,
    bindings,
    channels,
    connections,
    consumers,
    definitions_api,
    exchanges,
    faults,
    features,
    health,
    limits,
    messages,
    nodes,
    openapi,
    operations,
    overview,
    parameters,
    peeking,
    permissions,
    policies,
    queues,
    shovels,
    snapshots,
    users,
    vhosts,
)
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
    *users.RESOURCES,
    *permissions.RESOURCES,
    *vhosts.RESOURCES,
    *limits.RESOURCES,
    *policies.RESOURCES,
    *parameters.RESOURCES,
    *shovels.RESOURCES,
    *definitions_api.RESOURCES,
    *health.RESOURCES,
    *features.RESOURCES,
    *auth.RESOURCES,
    *messages.RESOURCES,
    *peeking.RESOURCES,
    *actions.RESOURCES,
    *operations.RESOURCES,
    *snapshots.RESOURCES,
    *faults.RESOURCES,
    *openapi.RESOURCES,
)
