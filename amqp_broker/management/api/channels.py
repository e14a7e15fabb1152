"""Channels: their counters, limits and unsettled messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from amqp_broker.management.api.consumers import consumer_row
from amqp_broker.management.api.statistics import GARBAGE_COLLECTION, RATE, Statistics, iso_time, with_details
from amqp_broker.management.http.answers import bad_request, not_found
from amqp_broker.management.http.auth import MANAGEMENT, MONITORING, has_tag, require_owner
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed
from amqp_broker.management.http.request import Request

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_channel import ClientChannel

endpoints = Endpoints()


def visible(request: Request) -> Iterator[ClientChannel]:
    """Yield the open channels, of one vhost or of all; without the tag monitoring only the user's own."""
    sees_all = has_tag(request.user, MONITORING)
    vhost = request.vhost if "vhost" in request.path else None
    for channel in request.broker.channels():
        if vhost in (None, channel.vhost) and (sees_all or request.user.is_same(channel.connection.user)):
            yield channel


def is_there(channel: ClientChannel) -> bool:
    """Return whether a channel is open."""
    return channel.connection.channels.get(channel.number) is channel


def channel_row(channel: ClientChannel, broker: Broker, statistics: Statistics) -> dict[str, Any]:
    """Return the row of a channel."""
    connection = channel.connection
    user = connection.user.name if connection.user is not None else ""
    row = {
        "acks_uncommitted": channel.acks_uncommitted,
        "confirm": channel.is_confirming,
        "connection_details": {
            "name": connection.name,
            "peer_host": connection.peer_host,
            "peer_port": connection.peer_port,
        },
        "consumer_count": len(channel.consumers),
        "garbage_collection": GARBAGE_COLLECTION,
        "idle_since": iso_time(channel.idle_since_ms),
        "messages_unacknowledged": channel.messages_unacknowledged,
        "messages_uncommitted": channel.messages_uncommitted,
        "messages_unconfirmed": channel.messages_unconfirmed,
        "name": channel.name,
        "node": broker.node,
        "number": channel.number,
        "pending_raft_commands": 0,
        "prefetch_count": channel.prefetch,
        "reductions": 0,
        "reductions_details": RATE,
        "state": channel.status,
        "transactional": channel.is_transactional,
        "user": user,
        "user_who_performed_action": user,
        "vhost": channel.vhost.name,
    }
    if broker.profile.release < (4, 0):
        row["global_prefetch_count"] = channel.prefetch_total
    if broker.profile.release >= (4, 3):
        row["cached_segments"] = 0
    if stats := statistics.of(channel.counts, "message_stats", channel.counts.message_stats()):
        row["message_stats"] = stats
    return row


@endpoints.on("GET /api/channels", "GET /api/vhosts/{vhost}/channels", tag=MANAGEMENT, query=ListQuery)
def all_channels(request: Request) -> Any:
    """List open channels, of one vhost or of all."""
    broker, statistics, has_pages = request.broker, Statistics(request), "vhost" not in request.path
    if not request.wants_stats:
        if broker.profile.release < (4, 3):
            raise bad_request("Stats in management UI are disabled on this node")
        return listed(request, (), dict, has_pages=has_pages)

    def view(channel: ClientChannel) -> dict[str, Any]:
        return channel_row(channel, broker, statistics)

    return listed(request, visible(request), view, is_there=is_there, has_pages=has_pages)


@endpoints.on("GET /api/channels/{name}", tag=MANAGEMENT)
def one(request: Request) -> dict[str, Any]:
    """Return a channel with its consumers, and its counters by exchange and queue."""
    broker = request.broker
    for channel in broker.channels():
        if channel.name == request.path["name"]:
            require_owner(request.user, channel.connection.user)
            return {
                **channel_row(channel, broker, Statistics(request)),
                "consumer_details": [consumer_row(consumer, broker) for consumer in channel.consumers.values()],
                "publishes": [
                    {
                        "exchange": {"name": exchange.name, "vhost": exchange.vhost},
                        "stats": with_details(stats),
                    }
                    for exchange, counts in channel.counts.by_exchange()
                    if (stats := counts.stats())
                ],
                "deliveries": [
                    {
                        "queue": {"name": queue.name, "vhost": queue.vhost.name},
                        "stats": with_details(stats),
                    }
                    for queue, counts in channel.counts.by_queue()
                    if (stats := counts.stats())
                ],
            }
    raise not_found()
