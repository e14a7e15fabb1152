"""Consumers of queues."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from amqp_broker.broker.scheduling.portions import Steps, popping
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.documents.values import json_of_table
from amqp_broker.management.http.auth import MANAGEMENT, MONITORING, has_tag
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.peer import Peer
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue

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
        "arguments": json_of_table(consumer.arguments),
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


def rows_of(queue: Queue, broker: Broker) -> Steps[list[tuple[Consumer, dict[str, Any]]]]:
    """Return a queue's consumers with their rows. Those that are cancelled meanwhile are left out."""
    pairs = []
    for consumer in list(queue.consumers):
        pairs.append((consumer, consumer_row(consumer, broker)))
        yield
    there = set(queue.consumers)
    return [pair for pair in pairs if pair[0] in there]


@endpoints.on("GET /api/consumers", "GET /api/consumers/{vhost}", tag=MANAGEMENT)
def all_consumers(request: Request) -> Steps[list[dict[str, Any]]]:
    """List consumers, of one vhost or of all; without the tag monitoring only the user's own."""
    sees_all, rows = has_tag(request.user, MONITORING), Disposable[dict[str, Any]]()
    for queue in popping(deque(queue for vhost in request.vhosts for queue in vhost.queues.values())):
        for consumer, row in (yield from rows_of(queue, request.broker)):
            if sees_all or request.user.is_same(consumer.connection.user):
                rows.append(row)
        yield
    return rows
