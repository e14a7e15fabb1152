"""Exchanges: lists, one, declaration and deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from amqp_broker.broker.exchanges.deduplication import DeduplicationExchange
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.broker.operations import authorized
from amqp_broker.broker.operations.authorized import stripped
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.api.consumers import channel_details
from amqp_broker.management.api.statistics import Statistics, with_details
from amqp_broker.management.documents.values import json_of_table
from amqp_broker.management.http.answers import CREATED, NO_CONTENT, Answer, not_found
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed
from amqp_broker.management.http.names import check_name
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Flag, Switch, Table, Text

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange

endpoints = Endpoints()


class NewExchange(Struct):
    """The properties of an exchange."""

    type: Text = "direct"
    durable: Flag = False
    auto_delete: Flag = False
    internal: Flag = False
    arguments: Table = {}


class DeletionQuery(Struct):
    """A condition for deleting an exchange."""

    if_unused: Switch = field(default=False, name="if-unused")


def basic_row(exchange: Exchange) -> dict[str, Any]:
    """Return the row of an exchange without statistics."""
    row: dict[str, Any] = {
        "arguments": json_of_table(exchange.arguments),
        "auto_delete": exchange.is_auto_delete,
        "durable": exchange.is_durable,
        "internal": exchange.is_internal,
        "name": exchange.name,
        "type": exchange.type,
        "user_who_performed_action": exchange.creator,
        "vhost": exchange.vhost,
    }
    if exchange.policy is not None:
        row["policy"] = exchange.policy.name
    if isinstance(exchange, DelayedExchange):
        row["messages_delayed"] = exchange.messages_delayed
    if isinstance(exchange, DeduplicationExchange):
        row["cache_info"] = {"entries": exchange.entry_count, "size": exchange.size}
    return row


def exchange_row(exchange: Exchange, statistics: Statistics) -> dict[str, Any]:
    """Return the row of an exchange with statistics."""
    row = basic_row(exchange)
    if stats := statistics.of(exchange, "message_stats", exchange.publishes.exchange_stats()):
        row["message_stats"] = stats
    return row


@endpoints.on("GET /api/exchanges", "GET /api/exchanges/{vhost}", tag=MANAGEMENT, query=ListQuery)
def all_exchanges(request: Request) -> Any:
    """List exchanges, of one vhost or of all."""
    exchanges = (exchange for vhost in request.vhosts for exchange in vhost.exchanges.values())
    vhosts = request.broker.vhosts

    def is_there(exchange: Exchange) -> bool:
        vhost = vhosts.get(exchange.vhost)
        return vhost is not None and vhost.exchanges.get(exchange.name) is exchange

    if not request.wants_stats:
        return listed(request, exchanges, basic_row, is_there=is_there)
    statistics = Statistics(request)
    return listed(request, exchanges, lambda exchange: exchange_row(exchange, statistics), is_there=is_there)


def _exchange(request: Request) -> Exchange:
    """Return the exchange in the path. Raise Refusal."""
    exchange = request.vhost.exchanges.get(request.exchange_name())
    if exchange is None:
        raise not_found()
    return exchange


@endpoints.on("GET /api/exchanges/{vhost}/{name}", tag=MANAGEMENT)
def one(request: Request) -> Steps[dict[str, Any]]:
    """Return an exchange with its counters by channel and queue."""
    exchange, node = _exchange(request), request.broker.node
    if not request.wants_stats:
        return basic_row(exchange)
    outgoing = []
    for queue in list(request.vhost.queues.values()):
        if not queue.is_deleted and (count := queue.statistics.published_from.get(exchange)):
            outgoing.append(
                {
                    "queue": {"name": queue.name, "vhost": exchange.vhost},
                    "stats": with_details({"publish": count}),
                }
            )
        yield
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
        "outgoing": outgoing,
    }


@endpoints.on("GET /_broker/unroutable/{vhost}/{name}", tag=MANAGEMENT)
def unroutable(request: Request) -> dict[str, Any]:
    """Return how many messages of an exchange had no queue, returned and dropped ones."""
    exchange = _exchange(request)
    return {"message_stats": Statistics(request).of(exchange, "message_stats", exchange.publishes.unroutable_stats())}


@endpoints.on("PUT /api/exchanges/{vhost}/{name}", tag=MANAGEMENT, body=NewExchange)
def declare(request: Request) -> Any:
    """Declare an exchange."""
    vhost, name = request.vhost, stripped(request.exchange_name())
    given = request.read(NewExchange)
    check_name("exchange", name)
    is_new = name not in vhost.exchanges
    declaration = ExchangeDeclaration(
        name, given.type, given.arguments, given.durable, given.auto_delete, given.internal
    )
    authorized.declare_exchange(request.user, vhost, declaration)
    return CREATED if is_new else NO_CONTENT


@endpoints.on("DELETE /api/exchanges/{vhost}/{name}", tag=MANAGEMENT, query=DeletionQuery)
def delete(request: Request) -> Steps[Answer]:
    """Delete an exchange; with `if-unused=true` only one without bindings."""
    name, vhost = _exchange(request).name, request.vhost
    is_unused = request.read_query(DeletionQuery).if_unused
    exchange = authorized.exchange_to_delete(request.user, vhost, name, if_unused=is_unused)
    if exchange is not None:
        yield from vhost.deletions.of_exchange(exchange)
    return NO_CONTENT
