"""The consumers of a queue and the messages that each holds: which of them holds the queue up."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.queues.arrival_times import oldest_arrived_ms
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.api.statistics import Statistics
from amqp_broker.management.documents.values import json_of
from amqp_broker.management.http.answers import not_found
from amqp_broker.management.http.auth import MANAGEMENT, MONITORING, has_tag
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.node.rates import NOTHING

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.queues.consumer import Consumer

# Deliveries of a channel that are looked at for the oldest one of a consumer.
LOOKED_AT_MAX: Final = 10_000

endpoints = Endpoints()


@endpoints.on("GET /_broker/queues/{vhost}/{queue}/consumers", tag=MANAGEMENT)
def holders(request: Request) -> Steps[dict[str, Any]]:
    """List a queue's consumers with messages and rates, and when its oldest ready message arrived."""
    queue, now = request.vhost.queues.get(request.path["queue"]), request.broker.real_now()
    if queue is None:
        raise not_found()
    statistics = Statistics(request)
    sees_all, rows, held = has_tag(request.user, MONITORING), list[dict[str, Any]](), 0
    for consumer in list(queue.consumers):
        held += consumer.in_flight
        if sees_all or request.user.is_same(consumer.connection.user):
            rows.append(_row(consumer, now, statistics))
        yield
    rows.sort(key=lambda row: -row["unacked"])
    # Others were got by basic.get, or by consumers that are cancelled.
    return {
        "consumers": rows,
        "unacked_elsewhere": max(queue.unacked_count - held, 0),
        "oldest_ready_ms": oldest_arrived_ms(queue, now),
        "now_ms": now,
    }


def _row(consumer: Consumer, now: int, statistics: Statistics) -> dict[str, Any]:
    connection = consumer.connection
    channels: dict[int, ClientChannel] = getattr(connection, "channels", {})
    channel = channels.get(consumer.number)
    return {
        "consumer_tag": consumer.tag,
        "connection": connection.name,
        "connection_name": json_of(connection.client_properties.get("connection_name")),
        "channel": consumer.number,
        "user": connection.user.name if connection.user is not None else "",
        "ack_required": not consumer.no_ack,
        "activity_status": consumer.activity_status,
        "prefetch_count": consumer.channel_prefetch,
        "unacked": consumer.in_flight,
        "oldest_unacked_ms": None if channel is None else _oldest_unacked_ms(channel, consumer, now),
        "redelivered": consumer.redelivered,
        **statistics.of(consumer, "message_stats", consumer.totals()),
    }


def _oldest_unacked_ms(channel: ClientChannel, consumer: Consumer, now: int) -> int | None:
    """Return when the oldest unacked message was delivered, in ms of real time and to five seconds."""
    if not consumer.in_flight:
        return None
    for tag, (_, holder, _, _) in islice(channel.unacked.deliveries.items(), LOOKED_AT_MAX):
        if holder is consumer:
            return _delivered_at_ms(channel, tag, now)
    return None


def _delivered_at_ms(channel: ClientChannel, tag: int, now: int) -> int:
    # A delivery tag is the number of deliveries on its channel.
    at_ms = now
    for sampled_ms, (delivered,) in (channel.counts.history or NOTHING).backwards("deliver_get"):
        if delivered < tag:
            break
        at_ms = sampled_ms
    return at_ms
