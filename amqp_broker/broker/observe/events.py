"""The event exchange: a message for each object that is created, changed or removed in a broker.

The exchange is in the default vhost and has the events of all vhosts. An event is a message without a body. Its headers
are those of RabbitMQ's plugin, with the names of connections and channels in place of Erlang's process ids.
Source: RabbitMQ, "Event Exchange Plugin", and what version 3.10.8 sends.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.exchanges.exchange import INTERNAL_CREATOR, Binding, Exchange
from amqp_broker.broker.exchanges.topic import TopicExchange
from amqp_broker.broker.scheduling.portions import Steps

if TYPE_CHECKING:
    from amqp_broker.broker.admin.access import Permission, User
    from amqp_broker.broker.admin.policies import Policy
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.clients.peer import Peer, Tls
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.settings.profiles import Profile

EVENT_EXCHANGE: Final = "amq.rabbitmq.event"
LOG_EXCHANGE: Final = "amq.rabbitmq.log"
# The user of changes without a request: expiry, and deletion together with another object.
INTERNAL_USER: Final = INTERNAL_CREATOR
_PROTOCOL: Final = "{0,9,1}"
# Sent as arrays of Erlang's terms, which is how RabbitMQ holds them.
_AMQP_TABLES: Final = ("arguments", "client_properties")
_CERTIFICATE: Final = ("peer_cert_validity", "peer_cert_subject", "peer_cert_issuer")
_TLS: Final = ("ssl_hash", "ssl_cipher", "ssl_key_exchange", "ssl_protocol")


def internal_exchanges(vhost: str, profile: Profile) -> dict[str, Exchange]:
    """Return the exchanges that only the default vhost has: that of events and, in 4.3, that of the log."""
    names = (EVENT_EXCHANGE, LOG_EXCHANGE) if profile.release >= (4, 3) else (EVENT_EXCHANGE,)
    return {name: TopicExchange(vhost, name, is_internal=True) for name in names}


class Events:
    """Publishes events. `actor` is the name of the user whose request is being served."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.actor = INTERNAL_USER
        # Called with the name and the headers of every event, also if no queue is bound.
        self.listeners: tuple[Callable[[str, dict[str, Any]], None], ...] = ()

    def listen(self, listener: Callable[[str, dict[str, Any]], None]) -> None:
        self.listeners = (*self.listeners, listener)

    def unlisten(self, listener: Callable[[str, dict[str, Any]], None]) -> None:
        self.listeners = tuple(other for other in self.listeners if other != listener)

    def emit(self, name: str, /, **headers: Any) -> None:
        """Publish an event. `name` is its routing key, for example `policy.set` or `user.password.changed`."""
        for listener in self.listeners:
            listener(name, headers)
        vhost = self.broker.vhosts.get(self.broker.settings.default_vhost)
        exchange = vhost.exchanges.get(EVENT_EXCHANGE) if vhost is not None else None
        if vhost is None or exchange is None or not exchange.bindings:
            return
        now = self.broker.now
        table = {key: _header(key, value) for key, value in headers.items()}
        table["timestamp_in_ms"] = fields.Long(now)
        properties = Properties(headers=table, delivery_mode=2, timestamp=now // 1000)
        message = Message.build(Address(EVENT_EXCHANGE, name), properties, b"")
        for queue in vhost.route(exchange, (name,), table, message)[0]:
            queue.offer(message)

    def emit_action(self, name: str, /, **headers: Any) -> None:
        """Publish an event with the name of the user who caused it."""
        self.emit(name, user_who_performed_action=self.actor, **headers)

    def attributed(self, steps: Steps[None]) -> Steps[None]:
        """Do steps as the user who acts at the first one."""
        actor = self.actor
        while True:
            acting, self.actor = self.actor, actor
            try:
                next(steps)
            except StopIteration:
                return
            finally:
                self.actor = acting
            yield

    def _certificate(self) -> tuple[str, ...]:
        """Return the names of the headers about a client's certificate."""
        has_number = self.broker.settings.profile.release >= (4, 3)
        return (*_CERTIFICATE, "peer_cert_serial_number") if has_number else _CERTIFICATE

    # Topology

    def queue_created(self, queue: Queue) -> None:
        self.emit_action(
            "queue.created",
            exclusive=queue.owner is not None,
            owner_pid=queue.owner.name if queue.owner is not None else "",
            arguments=queue.arguments,
            auto_delete=queue.is_auto_delete,
            durable=queue.is_durable,
            name=queue.name,
            vhost=queue.vhost.name,
        )

    def queue_deleted(self, queue: Queue) -> None:
        self.emit_action("queue.deleted", name=queue.name, vhost=queue.vhost.name)

    def queue_policy_changed(self, queue: Queue, policy: Policy | None) -> None:
        """Publish that another policy applies to a queue, after `policy` was set or (None) a policy was cleared."""
        headers = policy.as_event() if policy is not None else {}
        name = "queue.policy.updated" if policy is not None else "queue.policy.cleared"
        headers.update(type=f"rabbit_{queue.type}_queue", name=queue.name, vhost=queue.vhost.name)
        self.emit_action(name, **headers)

    def parameter_set(self, vhost: str, component: str, name: str, value: Any) -> None:
        self.emit_action("parameter.set", vhost=vhost, component=component, name=name, value=value)

    def parameter_cleared(self, vhost: str, component: str, name: str) -> None:
        self.emit_action("parameter.cleared", vhost=vhost, component=component, name=name)

    def exchange_created(self, exchange: Exchange) -> None:
        self.emit_action(
            "exchange.created",
            policy="",
            arguments=exchange.arguments,
            internal=exchange.is_internal,
            auto_delete=exchange.is_auto_delete,
            durable=exchange.is_durable,
            type=exchange.type,
            name=exchange.name,
            vhost=exchange.vhost,
        )

    def exchange_deleted(self, exchange: Exchange) -> None:
        self.emit_action("exchange.deleted", name=exchange.name, vhost=exchange.vhost)

    def binding_created(self, binding: Binding) -> None:
        self._binding("binding.created", binding)

    def binding_deleted(self, binding: Binding) -> None:
        self._binding("binding.deleted", binding)

    def _binding(self, name: str, binding: Binding) -> None:
        self.emit_action(
            name,
            vhost=binding.source.vhost,
            arguments=binding.arguments,
            routing_key=binding.routing_key,
            destination_kind="exchange" if isinstance(binding.destination, Exchange) else "queue",
            destination_name=binding.destination.name,
            source_kind="exchange",
            source_name=binding.source.name,
        )

    def vhost_created(self, vhost: VHost) -> None:
        for exchange in vhost.exchanges.values():
            self.exchange_created(exchange)
        self.emit_action("vhost.created", tracing=vhost.tracing.is_on, name=vhost.name)

    def vhost_updated(self, vhost: VHost) -> None:
        self.emit_action(
            "vhost.updated",
            tracing=vhost.tracing.is_on,
            default_queue_type=vhost.metadata.default_queue_type or "undefined",
            tags=list(vhost.metadata.tags),
            description=vhost.metadata.description,
            name=vhost.name,
        )

    # Users

    def user_created(self, user: User) -> None:
        self.emit_action("user.created", name=user.name)

    def permission_created(self, user: User, vhost: str, permission: Permission) -> None:
        self.emit_action(
            "permission.created",
            read=permission.read,
            write=permission.write,
            configure=permission.configure,
            vhost=vhost,
            user=user.name,
        )

    def authenticated(self, connection: Connection, name: str, mechanism: str, error: str = "") -> None:
        """Publish that a login has succeeded, or failed with an error; `name` is "" if the peer has sent none."""
        headers = {"error": error} if error else {}
        self.emit(
            "user.authentication.failure" if error else "user.authentication.success",
            **headers,
            **_tls_of_login(connection.tls, self._certificate()),
            auth_mechanism=mechanism,
            protocol=_PROTOCOL,
            peer_port=connection.peer_port,
            peer_host=_erlang_address(connection.peer_host),
            connection_name=connection.name,
            host=_erlang_address(connection.host),
            **({"name": name} if name or not error else {}),
            connection_type="network",
        )

    # Connections

    def connection_created(self, connection: Connection, **negotiated: Any) -> None:
        """Publish a new connection; `negotiated` has auth_mechanism, channel_max, frame_max, timeout (heartbeat)."""
        assert connection.user is not None
        assert connection.vhost is not None
        self.emit(
            "connection.created",
            user_who_performed_action=connection.user.name,
            node=self.broker.node,
            connected_at=connection.connected_at_ms,
            client_properties=connection.client_properties,
            **negotiated,
            vhost=connection.vhost.name,
            user=connection.user.name,
            protocol=_PROTOCOL,
            **_tls_of_connection(connection.tls, self._certificate()),
            peer_host=_erlang_address(connection.peer_host),
            host=_erlang_address(connection.host),
            peer_port=connection.peer_port,
            port=connection.port,
            name=connection.name,
            pid=connection.name,
            type="network",
            **_provided_name(connection),
        )

    def connection_closed(self, connection: Connection) -> None:
        self.emit(
            "connection.closed",
            client_properties=connection.client_properties,
            node=self.broker.node,
            pid=connection.name,
            name=connection.name,
            **_provided_name(connection),
        )

    def channel_created(self, connection: Connection, number: int) -> None:
        assert connection.user is not None
        assert connection.vhost is not None
        name = channel_name(connection, number)
        self.emit(
            "channel.created",
            user_who_performed_action=connection.user.name,
            vhost=connection.vhost.name,
            user=connection.user.name,
            number=number,
            connection=connection.name,
            name=name,
            pid=name,
        )

    def channel_closed(self, connection: Connection, number: int) -> None:
        assert connection.user is not None
        self.emit(
            "channel.closed", user_who_performed_action=connection.user.name, pid=channel_name(connection, number)
        )

    def consumer_created(self, consumer: Consumer) -> None:
        self.emit_action(
            "consumer.created",
            arguments=consumer.arguments,
            prefetch_count=consumer.channel_prefetch,
            queue=consumer.queue.name,
            vhost=consumer.queue.vhost.name,
            channel=channel_name(consumer.connection, consumer.number),
            ack_required=not consumer.no_ack,
            exclusive=consumer.is_exclusive,
            consumer_tag=consumer.tag,
        )

    def consumer_deleted(self, consumer: Consumer) -> None:
        self.emit_action(
            "consumer.deleted",
            queue=consumer.queue.name,
            vhost=consumer.queue.vhost.name,
            channel=channel_name(consumer.connection, consumer.number),
            consumer_tag=consumer.tag,
        )


def channel_name(connection: Peer, number: int) -> str:
    """Return RabbitMQ's name of a channel."""
    return f"{connection.name} ({number})"


def _provided_name(connection: Connection) -> dict[str, str]:
    name = connection.client_properties.get("connection_name")
    return {"user_provided_name": name} if isinstance(name, str) else {}


def _tls_of_login(tls: Tls | None, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the TLS headers of a login: half of the cipher suite, and the peer's certificate, if any."""
    if tls is None:
        return {"ssl": False}
    certificate = {name: getattr(tls, name) for name in names if tls.peer_cert_subject}
    return {**certificate, "ssl_cipher": tls.ssl_cipher, "ssl_protocol": tls.ssl_protocol, "ssl": True}


def _tls_of_connection(tls: Tls | None, names: tuple[str, ...]) -> dict[str, Any]:
    return {"ssl": False} if tls is None else {"ssl": True, **{name: getattr(tls, name) for name in (*_TLS, *names)}}


def _header(key: str, value: Any) -> Any:
    """Return a value with the plugin's types: all integers are long, field tables a list of terms."""
    if key in _AMQP_TABLES:
        return _terms(value)
    if isinstance(value, dict):
        return {name: _header(name, item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_header("", item) for item in value]
    return fields.Long(value) if fields.is_integer(value) else value


def _terms(table: fields.Table) -> list[str]:
    return [f"{{{fields.erlang_term(key)},{fields.typed_term(value)}}}" for key, value in table.items()]


def _erlang_address(host: str) -> str:
    """Return an internet address as Erlang's tuple: `{127,0,0,1}`."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    # The text is unsuitable: since Python 3.13, that of `::ffff:127.0.0.1` has groups of two kinds.
    groups = struct.unpack("!4B" if address.version == 4 else "!8H", address.packed)
    return f"{{{','.join(map(str, groups))}}}"
