"""Consumers: who receives from which queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amqp_broker.management.access import MANAGEMENT, MONITORING, may
from amqp_broker.management.request import Request, Resource
from amqp_broker.management.values import json_of

if TYPE_CHECKING:
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.consumer import Consumer


def channel_details(connection: Connection, number: int, node: str) -> dict[str, Any]:
    """How others refer to a channel."""
    return {
        "connection_name": connection.name,
        "name": f"{connection.name} ({number})",
        "node": node,
        "number": number,
        "peer_host": connection.peer_host,
        "peer_port": connection.peer_port,
        "user": connection.user.name if connection.user is not None else "",
    }


def consumer_row(consumer: Consumer, node: str) -> dict[str, Any]:
    """A consumer as lists have it, and the details of its queue and channel."""
    return {
        "ack_required": not consumer.no_ack,
        "active": consumer.is_active,
        "activity_status": consumer.activity_status,
        "arguments": json_of(consumer.arguments),
        "channel_details": channel_details(consumer.connection, consumer.number, node),
        "consumer_tag": consumer.tag,
        "exclusive": consumer.is_exclusive,
        "prefetch_count": consumer.prefetch,
        "queue": {"name": consumer.queue.name, "vhost": consumer.queue.vhost.name},
    }


def all_consumers(request: Request) -> list[dict[str, Any]]:
    """Those of the vhosts that the user may see; who does not monitor sees his own."""
    node, sees_all = request.broker.node, may(request.user, MONITORING)
    return [
        consumer_row(consumer, node)
        for vhost in request.vhosts
        for queue in vhost.queues.values()
        for consumer in queue.consumers
        if sees_all or consumer.connection.user is request.user
    ]


RESOURCES = (
    Resource("/api/consumers", MANAGEMENT, {"GET": all_consumers}),
    Resource("/api/consumers/{vhost}", MANAGEMENT, {"GET": all_consumers}),
)
