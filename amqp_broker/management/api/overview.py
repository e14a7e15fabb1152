"""The overview, and what a client asks first: user, version, name of the cluster."""

from __future__ import annotations

import platform
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.broker import CLUSTER_TAGS
from amqp_broker.broker.exchanges.types import exchange_types
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.implementation import implementation
from amqp_broker.management.api import channels, connections
from amqp_broker.management.api.statistics import Statistics, with_details
from amqp_broker.management.http.auth import MANAGEMENT, MONITORING, PUBLIC, has_tag, sees_vhost
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.node.totals import all_queue_totals, message_stats, queue_totals

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.management.node.node import Listener

endpoints = Endpoints()

# Ages of RabbitMQ's samples, in seconds.
RETENTION: Final = {"global": [600, 3600, 28800, 86400], "basic": [600, 3600], "detailed": [600]}
DESCRIPTIONS: Final = {
    "direct": "AMQP direct exchange, as per the AMQP specification",
    "fanout": "AMQP fanout exchange, as per the AMQP specification",
    "headers": "AMQP headers exchange, as per the AMQP specification",
    "topic": "AMQP topic exchange, as per the AMQP specification",
    "x-consistent-hash": "Consistent Hashing Exchange",
    "x-random": "Randomly picks a binding (queue) to route via (to).",
    "x-recent-history": "Recent History Exchange.",
    "x-delayed-message": "Delayed Message Exchange.",
    "x-message-deduplication": "Message Deduplication Exchange.",
    "x-local-random": "Picks one random local binding (queue) to route via (to).",
    "x-modulus-hash": "Modulus Hashing Exchange",
}
# RabbitMQ's options of AMQP sockets.
AMQP_SOCKET: Final = {"backlog": 128, "nodelay": True, "linger": [True, 0], "exit_on_close": False}
# Counters in `churn_rates`.
CHURN: Final = {
    "channel_closed": "channels_closed",
    "channel_created": "channels_created",
    "connection_closed": "connections_closed",
    "connection_created": "connections_created",
    "queue_created": "queues_created",
    "queue_declared": "queues_declared",
    "queue_deleted": "queues_deleted",
}


def exchange_type_rows(broker: Broker) -> list[dict[str, Any]]:
    """Return the exchange types of the broker."""
    return [
        {"name": name, "description": DESCRIPTIONS.get(name, ""), "enabled": True}
        for name in sorted(exchange_types(broker.profile))
    ]


def churn(broker: Broker) -> dict[str, int]:
    """Return how many connections, channels and queues were created and removed."""
    counters = broker.counters
    return {name: getattr(counters, counted) for name, counted in CHURN.items()}


def contexts(request: Request) -> list[dict[str, Any]]:
    """Return the HTTP listeners of the management plugin."""
    return [
        {
            "node": request.broker.node,
            "description": "RabbitMQ Management",
            "path": "/",
            "ip": listener.host,
            "port": str(listener.port),
            "cowboy_opts": "[{sendfile,false}]",
            "ssl_opts": [],
        }
        for listener in request.node.listeners()
        if listener.protocol in ("http", "https")
    ]


@endpoints.on("GET /api/overview", tag=MANAGEMENT)
def overview(request: Request) -> Steps[dict[str, Any]]:
    """Return totals, rates, listeners and versions."""
    broker, sees_all = request.broker, has_tag(request.user, MONITORING)
    version = broker.profile.version
    vhosts = [vhost for vhost in broker.vhosts.values() if sees_vhost(request.user, vhost)]
    row: dict[str, Any] = {
        "management_version": version,
        "rates_mode": "detailed",
        "sample_retention_policies": RETENTION,
        "exchange_types": exchange_type_rows(broker),
        "product_version": version,
        "product_name": "RabbitMQ",
        "rabbitmq_version": version,
        "cluster_name": broker.cluster_name,
        "cluster_tags": broker.global_parameters.values.get(CLUSTER_TAGS, {}),
        "node_tags": {},
        "default_queue_type": broker.settings.default_queue_type,
        "is_op_policy_updating_enabled": True,
        # There is no Erlang; Python's version and the kind of build take the place of its system version.
        "erlang_version": "0",
        "erlang_full_version": f"Python {platform.python_version()}, {implementation()}",
        "disable_stats": not request.wants_stats,
        "enable_queue_totals": request.query.get("enable_queue_totals") == "true",
        "object_totals": (yield from object_totals(request, vhosts)),
        "node": broker.node,
    }
    if broker.profile.release < (4, 0):
        row["release_series_support_status"] = "supported"
    if broker.profile.release >= (4, 3):
        row["crypto_lib_version"] = ssl.OPENSSL_VERSION
        row["require_definition_json_extension"] = False
    if request.wants_stats:
        row |= yield from statistics_of(request, vhosts, sees_all)
    elif row["enable_queue_totals"]:
        row["queue_totals"] = with_details((yield from queue_totals(vhosts)))
    if sees_all and (request.wants_stats or broker.profile.release < (4, 0)):
        row["listeners"] = listeners(request)
        row["contexts"] = contexts(request)
    return row


