"""Classes exchange and queue: the methods of AMQP around what broker/topology.py checks and does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from amqp_broker import fields
from amqp_broker.broker import definitions, topology
from amqp_broker.broker.access import User
from amqp_broker.broker.arguments import type_of
from amqp_broker.broker.reply_queue import REPLY_TO, is_reply_name
from amqp_broker.broker.stream_queue import StreamQueue
from amqp_broker.broker.topology import stripped
from amqp_broker.broker.vhost import check_reserved
from amqp_broker.errors import AccessRefused, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from amqp_broker.session.channel import Channel


def exchange_declare(channel: Channel, method: commands.Exchange.Declare) -> None:
    vhost = channel.vhost
    name = stripped(method.exchange)
    if method.passive:
        topology.check_not_default(name)
        _require_any(channel, "exchange", name)
        vhost.exchange(name)
    else:
        exchange = topology.declare_exchange(
            user_of(channel),
            vhost,
            name,
            method.exchange_type,
            is_durable=method.durable,
            is_auto_delete=method.auto_delete,
            is_internal=method.internal,
            arguments=_table(method.arguments),
        )
        channel.session.hold_for(definitions.of_exchange(exchange))
    if not method.nowait:
        channel.session.send(channel.number, commands.Exchange.DeclareOk())


def exchange_delete(channel: Channel, method: commands.Exchange.Delete) -> None:
    name = stripped(method.exchange)
    topology.delete_exchange(user_of(channel), channel.vhost, name, if_unused=method.if_unused)
    if not method.nowait:
        channel.session.send(channel.number, commands.Exchange.DeleteOk())


def exchange_bind(channel: Channel, method: commands.Exchange.Bind) -> None:
    source, destination = stripped(method.source), stripped(method.destination)
    binding = topology.bind(
        user_of(channel),
        channel.vhost,
        source,
        "exchange",
        destination,
        method.routing_key,
        _table(method.arguments),
        channel.session,
    )
    channel.session.hold_for(definitions.of_binding(binding))
    if not method.nowait:
        channel.session.send(channel.number, commands.Exchange.BindOk())


def exchange_unbind(channel: Channel, method: commands.Exchange.Unbind) -> None:
    source, destination = stripped(method.source), stripped(method.destination)
    topology.unbind(
        user_of(channel),
        channel.vhost,
        source,
        "exchange",
        destination,
        method.routing_key,
        _table(method.arguments),
        channel.session,
    )
    if not method.nowait:
        channel.session.send(channel.number, commands.Exchange.UnbindOk())


def queue_declare(channel: Channel, method: commands.Queue.Declare) -> None:
    vhost, session = channel.vhost, channel.session
    name = stripped(method.queue)
    if is_reply_name(name):
        _declare_reply_queue(channel, name, method.nowait)
        return
    if method.passive:
        _require_any(channel, "queue", name)
        queue = vhost.queue(name, session)
        queue.use()
    else:
        if not name:
            if (queue_type := type_of(method.arguments)) != "classic":
                raise PreconditionFailed(f"Cannot declare a server-named queue for type rabbit_{queue_type}_queue")
            name = session.broker.unique_name("amq.gen-")
        else:
            # Unlike an exchange's, also where the queue exists.
            check_reserved("queue", name)
        queue = topology.declare_queue(
            user_of(channel),
            vhost,
            name,
            is_durable=method.durable,
            is_auto_delete=method.auto_delete,
            is_exclusive=method.exclusive,
            connection=session,
            arguments=_table(method.arguments),
        )
        session.hold_for(definitions.of_queue(queue))
        session.broker.advice.on_declare(channel, queue)
    channel.last_queue = queue.name
    if not method.nowait:
        ok = commands.Queue.DeclareOk("", queue.ready_count, len(queue.consumers))
        ok.queue = queue.name  # pamqp's constructor refuses names that RabbitMQ takes
        session.send(channel.number, ok)


def _declare_reply_queue(channel: Channel, name: str, nowait: bool) -> None:
    """However it is declared, that tells whether somebody waits for direct replies there."""
    if name != REPLY_TO and name not in channel.vhost.reply_queues:
        raise NotFound(f"no queue '{name}' in {channel.vhost}")
    channel.last_queue = name
    if not nowait:
        ok = commands.Queue.DeclareOk("", 0, 1)
        ok.queue = name
        channel.session.send(channel.number, ok)


def queue_bind(channel: Channel, method: commands.Queue.Bind) -> None:
    exchange, name, routing_key = _queue_binding(channel, method)
    user, vhost = user_of(channel), channel.vhost
    if is_reply_name(name) and not channel.session.broker.profile.reply_names_are_bindable:
        topology.check_bind(user, vhost, exchange, "queue", name, routing_key)
        raise AccessRefused(f"operation not permitted on queue '{name}' in {vhost}")
    binding = topology.bind(
        user, vhost, exchange, "queue", name, routing_key, _table(method.arguments), channel.session
    )
    channel.session.hold_for(definitions.of_binding(binding))
    if not method.nowait:
        channel.session.send(channel.number, commands.Queue.BindOk())


def queue_unbind(channel: Channel, method: commands.Queue.Unbind) -> None:
    exchange, name, routing_key = _queue_binding(channel, method)
    topology.unbind(
        user_of(channel),
        channel.vhost,
        exchange,
        "queue",
        name,
        routing_key,
        _table(method.arguments),
        channel.session,
    )
    channel.session.send(channel.number, commands.Queue.UnbindOk())


def queue_purge(channel: Channel, method: commands.Queue.Purge) -> None:
    name = queue_name(channel, method.queue)
    count = topology.purge_queue(user_of(channel), channel.vhost, name, channel.session)
    channel.session.hold_for_work()
    if not method.nowait:
        channel.session.send(channel.number, commands.Queue.PurgeOk(count))


def queue_delete(channel: Channel, method: commands.Queue.Delete) -> None:
    name = queue_name(channel, stripped(method.queue))
    queue = topology.queue_to_delete(
        user_of(channel),
        channel.vhost,
        name,
        channel.session,
        if_unused=method.if_unused,
        if_empty=method.if_empty,
    )
    if not method.nowait:
        # Nobody counts what goes with a stream.
        count = queue.ready_count if queue is not None and not isinstance(queue, StreamQueue) else 0
        channel.session.send(channel.number, commands.Queue.DeleteOk(count))
    if queue is not None:
        channel.vhost.remove_queue(queue)


def require(channel: Channel, action: str, kind: str, name: str) -> None:
    """Raise AccessRefused unless the connection's user may."""
    user_of(channel).require(action, channel.vhost.name, kind, name)


