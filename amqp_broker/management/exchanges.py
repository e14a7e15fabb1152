"""Exchanges: lists, one, its declaration and deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amqp_broker.broker import topology
from amqp_broker.broker.delayed_exchange import DelayedExchange
from amqp_broker.broker.topology import stripped
from amqp_broker.management import json
from amqp_broker.management.access import MANAGEMENT
from amqp_broker.management.body import boolean, text
from amqp_broker.management.consumers import channel_details
from amqp_broker.management.listing import listed
from amqp_broker.management.names import check_name
from amqp_broker.management.request import CREATED, NO_CONTENT, Request, Resource, not_found
from amqp_broker.management.stats import Statistics, with_details
from amqp_broker.management.values import json_of

if TYPE_CHECKING:
    from amqp_broker.broker.exchange import Exchange


def basic_row(exchange: Exchange) -> dict[str, Any]:
    """An exchange without statistics."""
    row: dict[str, Any] = {
        "arguments": json_of(exchange.arguments),
        "auto_delete": exchange.is_auto_delete,
        "durable": exchange.is_durable,
        "internal": exchange.is_internal,
        "name": exchange.name,
        "type": exchange.type,
        "vhost": exchange.vhost,
    }
    if exchange.policy is not None:
        row["policy"] = exchange.policy.name
    if isinstance(exchange, DelayedExchange):
        row["messages_delayed"] = exchange.messages_delayed
    return row


def message_stats_of(exchange: Exchange) -> dict[str, int]:
    return exchange.publishes.exchange_stats()


def exchange_row(exchange: Exchange, statistics: Statistics) -> dict[str, Any]:
    """An exchange as lists have it."""
    row = basic_row(exchange)
    if stats := statistics.of(exchange, "message_stats", message_stats_of):
        row["message_stats"] = stats
    return row


def all_exchanges(request: Request) -> Any:
    exchanges = (exchange for vhost in request.vhosts for exchange in vhost.exchanges.values())
    if not request.wants_stats:
        return listed(request, exchanges, basic_row)
    statistics = Statistics(request)
    return listed(request, exchanges, lambda exchange: exchange_row(exchange, statistics))


def _named(request: Request) -> Exchange:
    exchange = request.vhost.exchanges.get(request.exchange_name())
    if exchange is None:
        raise not_found()
    return exchange


def one(request: Request) -> dict[str, Any]:
    exchange, node = _named(request), request.broker.node
    if not request.wants_stats:
        return basic_row(exchange)
    return {
        **exchange_row(exchange, Statistics(request)),
        "incoming": [
            {
                "channel_details": channel_details(channel.connection, channel.number, node),
                "stats": with_details(stats),
            }
            for channel in request.broker.channels()
            if exchange in channel.counts.publishes and (stats := channel.counts.publishes[exchange].stats())
        ],
        "outgoing": [
            {
                "queue": {"name": queue.name, "vhost": exchange.vhost},
                "stats": with_details({"publish": queue.published_from[exchange]}),
            }
            for queue in request.vhost.queues.values()
            if exchange in queue.published_from
        ],
    }


def declare(request: Request) -> Any:
    vhost, name, body = request.vhost, stripped(request.exchange_name()), request.json()
    check_name("exchange", name)
    is_new = name not in vhost.exchanges
    topology.declare_exchange(
        request.user,
        vhost,
        name,
        text(body, "type", "direct"),
        is_durable=boolean(body, "durable") or False,
        is_auto_delete=boolean(body, "auto_delete") or False,
        is_internal=boolean(body, "internal") or False,
        arguments=json.to_table(body.get("arguments")),
    )
    return CREATED if is_new else NO_CONTENT


def delete(request: Request) -> Any:
    exchange = _named(request)
    is_unused = request.query.get("if-unused") == "true"
    topology.delete_exchange(request.user, request.vhost, exchange.name, if_unused=is_unused)
    return NO_CONTENT


RESOURCES = (
    Resource("/api/exchanges", MANAGEMENT, {"GET": all_exchanges}),
    Resource("/api/exchanges/{vhost}", MANAGEMENT, {"GET": all_exchanges}),
    Resource("/api/exchanges/{vhost}/{name}", MANAGEMENT, {"GET": one, "PUT": declare, "DELETE": delete}),
)
