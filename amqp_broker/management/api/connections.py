"""Connections: lists, one, its channels, closing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.api.channels import channel_row, is_there
from amqp_broker.management.api.statistics import GARBAGE_COLLECTION, RATE, Statistics
from amqp_broker.management.documents.values import json_of_table
from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request, not_found
from amqp_broker.management.http.auth import MANAGEMENT, MONITORING, has_tag, require_owner
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed
from amqp_broker.management.http.request import Request

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.clients.client_connection import Connection

endpoints = Endpoints()

CLOSED: Final = "Closed via management plugin"
REASON_BYTES_MAX: Final = 200
# Attributes of TLS, which are null on a plain connection.
TLS_FACTS: Final = (
    *("ssl_protocol", "ssl_key_exchange", "ssl_cipher", "ssl_hash"),
    *("peer_cert_subject", "peer_cert_issuer", "peer_cert_validity"),
)
# Figures that change, which RabbitMQ 4.3 leaves out of a list without statistics.
CHANGING: Final = frozenset(
    (
        *("channels", "garbage_collection", "recv_cnt", "recv_oct", "recv_oct_details", "reductions"),
        *("reductions_details", "send_cnt", "send_oct", "send_oct_details", "send_pend", "state"),
    )
)


def visible(request: Request) -> Iterator[Connection]:
    """Yield the open connections, of one vhost or of all; without the tag monitoring only the user's own."""
    sees_all = has_tag(request.user, MONITORING)
    vhost = request.vhost if "vhost" in request.path else None
    for connection in request.broker.connections:
        if vhost in (None, connection.vhost) and (sees_all or request.user.is_same(connection.user)):
            yield connection


def user_name(connection: Connection) -> str:
    """Return the name of a connection's user, or "" before the login."""
    return connection.user.name if connection.user is not None else ""


def octets_of(connection: Connection) -> dict[str, int]:
    return {"recv_oct": connection.received_bytes, "send_oct": connection.sent_bytes}


def connection_row(connection: Connection, broker: Broker, statistics: Statistics) -> dict[str, Any]:
    """Return the row of a connection with statistics."""
    properties = json_of_table(connection.client_properties)
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
        "node": broker.node,
        "peer_host": connection.peer_host,
        "peer_port": connection.peer_port,
        "port": connection.port,
        "protocol": connection.protocol,
        "recv_cnt": connection.received_count,
        **statistics.of(connection, "octets", octets_of(connection)),
        "reductions": 0,
        "reductions_details": RATE,
        "send_cnt": connection.sent_count,
        "send_pend": 0,
        "ssl": connection.tls is not None,
        **{name: getattr(connection.tls, name, None) for name in _tls_facts(broker)},
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


def _tls_facts(broker: Broker) -> tuple[str, ...]:
    return (*TLS_FACTS, "peer_cert_serial_number") if broker.profile.release >= (4, 3) else TLS_FACTS


def tracked_row(connection: Connection, node: str) -> dict[str, Any]:
    """Return the row of a connection without statistics."""
    return {
        "name": connection.name,
        "node": node,
        "user": user_name(connection),
        "vhost": connection.vhost.name if connection.vhost is not None else None,
    }


@endpoints.on("GET /api/connections", "GET /api/vhosts/{vhost}/connections", tag=MANAGEMENT, query=ListQuery)
def all_connections(request: Request) -> Any:
    """List open connections, of one vhost or of all."""
    broker, statistics, has_pages = request.broker, Statistics(request), "vhost" not in request.path

    def brief(connection: Connection) -> dict[str, Any]:
        if broker.profile.release < (4, 3):
            return tracked_row(connection, broker.node)
        row = connection_row(connection, broker, statistics)
        return {name: value for name, value in row.items() if name not in CHANGING}

    is_open = broker.connections.__contains__
    if not request.wants_stats:
        return listed(request, visible(request), brief, is_there=is_open, has_pages=has_pages)

    def view(connection: Connection) -> dict[str, Any]:
        return connection_row(connection, broker, statistics)

    return listed(request, visible(request), view, is_there=is_open, has_pages=has_pages)


def _connection(request: Request) -> Connection:
    """Return the connection in the path. Raise Refusal."""
    for connection in request.broker.connections:
        if connection.name == request.path["name"]:
            require_owner(request.user, connection.user, request.method)
            return connection
    raise not_found()


@endpoints.on("GET /api/connections/{name}", tag=MANAGEMENT)
def one(request: Request) -> dict[str, Any]:
    """Return a connection."""
    row = connection_row(_connection(request), request.broker, Statistics(request))
    return row | {name: "" for name in _tls_facts(request.broker) if row[name] is None}


@endpoints.on("DELETE /api/connections/{name}", tag=MANAGEMENT)
def close(request: Request) -> Any:
    """Close a connection; the header `X-Reason` is the reason that its client gets."""
    return _closing(request, [_connection(request)])


@endpoints.on("GET /api/connections/{name}/channels", tag=MANAGEMENT, query=ListQuery)
def channels(request: Request) -> Any:
    """List the channels of a connection."""
    broker, statistics = request.broker, Statistics(request)
    channels = _connection(request).channels.values()

    def view(channel: ClientChannel) -> dict[str, Any]:
        return channel_row(channel, broker, statistics)

    return listed(request, channels, view, is_there=is_there, has_pages=False)


@endpoints.on("GET /api/connections/{name}/sessions", tag=MANAGEMENT)
def sessions(request: Request) -> Any:
    """Refuse (400): only AMQP 1.0, which is not spoken, has sessions."""
    _connection(request)
    raise bad_request("connection does not use AMQP 1.0")


def _of_user(request: Request) -> list[Connection]:
    """Return the connections of the user in the path. Raise Refusal."""
    name = request.path["user"]
    require_owner(request.user, request.broker.users.get(name), request.method)
    return [connection for connection in request.broker.connections if user_name(connection) == name]


@endpoints.on("GET /api/connections/username/{user}", tag=MANAGEMENT, query=ListQuery)
def of_user(request: Request) -> Any:
    """List the connections of a user."""
    node = request.broker.node
    is_open = request.broker.connections.__contains__
    return listed(request, _of_user(request), lambda connection: tracked_row(connection, node), is_there=is_open)


@endpoints.on("DELETE /api/connections/username/{user}", tag=MANAGEMENT)
def close_of_user(request: Request) -> Any:
    """Close all connections of a user."""
    return _closing(request, _of_user(request))


def _closing(request: Request, connections: list[Connection]) -> Steps[Answer]:
    reason = request.headers.get("x-reason", CLOSED)
    yield from request.broker.closing(connections, reason[:REASON_BYTES_MAX])
    return NO_CONTENT
