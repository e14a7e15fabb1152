"""A virtual host: its exchanges, queues and bindings, and the verbs that change them.

The verbs raise with RabbitMQ's texts. They ask for no permissions: who calls them has, in the order that RabbitMQ has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from amqp_broker import fields
from amqp_broker.broker import arguments
from amqp_broker.broker.exchange import EXCHANGE_TYPES, Binding, Destination, DirectExchange, Exchange
from amqp_broker.broker.queue import Queue
from amqp_broker.errors import AccessRefused, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.connection import Connection

PREDECLARED: Final = (
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.topic", "topic", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
)


class VHost:
    """A namespace of exchanges and queues.

    `route_caches` holds, per user, what publishers found out about routes; any change of topology empties them.
    """

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.default_exchange = DirectExchange(name, "")
        self.exchanges: dict[str, Exchange] = {"": self.default_exchange}
        for exchange, kind, is_internal in PREDECLARED:
            self.exchanges[exchange] = EXCHANGE_TYPES[kind](name, exchange, is_internal=is_internal)
        self.queues: dict[str, Queue] = {}
        self.connections: set[Connection] = set()
        self.connection_max: int | None = None
        self.queue_max: int | None = None
        self.exchange_max: int | None = None
        self.route_caches: dict[str, dict[bytes, Any]] = {}

    def __str__(self) -> str:
        return f"vhost '{self.name}'"

    def topology_changed(self) -> None:
        """What publishers know about routes is no longer true."""
        for cache in self.route_caches.values():
            cache.clear()

    # Exchanges

    def exchange(self, name: str) -> Exchange:
        """The exchange of that name. Raises NotFound."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise NotFound(f"no exchange '{name}' in {self}")
        return exchange

    def declare_exchange(
        self,
        name: str,
        kind: str,
        *,
        is_durable: bool,
        is_auto_delete: bool,
        is_internal: bool,
        arguments_: fields.Table,
    ) -> Exchange:
        """Create an exchange, or check that the existing one is equivalent.

        Raises PreconditionFailed (unknown type, inequivalent) and AccessRefused (reserved name).
        """
        exchange = self.exchanges.get(name)
        if exchange is None:
            check_reserved("exchange", name)
            alternate = arguments_.get("alternate-exchange")
            if "alternate-exchange" in arguments_ and not isinstance(alternate, str):
                raise PreconditionFailed(
                    f"invalid type '{fields.type_name(alternate)}' for arg 'alternate-exchange' "
                    f"in exchange '{name}' in {self}"
                )
            if self.exchange_max is not None and len(self.exchanges) >= self.exchange_max:
                raise PreconditionFailed(
                    f"cannot declare exchange '{name}' in {self}: exchange limit of {self.exchange_max} is reached"
                )
            exchange = self.exchanges[name] = EXCHANGE_TYPES[kind](
                self.name,
                name,
                is_durable=is_durable,
                is_auto_delete=is_auto_delete,
                is_internal=is_internal,
                arguments=arguments_,
            )
            self.topology_changed()
            return exchange
        resource = str(exchange)
        arguments.require_equal(resource, "type", exchange.type, kind)
        arguments.require_equal(resource, "durable", exchange.is_durable, is_durable)
        arguments.require_equal(resource, "auto_delete", exchange.is_auto_delete, is_auto_delete)
        arguments.require_equal(resource, "internal", exchange.is_internal, is_internal)
        arguments.require_equivalent(resource, ["alternate-exchange"], exchange.arguments, arguments_)
        return exchange

    def delete_exchange(self, name: str, if_unused: bool) -> None:
        """Delete an exchange, if there is one. Raises PreconditionFailed if it is in use and must not be."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            return
        if if_unused and exchange.bindings:
            raise PreconditionFailed(f"{exchange} in use")
        self._remove_exchange(exchange)
        self.topology_changed()

    def _remove_exchange(self, exchange: Exchange) -> None:
        del self.exchanges[exchange.name]
        for binding in list(exchange.bindings.values()):
            self._remove_binding(binding)
        self._remove_incoming(exchange)

    # Queues

    def queue(self, name: str, connection: Connection | None = None) -> Queue:
        """The queue of that name. Raises NotFound, and ResourceLocked if it is exclusive to another connection."""
        queue = self.queues.get(name)
        if queue is None:
            raise NotFound(f"no queue '{name}' in {self}")
        queue.check_owner(connection)
        return queue

    def declare_queue(
        self,
        name: str,
        *,
        is_durable: bool,
        is_auto_delete: bool,
        owner: Connection | None,
        connection: Connection | None,
        arguments_: fields.Table,
    ) -> Queue:
        """Create a queue, or check that the existing one is equivalent.

        `owner` is the connection that an exclusive queue lives with. Raises PreconditionFailed (inequivalent, bad
        argument, limit reached) and ResourceLocked (exclusive to another connection).
        """
        # An exclusive queue dies with its connection, so it is never durable.
        is_durable = is_durable and owner is None
        queue = self.queues.get(name)
        if queue is None:
            if self.queue_max is not None and len(self.queues) >= self.queue_max:
                raise PreconditionFailed(
                    f"cannot declare queue '{name}': queue limit in {self} ({self.queue_max}) is reached"
                )
            arguments.check(arguments.QUEUE_ARGUMENTS, arguments_, f"queue '{name}' in {self}")
            arguments.check_type(arguments.NOT_CLASSIC_ARGUMENTS, arguments_, f"queue '{name}' in {self}")
            queue = self.queues[name] = Queue(
                self,
                name,
                is_durable=is_durable,
                is_auto_delete=is_auto_delete,
                owner=owner,
                arguments=arguments_,
            )
            if owner is not None:
                owner.exclusive_queues.add(queue)
            self.topology_changed()
            return queue
        resource = str(queue)
        queue.check_owner(connection)
        arguments.require_equal(resource, "durable", queue.is_durable, is_durable)
        arguments.require_equal(resource, "auto_delete", queue.is_auto_delete, is_auto_delete)
        if queue.owner is not owner:
            raise queue.locked()
        arguments.require_equivalent(resource, list(arguments.QUEUE_ARGUMENTS), queue.arguments, arguments_)
        return queue

    def check_deletable(self, queue: Queue, *, if_unused: bool, if_empty: bool) -> None:
        """Raise PreconditionFailed if a queue must not be deleted."""
        if if_empty and queue.ready_count:
            raise PreconditionFailed(f"{queue} not empty")
        if if_unused and queue.consumers:
            raise PreconditionFailed(f"{queue} in use")

    def remove_queue(self, queue: Queue) -> None:
        """Take a queue out of the vhost, with its messages, bindings and consumers."""
        queue.is_deleted = True
        del self.queues[queue.name]
        self._remove_incoming(queue)
        self.topology_changed()
        queue.purge()
        if queue.owner is not None:
            queue.owner.exclusive_queues.discard(queue)
        for consumer in list(queue.consumers):
            queue.unsubscribe(consumer)
            consumer.on_queue_deleted()

    # Bindings

    def bind(self, source: Exchange, destination: Destination, routing_key: str, arguments_: fields.Table) -> None:
        """Bind, if it is not bound so already. Raises PreconditionFailed for a binding the exchange cannot have."""
        binding = Binding(source, destination, routing_key, arguments_)
        source.check(binding)
        if binding.key not in source.bindings:
            source.add(binding)
            destination.incoming[binding] = None
            self.topology_changed()

    def unbind(self, binding: Binding) -> None:
        """Remove a binding; an auto-delete exchange goes with its last."""
        self._unlink(binding)
        self.topology_changed()

    def _remove_incoming(self, destination: Destination) -> None:
        for binding in list(destination.incoming):
            self._unlink(binding)

    def _unlink(self, binding: Binding) -> None:
        self._remove_binding(binding)
        source = binding.source
        if source.is_auto_delete and not source.bindings:
            self._remove_exchange(source)

    def _remove_binding(self, binding: Binding) -> None:
        binding.source.remove(binding)
        del binding.destination.incoming[binding]

    # Routing

    def route(self, exchange: Exchange, routing_keys: Iterable[str], headers: fields.Table) -> tuple[list[Queue], bool]:
        """The queues that a message goes to, each once, and whether its headers had a say in that.

        An exchange without a match hands over to its alternate exchange; cycles of either kind are walked once.
        """
        keys = list(routing_keys)
        queues: dict[Queue, None] = {}
        used_headers = False
        seen = {exchange}
        pending = [exchange]
        while pending:
            exchange = pending.pop()
            if exchange is self.default_exchange:
                queues.update((self.queues[key], None) for key in keys if key in self.queues)
                continue
            used_headers = used_headers or exchange.routes_by_headers
            has_match = False
            for key in keys:
                for destination in exchange.match(key, headers):
                    has_match = True
                    if isinstance(destination, Queue):
                        queues[destination] = None
                    elif destination not in seen:
                        seen.add(destination)
                        pending.append(destination)
            # The default exchange has no bindings of its own, so as an alternate it matches nothing.
            if not has_match and exchange.alternate:
                alternate = self.exchanges.get(exchange.alternate)
                if alternate is not None and alternate not in seen:
                    seen.add(alternate)
                    pending.append(alternate)
        return list(queues), used_headers


def check_reserved(kind: str, name: str) -> None:
    """Raise AccessRefused for a new name that only the broker may give."""
    if name.startswith("amq."):
        raise AccessRefused(f"{kind} name '{name}' contains reserved prefix 'amq.*'")
