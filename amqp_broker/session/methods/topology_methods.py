"""The methods of classes exchange and queue; `broker/operations/authorized.py` checks and does what they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import base, commands

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import AccessRefused, InternalError, NotFound, PreconditionFailed
from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin.access import User
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.broker.operations import authorized
from amqp_broker.broker.operations.authorized import NamedBinding, stripped
from amqp_broker.broker.queues.arguments import type_of
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.broker.queues.reply import REPLY_PREFIX, REPLY_TO, is_reply_name, was_reply_name
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.broker.vhost import check_reserved

if TYPE_CHECKING:
    from amqp_broker.session.channel.channel import Channel


def exchange_declare(channel: Channel, method: commands.Exchange.Declare) -> None:
    vhost = channel.vhost
    name = stripped(method.exchange)
    if method.passive:
        authorized.check_not_default(name)
        _require_any(channel, "exchange", name)
        vhost.exchange(name)
    else:
        declaration = ExchangeDeclaration(
            name,
            method.exchange_type,
            _table(method.arguments),
            is_durable=method.durable,
            is_auto_delete=method.auto_delete,
            is_internal=method.internal,
        )
        exchange = authorized.declare_exchange(user_of(channel), vhost, declaration)
        channel.session.gate.hold_for_definition(journal_entries.of_exchange(exchange))
    if not method.nowait:
        channel.session.send(channel.number, commands.Exchange.DeclareOk())


def exchange_delete(channel: Channel, method: commands.Exchange.Delete) -> Steps[None]:
    name, vhost = stripped(method.exchange), channel.vhost
    exchange = authorized.exchange_to_delete(user_of(channel), vhost, name, if_unused=method.if_unused)
    if exchange is not None:
        yield from vhost.deletions.of_exchange(exchange)
    if not method.nowait:
        _reply_if_open(channel, commands.Exchange.DeleteOk())


def exchange_bind(channel: Channel, method: commands.Exchange.Bind) -> None:
    _bind(channel, _exchange_binding(method))
    if not method.nowait:
        channel.session.send(channel.number, commands.Exchange.BindOk())


def exchange_unbind(channel: Channel, method: commands.Exchange.Unbind) -> None:
    authorized.unbind(user_of(channel), channel.vhost, _exchange_binding(method), channel.session)
    if not method.nowait:
        channel.session.send(channel.number, commands.Exchange.UnbindOk())


def _exchange_binding(method: commands.Exchange.Bind | commands.Exchange.Unbind) -> NamedBinding:
    source, destination = stripped(method.source), stripped(method.destination)
    return NamedBinding(source, "exchange", destination, method.routing_key, _table(method.arguments))


def _bind(channel: Channel, named: NamedBinding) -> None:
    """Bind, and hold the reply until the binding is safe."""
    binding = authorized.bind(user_of(channel), channel.vhost, named, channel.session)
    channel.session.gate.hold_for_definition(journal_entries.of_binding(binding))


def queue_declare(channel: Channel, method: commands.Queue.Declare) -> None:
    vhost, session = channel.vhost, channel.session
    name = stripped(method.queue)
    if is_reply_name(name):
        _declare_reply_queue(channel, name, method.nowait)
        return
    if method.passive:
        _require_any(channel, "queue", name)
        queue = vhost.queue(name, session)
        queue.use_by_declaring()
    else:
        if name:
            # Unlike for an exchange, this is checked even if the queue exists.
            check_reserved("queue", name)
        declaration = QueueDeclaration(
            name,
            _table(method.arguments),
            is_durable=method.durable,
            is_auto_delete=method.auto_delete,
            owner=session if method.exclusive else None,
        )
        if not name:
            if (queue_type := type_of(vhost.with_type(declaration).arguments)) != "classic":
                raise PreconditionFailed(f"Cannot declare a server-named queue for type rabbit_{queue_type}_queue")
            # Remote backends are asked about this name, so it is kept until they have answered.
            channel.drawn_name = channel.drawn_name or session.broker.unique_name("amq.gen-")
            declaration = declaration._replace(name=channel.drawn_name)
        queue = authorized.declare_queue(user_of(channel), vhost, declaration, session)
        channel.drawn_name = ""
        session.gate.hold_for_definition(journal_entries.of_queue(queue))
        session.broker.advice.on_declare(channel, queue)
    channel.last_queue = queue.name
    if not method.nowait:
        ok = commands.Queue.DeclareOk("", queue.ready_count, queue.consumer_count)
        ok.queue = queue.name  # pamqp's constructor refuses names that RabbitMQ takes
        session.send(channel.number, ok)


def _declare_reply_queue(channel: Channel, name: str, nowait: bool) -> None:
    """Answer whether direct replies can be published to a name, which is all that declaring it does."""
    if name != REPLY_TO and name not in channel.vhost.reply_queues:
        if channel.session.broker.profile.crashes_channels and not was_reply_name(name):
            raise InternalError("", method_id=0)
        raise NotFound(f"no queue '{name}' in {channel.vhost}")
    channel.last_queue = name
    if not nowait:
        ok = commands.Queue.DeclareOk("", 0, 1)
        ok.queue = name
        channel.session.send(channel.number, ok)


def queue_bind(channel: Channel, method: commands.Queue.Bind) -> None:
    _bind(channel, _queue_binding(channel, method))
    if not method.nowait:
        channel.session.send(channel.number, commands.Queue.BindOk())


def queue_unbind(channel: Channel, method: commands.Queue.Unbind) -> None:
    authorized.unbind(user_of(channel), channel.vhost, _queue_binding(channel, method), channel.session)
    channel.session.send(channel.number, commands.Queue.UnbindOk())


def queue_purge(channel: Channel, method: commands.Queue.Purge) -> None:
    name = queue_name(channel, method.queue)
    count = authorized.purge_queue(user_of(channel), channel.vhost, name, channel.session)
    channel.session.gate.hold_for_messages()
    if not method.nowait:
        channel.session.send(channel.number, commands.Queue.PurgeOk(count))


def queue_delete(channel: Channel, method: commands.Queue.Delete) -> Steps[None]:
    name = queue_name(channel, stripped(method.queue))
    queue = authorized.queue_to_delete(
        user_of(channel),
        channel.vhost,
        name,
        channel.session,
        if_unused=method.if_unused,
        if_empty=method.if_empty,
    )
    # RabbitMQ does not count the messages of a deleted stream.
    count = queue.ready_count if queue is not None and not isinstance(queue, StreamQueue) else 0

    def reply() -> None:
        if not method.nowait:
            _reply_if_open(channel, commands.Queue.DeleteOk(count))

    if queue is None:
        reply()
    else:
        yield from channel.vhost.deletions.of_queue(queue, before_cancels=reply)


def _reply_if_open(channel: Channel, method: base.Frame) -> None:
    """Answer a method that was done in steps, unless its channel has been closed meanwhile."""
    if channel.session.channels.get(channel.number) is channel:
        channel.session.send(channel.number, method)


def require(channel: Channel, action: str, kind: str, name: str) -> None:
    """Raise AccessRefused unless the connection's user has the permission."""
    user_of(channel).require(action, channel.vhost.name, kind, name)