def object_totals(request: Request, vhosts: Sequence[VHost]) -> Steps[dict[str, int]]:
    """Return the numbers of objects that the user may see, in steps."""
    totals = {
        "connections": sum(1 for _ in connections.visible(request)),
        "exchanges": sum(len(vhost.exchanges) for vhost in vhosts),
        "queues": sum(len(vhost.queues) for vhost in vhosts),
    }
    if request.wants_stats or request.broker.profile.release < (4, 0):
        totals["channels"] = sum(1 for _ in channels.visible(request))
        totals["consumers"] = 0
        for queue in [queue for vhost in vhosts for queue in vhost.queues.values()]:
            # A deleted queue has none.
            totals["consumers"] += len(queue.consumers)
            yield
    return totals


def statistics_of(request: Request, vhosts: Sequence[VHost], sees_all: bool) -> Steps[dict[str, Any]]:
    """Return totals and rates: of all vhosts with their history, or else of those that the user may see."""
    broker, statistics = request.broker, Statistics(request)
    row: dict[str, Any] = {"churn_rates": statistics.of(broker.counters, "churn", churn(broker))}
    if sees_all:
        row["queue_totals"] = statistics.of(broker.counters, "lengths", (yield from all_queue_totals(broker)))
        row["message_stats"] = statistics.of(broker.counters, "message_stats", broker.counters.message_stats())
    else:
        row["queue_totals"] = with_details((yield from queue_totals(vhosts)))
        row["message_stats"] = with_details(message_stats(vhosts))
    return {**row, "statistics_db_event_queue": 0}


def listeners(request: Request) -> list[dict[str, Any]]:
    """Return all listeners of the node."""
    rows = [_listener_row(request, listener) for listener in request.node.listeners()]
    return sorted(rows, key=lambda row: (row["protocol"], row["port"]))


def _listener_row(request: Request, listener: Listener) -> dict[str, Any]:
    row = {
        "node": request.broker.node,
        "protocol": listener.protocol,
        "ip_address": listener.host,
        "port": listener.port,
        "socket_opts": [],
    }
    if request.broker.profile.release >= (4, 0):
        if listener.protocol.startswith("amqp"):
            row["socket_opts"] = AMQP_SOCKET
        else:
            row["socket_opts"] = {"cowboy_opts": {"sendfile": False}, "ip": listener.host, "port": listener.port}
    if request.broker.profile.release >= (4, 3):
        row["tls"] = listener.protocol in ("amqp/ssl", "https")
    return row


@endpoints.on("GET /api/whoami", tag=MANAGEMENT)
def whoami(request: Request) -> dict[str, Any]:
    """Return the name and the tags of the user who asks."""
    return {"name": request.user.name, "tags": list(request.user.tags), "is_internal_user": request.user.is_internal}


@endpoints.on("GET /api/version", tag=PUBLIC)
def version(request: Request) -> str:
    """Return the version of RabbitMQ that the broker behaves like."""
    return request.broker.profile.version


@endpoints.on("GET /api/extensions", tag=MANAGEMENT)
def extensions(request: Request) -> list[dict[str, Any]]:
    """Return the extensions of RabbitMQ's page."""
    return [{"javascript": "dispatcher.js"}]
