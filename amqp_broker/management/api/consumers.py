"""Consumers of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amqp_broker.management.documents.values import json_of
from amqp_broker.management.http.auth import MANAGEMENT, MONITORING, has_tag
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.peer import Peer
    from amqp_broker.broker.queues.consumer import Consumer

endpoints = Endpoints()


def channel_details(connection: Peer, number: int, node: str) -> dict[str, Any]:
    """Return the reference to a channel in other rows."""
    return {
        "connection_name": connection.name,
        "name": f"{connection.name} ({number})",
        "node": node,
        "number": number,
        "peer_host": connection.peer_host,
        "peer_port": connection.peer_port,
        "user": connection.user.name if connection.user is not None else "",
    }


def consumer_row(consumer: Consumer, broker: Broker) -> dict[str, Any]:
    """Return the row of a consumer."""
    row = {
        "ack_required": not consumer.no_ack,
        "active": consumer.is_active,
        "activity_status": consumer.activity_status,
        "arguments": json_of(consumer.arguments),
        "channel_details": channel_details(consumer.connection, consumer.number, broker.node),
        "consumer_tag": consumer.tag,
        "exclusive": consumer.is_exclusive,
        "prefetch_count": consumer.channel_prefetch,
        "queue": {"name": consumer.queue.name, "vhost": consumer.queue.vhost.name},
    }
    if broker.profile.release >= (4, 0):
        own_ms = consumer.timeout_ms
        if own_ms is None:
            own_ms = consumer.queue.settings.consumer_timeout_ms
        row["consumer_timeout"] = broker.settings.consumer_timeout_ms if own_ms is None else own_ms
    return row


@endpoints.on("GET /api/consumers", "GET /api/consumers/{vhost}", tag=MANAGEMENT)
def all_consumers(request: Request) -> list[dict[str, Any]]:
    """List consumers, of one vhost or of all; without the tag monitoring only the user's own."""
    sees_all = has_tag(request.user, MONITORING)
    return [
        consumer_row(consumer, request.broker)
        for vhost in request.vhosts
        for queue in vhost.queues.values()
        for consumer in queue.consumers
        if sees_all or consumer.connection.user is request.user
    ]
