"""Channels: what each publishes, receives and owes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from amqp_broker.management.access import MANAGEMENT, MONITORING, may, require_owner
from amqp_broker.management.consumers import consumer_row
from amqp_broker.management.listing import listed
from amqp_broker.management.request import Request, Resource, bad_request, not_found
from amqp_broker.management.stats import GARBAGE_COLLECTION, RATE, Statistics, iso_time, with_details

if TYPE_CHECKING:
    from amqp_broker.broker.channel import Channel


def visible(request: Request) -> Iterator[Channel]:
    """The open channels that the user may see; those of a vhost in the path."""
    sees_all = may(request.user, MONITORING)
    vhost = request.vhost if "vhost" in request.path else None
    for channel in request.broker.channels():
        if vhost in (None, channel.vhost) and (sees_all or channel.connection.user is request.user):
            yield channel


def message_stats_of(channel: Channel) -> dict[str, int]:
    return channel.counts.message_stats()


def channel_row(channel: Channel, node: str, statistics: Statistics) -> dict[str, Any]:
    """A channel as lists have it."""
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
        "global_prefetch_count": channel.prefetch_total,
        "idle_since": iso_time(channel.idle_since_ms),
        "messages_unacknowledged": channel.messages_unacknowledged,
        "messages_uncommitted": channel.messages_uncommitted,
        "messages_unconfirmed": channel.messages_unconfirmed,
        "name": channel.name,
        "node": node,
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
    if stats := statistics.of(channel, "message_stats", message_stats_of):
        row["message_stats"] = stats
    return row


def all_channels(request: Request) -> Any:
    if not request.wants_stats:
        raise bad_request("Stats in management UI are disabled on this node")
    node, statistics = request.broker.node, Statistics(request)
    return listed(request, visible(request), lambda channel: channel_row(channel, node, statistics))


def one(request: Request) -> dict[str, Any]:
    node = request.broker.node
    for channel in request.broker.channels():
        if channel.name == request.path["name"]:
            require_owner(request.user, channel.connection.user)
            return {
                **channel_row(channel, node, Statistics(request)),
                "consumer_details": [consumer_row(consumer, node) for consumer in channel.consumers.values()],
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


RESOURCES = (
    Resource("/api/channels", MANAGEMENT, {"GET": all_channels}),
    Resource("/api/channels/{name}", MANAGEMENT, {"GET": one}),
    Resource("/api/vhosts/{vhost}/channels", MANAGEMENT, {"GET": all_channels}),
)