def _require_any(channel: Channel, kind: str, name: str) -> None:
    """Raise AccessRefused unless the user has any permission: RabbitMQ 4.3 asks that of a passive declare.

    Without any, the text is that of the permission to configure.
    """
    if not channel.session.broker.profile.passive_needs_permission:
        return
    for action in ("read", "write"):
        try:
            require(channel, action, kind, name)
        except AccessRefused:
            continue
        return
    require(channel, "configure", kind, name)


def user_of(channel: Channel) -> User:
    user = channel.session.user
    assert user is not None, "a channel opens after a login"
    return user


def queue_name(channel: Channel, name: str) -> str:
    """Return `name`, or if it is empty, the queue last declared on the channel. Raise NotFound."""
    return name or _last_queue(channel)


def _last_queue(channel: Channel) -> str:
    if not channel.last_queue:
        raise NotFound("no previously declared queue")
    return channel.last_queue


def _queue_binding(channel: Channel, method: commands.Queue.Bind | commands.Queue.Unbind) -> NamedBinding:
    """Return the binding that a method names. Without a queue and a key, the queue's name is also the key."""
    name = stripped(method.queue)
    if name.startswith(REPLY_PREFIX) and not channel.session.broker.profile.reply_names_are_bindable:
        raise AccessRefused("cannot bind or unbind to a volatile (direct reply-to) queue")
    routing_key = method.routing_key
    if not name:
        name = _last_queue(channel)
        routing_key = routing_key or name
    return NamedBinding(stripped(method.exchange), "queue", name, routing_key, _table(method.arguments))


def _table(arguments: object) -> fields.Table:
    assert isinstance(arguments, dict)
    return arguments
