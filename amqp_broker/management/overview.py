"""What the node says of itself and of all together: overview, name of the cluster, whoami, version, extensions."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.broker import CLUSTER_NAME
from amqp_broker.broker.exchange_types import exchange_types
from amqp_broker.management import channels, connections
from amqp_broker.management.access import ADMINISTRATOR, ANYBODY, MANAGEMENT, MONITORING, may, sees_vhost
from amqp_broker.management.body import body_of, text
from amqp_broker.management.request import NO_CONTENT, Request, Resource, not_authorised
from amqp_broker.management.stats import Statistics, with_details

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.management.rates import Rates

# How long RabbitMQ keeps samples, in seconds.
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
    "x-local-random": "Picks one random local binding (queue) to route via (to).",
    "x-modulus-hash": "Modulus Hashing Exchange",
}
# Numbers that come and go together as `churn_rates`.
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
    """The exchange types that there are."""
    return [
        {"name": name, "description": DESCRIPTIONS.get(name, ""), "enabled": True}
        for name in sorted(exchange_types(broker.profile))
    ]


def churn(broker: Broker) -> dict[str, int]:
    counters = broker.counters
    return {name: getattr(counters, counted) for name, counted in CHURN.items()}


def contexts(request: Request) -> list[dict[str, Any]]:
    """Where HTTP is answered."""
    return [
        {
            "node": request.broker.node,
            "description": "RabbitMQ Management",
            "path": "/",
            "ip": listener.host,
            "port": str(listener.port),
            "cowboy_opts": "[]",
            "ssl_opts": [],
        }
        for listener in request.node.listeners()
        if listener.protocol in ("http", "https")
    ]


def queue_totals(vhosts: Iterable[VHost]) -> dict[str, int]:
    """All messages in queues."""
    ready = unacked = 0
    for vhost in vhosts:
        for queue in vhost.queues.values():
            ready += queue.ready_count
            unacked += queue.unacked_count
    return {"messages": ready + unacked, "messages_ready": ready, "messages_unacknowledged": unacked}


def all_queue_totals(broker: Broker) -> dict[str, int]:
    return queue_totals(broker.vhosts.values())


def all_message_stats(broker: Broker) -> dict[str, int]:
    return broker.counters.message_stats()


def begin_history(broker: Broker, rates: Rates) -> None:
    """Sample what the charts of the overview are drawn of from now on, whether somebody looks or not."""
    broker.counters.collect()
    rates.keep(broker, "lengths", all_queue_totals)
    rates.keep(broker, "message_stats", all_message_stats)


def message_stats(vhosts: Iterable[VHost]) -> Mapping[str, int]:
    """What was counted in some vhosts."""
    totals: Counter[str] = Counter()
    for vhost in vhosts:
        totals.update(vhost.message_stats())
    return totals


def overview(request: Request) -> dict[str, Any]:
    broker, sees_all = request.broker, may(request.user, MONITORING)
    version = broker.profile.version
    vhosts = [vhost for vhost in broker.vhosts.values() if sees_vhost(request.user, vhost)]
    told: dict[str, Any] = {
        "management_version": version,
        "rates_mode": "detailed",
        "sample_retention_policies": RETENTION,
        "exchange_types": exchange_type_rows(broker),
        "product_version": version,
        "product_name": "RabbitMQ",
        "rabbitmq_version": version,
        "cluster_name": broker.cluster_name,
        "cluster_tags": {},
        "node_tags": {},
        "default_queue_type": broker.config.default_queue_type,
        "is_op_policy_updating_enabled": True,
        "release_series_support_status": "supported",
        # There is none; what runs the broker stands where Erlang's system version does.
        "erlang_version": "0",
        "erlang_full_version": f"Python {platform.python_version()}",
        "disable_stats": not request.wants_stats,
        "enable_queue_totals": request.query.get("enable_queue_totals") == "true",
        "object_totals": {
            "connections": sum(1 for _ in connections.visible(request)),
            "channels": sum(1 for _ in channels.visible(request)),
            "exchanges": sum(len(vhost.exchanges) for vhost in vhosts),
            "queues": sum(len(vhost.queues) for vhost in vhosts),
            "consumers": sum(len(queue.consumers) for vhost in vhosts for queue in vhost.queues.values()),
        },
        "node": broker.node,
    }
    statistics = Statistics(request)
    if request.wants_stats:
        told["churn_rates"] = statistics.of(broker, "churn", churn)
    if sees_all and request.wants_stats:
        told["queue_totals"] = statistics.of(broker, "lengths", all_queue_totals)
        told["message_stats"] = statistics.of(broker, "message_stats", all_message_stats)
    elif request.wants_stats:
        told["queue_totals"] = with_details(queue_totals(vhosts))
        told["message_stats"] = with_details(message_stats(vhosts))
    elif told["enable_queue_totals"]:
        told["queue_totals"] = with_details(queue_totals(vhosts))
    if request.wants_stats:
        told["statistics_db_event_queue"] = 0
    if sees_all:
        told["listeners"] = listeners(request)
        told["contexts"] = contexts(request)
    return told


def listeners(request: Request) -> list[dict[str, Any]]:
    rows = (
        {
            "node": request.broker.node,
            "protocol": listener.protocol,
            "ip_address": listener.host,
            "port": listener.port,
            "socket_opts": [],
        }
        for listener in request.node.listeners()
    )
    return sorted(rows, key=lambda row: (row["protocol"], row["port"]))


def whoami(request: Request) -> dict[str, Any]:
    return {"name": request.user.name, "tags": sorted(request.user.tags), "is_internal_user": True}


def version(request: Request) -> str:
    return request.broker.profile.version


def extensions(request: Request) -> list[dict[str, Any]]:
    return [{"javascript": "dispatcher.js"}]


def cluster_name(request: Request) -> dict[str, Any]:
    return {"name": request.broker.cluster_name}


def set_cluster_name(request: Request) -> Any:
    if not may(request.user, ADMINISTRATOR):
        raise not_authorised("Not administrator user")
    request.broker.global_parameters.set(CLUSTER_NAME, text(body_of(request, "name"), "name"))
    return NO_CONTENT


RESOURCES = (
    Resource("/api/overview", MANAGEMENT, {"GET": overview}),
    Resource("/api/whoami", MANAGEMENT, {"GET": whoami}),
    Resource("/api/version", ANYBODY, {"GET": version}),
    Resource("/api/extensions", MANAGEMENT, {"GET": extensions}),
    Resource("/api/cluster-name", MANAGEMENT, {"GET": cluster_name, "PUT": set_cluster_name}),
)