def _require_any(channel: Channel, kind: str, name: str) -> None:
    """Declaring passively takes some permission, whichever, in RabbitMQ 4.3; before that, none."""
    if not channel.session.broker.profile.passive_needs_permission:
        return
    for action in ("configure", "write"):
        try:
            require(channel, action, kind, name)
        except AccessRefused:
            continue
        return
    require(channel, "read", kind, name)


def user_of(channel: Channel) -> User:
    user = channel.session.user
    assert user is not None, "a channel opens after a login"
    return user


def queue_name(channel: Channel, name: str) -> str:
    """A queue's name, or that of the queue last declared on the channel where it is empty. Raises NotFound."""
    return name or _last_queue(channel)


def _last_queue(channel: Channel) -> str:
    if not channel.last_queue:
        raise NotFound("no previously declared queue")
    return channel.last_queue


def _queue_binding(channel: Channel, method: commands.Queue.Bind | commands.Queue.Unbind) -> tuple[str, str, str]:
    """Exchange, queue and routing key; with neither queue nor key given, the queue's name is the key, too."""
    name = stripped(method.queue)
    routing_key = method.routing_key
    if not name:
        name = _last_queue(channel)
        routing_key = routing_key or name
    return stripped(method.exchange), name, routing_key


def _table(arguments: object) -> fields.Table:
    assert isinstance(arguments, dict)
    return arguments
