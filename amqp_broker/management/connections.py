"""Connections: who is connected, and how to close him."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.management.access import MANAGEMENT, MONITORING, may, require_owner
from amqp_broker.management.channels import channel_row
from amqp_broker.management.listing import listed
from amqp_broker.management.request import NO_CONTENT, Request, Resource, not_found
from amqp_broker.management.stats import GARBAGE_COLLECTION, RATE, Statistics
from amqp_broker.management.values import json_of

if TYPE_CHECKING:
    from amqp_broker.broker.connection import Connection

CLOSED: Final = "Closed via management plugin"
REASON_BYTES_MAX: Final = 200
# What there is to say of TLS; nothing, where the peer speaks in the clear.
TLS_FACTS: Final = (
    *("ssl_protocol", "ssl_key_exchange", "ssl_cipher", "ssl_hash"),
    *("peer_cert_subject", "peer_cert_issuer", "peer_cert_validity"),
)


def visible(request: Request) -> Iterator[Connection]:
    """The open connections that the user may see: all if he monitors, else his own; those of a vhost in the path."""
    sees_all = may(request.user, MONITORING)
    vhost = request.vhost if "vhost" in request.path else None
    for connection in request.broker.connections:
        if vhost in (None, connection.vhost) and (sees_all or connection.user is request.user):
            yield connection


def user_name(connection: Connection) -> str:
    return connection.user.name if connection.user is not None else ""


def octets_of(connection: Connection) -> dict[str, int]:
    return {"recv_oct": connection.received_bytes, "send_oct": connection.sent_bytes}


def connection_row(connection: Connection, node: str, statistics: Statistics) -> dict[str, Any]:
    """A connection as lists and its own page have it."""
    properties = json_of(connection.client_properties)
    row = {
        "auth_mechanism": connection.mechanism,
        "channel_max": connection.channel_max,
        "channels": len(connection.channels),
        "client_properties": properties,
        "connected_at": connection.connected_at_ms,
        "frame_max": connection.frame_max,
        "garbage_collection": GARBAGE_COLLECTION,
        "host": connection.host,
        "name": connection.name,
        "node": node,
        "peer_host": connection.peer_host,
        "peer_port": connection.peer_port,
        "port": connection.port,
        "protocol": connection.protocol,
        "recv_cnt": connection.received_count,
        **statistics.of(connection, "octets", octets_of),
        "reductions": 0,
        "reductions_details": RATE,
        "send_cnt": connection.sent_count,
        "send_pend": 0,
        "ssl": connection.tls is not None,
        **{name: getattr(connection.tls, name, None) for name in TLS_FACTS},
        "state": connection.status,
        "timeout": connection.heartbeat_s,
        "type": "network",
        "user": user_name(connection),
        "user_who_performed_action": user_name(connection),
        "vhost": connection.vhost.name if connection.vhost is not None else None,
    }
    if "connection_name" in properties:
        row["user_provided_name"] = properties["connection_name"]
    return row


def tracked_row(connection: Connection, node: str) -> dict[str, Any]:
    """What is known of a connection without statistics."""
    return {
        "name": connection.name,
        "node": node,
        "user": user_name(connection),
        "vhost": connection.vhost.name if connection.vhost is not None else None,
    }


def all_connections(request: Request) -> Any:
    node = request.broker.node
    if not request.wants_stats:
        return listed(request, visible(request), lambda connection: tracked_row(connection, node))
    statistics = Statistics(request)
    return listed(request, visible(request), lambda connection: connection_row(connection, node, statistics))


def _named(request: Request) -> Connection:
    """The connection in the path. Raises Refusal."""
    for connection in request.broker.connections:
        if connection.name == request.path["name"]:
            require_owner(request.user, connection.user, request.method)
            return connection
    raise not_found()


def one(request: Request) -> dict[str, Any]:
    return connection_row(_named(request), request.broker.node, Statistics(request))


def close(request: Request) -> Any:
    _close(request, _named(request))
    return NO_CONTENT


def channels(request: Request) -> Any:
    node, statistics = request.broker.node, Statistics(request)
    return listed(request, _named(request).channels.values(), lambda channel: channel_row(channel, node, statistics))


def _of_user(request: Request) -> list[Connection]:
    """The connections of the user in the path. Raises Refusal."""
    name = request.path["user"]
    require_owner(request.user, request.broker.users.get(name), request.method)
    return [connection for connection in request.broker.connections if user_name(connection) == name]


def of_user(request: Request) -> Any:
    node = request.broker.node
    return listed(request, _of_user(request), lambda connection: tracked_row(connection, node))


def close_of_user(request: Request) -> Any:
    for connection in _of_user(request):
        _close(request, connection)
    return NO_CONTENT


def _close(request: Request, connection: Connection) -> None:
    reason = request.headers.get("x-reason") or CLOSED
    connection.force_close(reason[:REASON_BYTES_MAX], request.node.now())


RESOURCES = (
    Resource("/api/connections", MANAGEMENT, {"GET": all_connections}),
    Resource("/api/connections/{name}", MANAGEMENT, {"GET": one, "DELETE": close}),
    Resource("/api/connections/{name}/channels", MANAGEMENT, {"GET": channels}),
    Resource("/api/connections/username/{user}", MANAGEMENT, {"GET": of_user, "DELETE": close_of_user}),
    Resource("/api/vhosts/{vhost}/connections", MANAGEMENT, {"GET": all_connections}),
)
