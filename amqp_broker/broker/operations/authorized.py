"""Changes of a vhost's topology by a user: permissions are checked first, in RabbitMQ's order.

AMQP and the HTTP API use these functions. Exclusive queues of `connection` may be changed; None is a request without a
connection. Source: rabbit_channel.erl (handle_method).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import AccessRefused, PreconditionFailed
from amqp_broker.broker.queues.ownership import check_owner
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.vhost import check_reserved

if TYPE_CHECKING:
    from amqp_broker.broker.admin.access import User
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.exchanges.exchange import Binding, Exchange, ExchangeDeclaration
    from amqp_broker.broker.queues.queue import QueueDeclaration
    from amqp_broker.broker.vhost import VHost

# Exchanges


def declare_exchange(user: User, vhost: VHost, declaration: ExchangeDeclaration) -> Exchange:
    """Declare an exchange (exchange.declare without passive). Raises PreconditionFailed and AccessRefused."""
    name = declaration.name
    # RabbitMQ checks the type before any permission.
    vhost.exchange_type(declaration.type)
    check_not_default(name)
    user.require("configure", vhost.name, "exchange", name)
    if name not in vhost.exchanges:
        check_reserved("exchange", name)
        if isinstance(alternate := declaration.arguments.get("alternate-exchange"), str):
            user.require("read", vhost.name, "exchange", name)
            user.require("write", vhost.name, "exchange", alternate)
    return vhost.declare_exchange(declaration)


def exchange_to_delete(user: User, vhost: VHost, name: str, *, if_unused: bool) -> Exchange | None:
    """Return the exchange to delete (exchange.delete), or None if it does not exist. Raises ChannelErrors."""
    check_not_default(name)
    if name.startswith("amq."):
        raise AccessRefused(f"deletion of system exchange '{name}' in {vhost} not allowed")
    user.require("configure", vhost.name, "exchange", name)
    exchange = vhost.exchanges.get(name)
    if exchange is not None:
        vhost.check_deletable(exchange, if_unused)
    return exchange


# Queues


def declare_queue(user: User, vhost: VHost, declaration: QueueDeclaration, connection: Connection | None) -> Queue:
    """Declare a queue with a name (queue.declare without passive). Raises ChannelErrors."""
    name = declaration.name
    user.require("configure", vhost.name, "queue", name)
    if name not in vhost.queues and "x-dead-letter-exchange" in declaration.arguments:
        dead_letter_exchange = declaration.arguments["x-dead-letter-exchange"]
        if not isinstance(dead_letter_exchange, str):
            raise PreconditionFailed(
                f"invalid type '{fields.type_name(dead_letter_exchange)}' for arg 'x-dead-letter-exchange' "
                f"in queue '{name}' in {vhost}"
            )
        user.require("read", vhost.name, "queue", name)
        user.require("write", vhost.name, "exchange", dead_letter_exchange)
    return vhost.declare_queue(declaration, connection)


def queue_to_delete(
    user: User, vhost: VHost, name: str, connection: Connection | None, *, if_unused: bool, if_empty: bool
) -> Queue | None:
    """Return the queue to delete (queue.delete), or None if it does not exist. Raises ChannelErrors."""
    user.require("configure", vhost.name, "queue", name)
    queue = vhost.queues.get(name)
    if queue is not None:
        check_owner(queue, connection)
        queue.check_deletable(if_unused=if_unused, if_empty=if_empty)
    return queue


def purge_queue(user: User, vhost: VHost, name: str, connection: Connection | None) -> int:
    """Purge a queue (queue.purge); return the number of messages. Raises ChannelErrors."""
    user.require("read", vhost.name, "queue", name)
    return vhost.queue(name, connection).purge()


# Bindings


class NamedBinding(NamedTuple):
    """A binding by the names of its ends; `kind` is that of the destination: "queue" or "exchange"."""

    source: str
    kind: str
    destination: str
    routing_key: str
    arguments: fields.Table


def bind(user: User, vhost: VHost, named: NamedBinding, connection: Connection | None) -> Binding:
    """Bind a queue or an exchange. Raises ChannelErrors."""
    check_bind(user, vhost, named)
    # RabbitMQ looks for the exchange first, and checks the owner of the queue last.
    exchange, name = vhost.exchange(named.source), named.destination
    target = vhost.queue(name, connection) if named.kind == "queue" else vhost.exchange(name)
    return vhost.bind(exchange, target, named.routing_key, named.arguments)


def unbind(user: User, vhost: VHost, named: NamedBinding, connection: Connection | None) -> None:
    """Unbind a queue or an exchange, if it is bound. Raises ChannelErrors."""
    check_bind(user, vhost, named)
    exchange, name = vhost.exchanges.get(named.source), named.destination
    target = vhost.queues.get(name) if named.kind == "queue" else vhost.exchanges.get(name)
    if exchange is None or target is None:
        return
    binding = exchange.binding(target, named.routing_key, named.arguments)
    if binding is not None:
        if isinstance(target, Queue):
            check_owner(target, connection)
        vhost.unbind(binding)


def check_bind(user: User, vhost: VHost, named: NamedBinding) -> None:
    """Raise AccessRefused unless the user may bind and unbind these."""
    check_not_default(named.source)
    if named.kind == "exchange":
        check_not_default(named.destination)
    user.require("write", vhost.name, named.kind, named.destination)
    user.require("read", vhost.name, "exchange", named.source)
    exchange = vhost.exchanges.get(named.source)
    if exchange is not None and exchange.type == "topic":
        user.require_topic("read", vhost, named.source, named.routing_key)


# Names


def check_not_default(name: str) -> None:
    """Raise AccessRefused for the default exchange, which cannot be changed."""
    if not name:
        raise AccessRefused("operation not permitted on the default exchange")


def stripped(name: str) -> str:
    """Return a name without line ends, as RabbitMQ does for names from configuration files."""
    return name.replace("\r", "").replace("\n", "")
