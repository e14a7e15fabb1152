"""The sections of the HTTP API, as in its documentation: together they have all of its endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from amqp_broker.management.api import (
    advice,
    attention,
    bindings,
    capture,
    channels,
    clock,
    clock_due,
    cluster,
    connections,
    consumers,
    definitions,
    demo,
    download,
    event_log,
    exchanges,
    faults,
    feature_flags,
    health,
    holders,
    limits,
    logins,
    memory,
    message_life,
    messages,
    moving,
    nemeses,
    node_control,
    nodes,
    overview,
    parameters,
    peeking,
    permissions,
    policies,
    queues,
    quorum,
    resetting,
    shovels,
    snapshots,
    topology,
    trace,
    users,
    vhost_reports,
    vhosts,
)
from amqp_broker.management.http import openapi
from amqp_broker.management.http.auth import PUBLIC
from amqp_broker.management.http.endpoint import Endpoint, Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.live import updates

description = Endpoints()


@description.on("GET /_broker/openapi.json", tag=PUBLIC)
def document(request: Request) -> dict[str, Any]:
    """Return this API as an OpenAPI 3.1 document."""
    return openapi.document(SECTIONS, request.broker.profile.version)


def _joined(*modules: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    return tuple(endpoint for endpoints in modules for endpoint in endpoints)


SECTIONS: Final[Mapping[str, tuple[Endpoint, ...]]] = {
    "Broker": _joined(
        overview.endpoints, cluster.endpoints, nodes.endpoints, memory.endpoints, feature_flags.endpoints
    ),
    "Connections and channels": _joined(
        connections.endpoints, channels.endpoints, consumers.endpoints, holders.endpoints
    ),
    "Exchanges, queues, bindings": _joined(
        exchanges.endpoints, queues.endpoints, quorum.endpoints, bindings.endpoints, topology.endpoints
    ),
    "Messages": _joined(messages.endpoints, peeking.endpoints, moving.endpoints, download.endpoints),
    "Users and permissions": _joined(users.endpoints, permissions.endpoints, logins.endpoints),
    "Vhosts and limits": _joined(vhosts.endpoints, limits.endpoints),
    "Policies and parameters": _joined(policies.endpoints, parameters.endpoints, shovels.endpoints),
    "Definitions and snapshots": _joined(definitions.endpoints, snapshots.endpoints, resetting.endpoints),
    "Health": _joined(health.endpoints, attention.endpoints),
    "Testing": _joined(
        clock.endpoints, clock_due.endpoints, faults.endpoints, nemeses.endpoints, advice.endpoints, demo.endpoints
    ),
    "Events of messages": _joined(
        event_log.endpoints, message_life.endpoints, vhost_reports.endpoints, capture.endpoints, trace.endpoints
    ),
    "Command line and web page": _joined(node_control.endpoints, updates.endpoints, description),
}


def all_endpoints() -> Iterator[Endpoint]:
    """Yield the endpoints of all sections."""
    for section in SECTIONS.values():
        yield from section
