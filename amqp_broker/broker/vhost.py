"""A virtual host: its exchanges, queues and bindings, and the methods that change them.

Errors have RabbitMQ's texts. Permissions are not checked here: callers check them first, in RabbitMQ's order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import AccessRefused, NotFound, PreconditionFailed
from amqp_broker.broker import journal_entries, vhost_policies
from amqp_broker.broker.admin.limits import MAX_QUEUES
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.exchanges.exchange import Binding, Destination, DirectExchange, Exchange, ExchangeDeclaration
from amqp_broker.broker.exchanges.types import EXCHANGE_TYPES, exchange_type
from amqp_broker.broker.observe.message_trace import TRACE_EXCHANGE, MessageTrace
from amqp_broker.broker.observe.tracing import Tracing
from amqp_broker.broker.queues import arguments
from amqp_broker.broker.queues.ownership import check_owner
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.queues.reply import REPLY_PREFIX, ReplyQueue
from amqp_broker.broker.queues.types import (
    check_deprecated,
    check_equivalent,
    check_shape,
    queue_class,
    with_default_type,
)
from amqp_broker.broker.routing.dead_letter import DeadForms
from amqp_broker.broker.routing.destinations import find_queues, finding_queues
from amqp_broker.broker.routing.route_cache import RouteCache
from amqp_broker.broker.routing.vhost_counts import VHostCounts
from amqp_broker.broker.runtime_parameters import Parameters
from amqp_broker.broker.scheduling.portions import KEYS_AT_ONCE, Steps, popping
from amqp_broker.broker.vhost_deletions import VHostDeletions
from amqp_broker.broker.vhost_limits import VHostLimits
from amqp_broker.broker.vhost_policies import VHostOperatorPolicies, VHostPolicies

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.queues.refused_publishers import Publisher

PREDECLARED: Final = (
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.topic", "topic", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    (TRACE_EXCHANGE, "topic", True),
)


class VHost:
    """A namespace of exchanges and queues.

    `route_cache` has the cached routes of each user, `dead_forms` the forms and targets of dead letters; every change
    of topology empties them.
    """

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        self.name = name
        # Set while it is emptied, deleted or restored in steps: no client is let in.
        self.is_down = False
        # Set while it has only a part of a snapshot.
        self.is_partial = False
        # Set while messages are traced or observed.
        self.trace: MessageTrace | None = None
        # Grows whenever messages may take other ways.
        self.topology_version = 0
        self.tracing = Tracing(self)
        self.default_exchange = DirectExchange(name, "")
        self.exchanges: dict[str, Exchange] = {"": self.default_exchange}
        for exchange, kind, is_internal in PREDECLARED:
            self.exchanges[exchange] = EXCHANGE_TYPES[kind](name, exchange, is_internal=is_internal)
        self.queues: dict[str, Queue] = {}
        # The queues of direct replies, by the names that replies are published to.
        self.reply_queues: dict[str, ReplyQueue] = {}
        self.connections: set[Connection] = set()
        self.metadata = Metadata()
        self.limits = VHostLimits(name, broker.events, self.remember)
        self.parameters = Parameters(self)
        self.policies = VHostPolicies(self)
        self.operator_policies = VHostOperatorPolicies(self)
        self.deletions = VHostDeletions(self)
        self.route_cache = RouteCache()
        self.dead_forms = DeadForms()
        # Octets of dead letters that came to queues while these were giving up messages, and are still there.
        self.dead_letter_bytes = 0
        self.counts: VHostCounts = VHostCounts(self.exchanges, broker.counters)

    def __str__(self) -> str:
        return f"vhost '{self.name}'"

    def remember(self) -> None:
        """Have the journal keep the limits and the metadata."""
        self.broker.journal.define(
            *journal_entries.of_vhost(self.name, self.limits, self.metadata, is_partial=self.is_partial)
        )

    @contextmanager
    def down(self) -> Iterator[None]:
        """Let no connections in meanwhile; the caller closes those that are open (`Broker.closing`)."""
        was_down, self.is_down = self.is_down, True
        try:
            yield
        finally:
            self.is_down = was_down

    def removing_queues(self) -> Steps[None]:
        """Remove all queues in steps, also those that are declared meanwhile."""
        while self.queues:
            for queue in popping(deque(self.queues.values())):
                # An auto-delete queue may have gone with its last consumer.
                if not queue.is_deleted:
                    yield from self.deletions.of_queue(queue)
                yield
        yield from self.deletions.finishing()

    def removing_exchanges(self) -> Steps[None]:
        """Remove all exchanges but the default one in steps."""
        while len(self.exchanges) > 1:
            for exchange in popping(deque(self.exchanges.values())):
                # An auto-delete exchange may have gone with another.
                if exchange is not self.default_exchange and not exchange.is_deleted:
                    yield from self.deletions.of_exchange(exchange)
                yield
        yield from self.deletions.finishing()

    def forget(self) -> None:
        """Remove the vhost from the journal, because it is deleted; its queues and exchanges already are."""
        journal = self.broker.journal
        self.policies.forget()
        self.operator_policies.forget()
        self.parameters.forget()
        journal.undefine(("vhost", self.name))

    def on_restored(self) -> None:
        """Resume work after a restart, when all objects are restored and dead letters can be routed."""
        self.deletions.on_restored()
        for exchange in self.exchanges.values():
            vhost_policies.apply_to_exchange(self, exchange)
        queues = list(self.queues.values())
        for queue in queues:
            queue.on_restored()
        for queue in queues:
            queue.catch_up()

    def topology_changed(self) -> None:
        """Discard cached routes and dead forms, which may no longer hold."""
        self.topology_version += 1
        self.route_cache.clear()
        self.dead_forms.clear()
        if self.counts.pending_routes:
            self.counts.collect()

    # Metadata

    @property
    def default_queue_type(self) -> str:
        """The type of queues that are declared without one: the vhost's default, or the node's."""
        return self.metadata.default_queue_type or self.broker.settings.default_queue_type

    def noted(self, metadata: Metadata) -> Metadata:
        """Return metadata with the default queue type of the node if they have none and the version notes it."""
        if metadata.default_queue_type is None and self.broker.profile.notes_queue_type:
            return replace(metadata, default_queue_type=self.broker.settings.default_queue_type)
        return metadata

    def set_metadata(self, metadata: Metadata) -> None:
        """Replace the metadata; existing queues keep their types. Raises InvalidParameter."""
        metadata.check()
        metadata = self.noted(metadata)
        if metadata == self.metadata:
            return
        self.metadata = metadata
        self.remember()
        self.broker.events.vhost_updated(self)

    # Exchanges

    def exchange(self, name: str) -> Exchange:
        """Return the exchange of that name. Raises NotFound."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise NotFound(f"no exchange '{name}' in {self}")
        return exchange

    def exchange_type(self, name: str) -> type[Exchange]:
        """Return the type of exchange of that name. Raises PreconditionFailed."""
        return exchange_type(self.broker.profile, name)

    def declare_exchange(self, declaration: ExchangeDeclaration) -> Exchange:
        """Create an exchange, or check that the existing one is equivalent.

        Raises PreconditionFailed (unknown type, bad argument, inequivalent) and AccessRefused (reserved name).
        """
        self.exchange_type(declaration.type)
        exchange = self.exchanges.get(declaration.name)
        if exchange is not None:
            _check_equivalent(exchange, declaration)
            return exchange
        check_reserved("exchange", declaration.name)
        resource = f"exchange '{declaration.name}' in {self}"
        alternate = declaration.arguments.get("alternate-exchange", "")
        if not isinstance(alternate, str):
            raise PreconditionFailed(
                f"invalid type '{fields.type_name(alternate)}' for arg 'alternate-exchange' in {resource}"
            )
        self.broker.check_exchange_limit(resource)
        exchange = self.add_exchange(declaration)
        self.broker.events.exchange_created(exchange)
        return exchange

    def add_exchange(
        self, declaration: ExchangeDeclaration, range_id: int | None = None, creator: str | None = None
    ) -> Exchange:
        """Add a new exchange to the vhost; a restored one has its creator and `range_id`, its range of the journal.

        Raises PreconditionFailed for arguments that are invalid for its type.
        """
        self.deletions.finish("exchange", declaration.name)
        exchange = EXCHANGE_TYPES[declaration.type](
            self.name,
            declaration.name,
            is_durable=declaration.is_durable,
            is_auto_delete=declaration.is_auto_delete,
            is_internal=declaration.is_internal,
            arguments=declaration.arguments,
            range_id=range_id,
            creator=self.broker.events.actor if creator is None else creator,
        )
        exchange.open(self)
        self.exchanges[exchange.name] = exchange
        vhost_policies.apply_to_exchange(self, exchange)
        self.topology_changed()
        if exchange.is_durable:
            self.broker.journal.define(*journal_entries.of_exchange(exchange))
        return exchange

    def delete_exchange(self, name: str, if_unused: bool) -> None:
        """Delete an exchange, if it exists. Raises PreconditionFailed if it is in use and `if_unused`."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            return
        self.check_deletable(exchange, if_unused)
        self.broker.do_in_portions(self.deletions.of_exchange(exchange))

    def check_deletable(self, exchange: Exchange, if_unused: bool) -> None:
        """Raise PreconditionFailed if the exchange is in use and `if_unused`."""
        if if_unused and any(binding.is_in_force for binding in exchange.bindings.values()):
            raise PreconditionFailed(f"{exchange} in use")

    # Queues

    def queue(self, name: str, connection: Connection | None = None) -> Queue:
        """Return the queue of that name. Raises NotFound, and ResourceLocked if it belongs to another connection."""
        queue = self.queues.get(name)
        if queue is None:
            raise NotFound(f"no queue '{name}' in {self}")
        check_owner(queue, connection)
        return queue

    def declare_queue(self, declaration: QueueDeclaration, connection: Connection | None = None) -> Queue:
        """Create a queue, or check that the existing one is equivalent.

        `connection` declares it, and may be the owner. Raises PreconditionFailed (inequivalent, bad argument, limit
        reached), ResourceLocked (exclusive to another connection) and InternalError (deprecated).
        """
        # An exclusive queue is deleted with its connection, so it is never durable.
        declaration = declaration._replace(is_durable=declaration.is_durable and declaration.owner is None)
        declaration = self.with_type(declaration)
        queue = self.queues.get(declaration.name)
        if queue is not None:
            check_owner(queue, connection)
            check_equivalent(queue, declaration)
            queue.use_by_declaring()
            self.broker.counters.queues_declared += 1
            return queue
        self._check_new_queue(declaration)
        queue = self.add_queue(declaration)
        self.broker.counters.queues_declared += 1
        self.broker.counters.queues_created += 1
        self.broker.events.queue_created(queue)
        return queue

    def with_type(self, declaration: QueueDeclaration) -> QueueDeclaration:
        """Return a declaration without a type with the default type of the vhost or the node."""
        adds_classic = self.broker.profile.adds_queue_type
        return with_default_type(declaration, self.default_queue_type, adds_classic=adds_classic)

    def _check_new_queue(self, declaration: QueueDeclaration) -> None:
        """Raise the errors of `declare_queue` for a queue that cannot be created, in RabbitMQ's order."""
        resource, profile = f"queue '{declaration.name}' in {self}", self.broker.profile
        if profile.release >= (4, 0):
            arguments.check_queue(declaration.arguments, profile, resource)
            check_deprecated(declaration, profile)
        if self.limits.is_reached(MAX_QUEUES, len(self.queues)):
            limit = self.limits[MAX_QUEUES]
            raise PreconditionFailed(
                f"cannot declare queue '{declaration.name}': queue limit in {self} ({limit}) is reached"
            )
        if profile.release < (4, 0):
            arguments.check_queue(declaration.arguments, profile, resource)
            check_deprecated(declaration, profile)
        check_shape(declaration, profile, resource)

    def add_queue(
        self, declaration: QueueDeclaration, range_id: int | None = None, creator: str | None = None
    ) -> Queue:
        """Add a new queue to the vhost; a restored one has its creator and `range_id`, its range of the journal."""
        self.deletions.finish("queue", declaration.name)
        queue = self.queues[declaration.name] = queue_class(declaration.arguments)(self, declaration)
        queue.creator = self.broker.events.actor if creator is None else creator
        journal = self.broker.journal
        if queue.is_durable and journal.is_durable:
            queue.keep(range_id)
            if not journal.is_restoring:
                journal.define(*journal_entries.of_queue(queue))
        if queue.owner is not None:
            queue.owner.exclusive_queues.add(queue)
        vhost_policies.apply_to_queue(self, queue)
        self.topology_changed()
        return queue

    def remove_queue(self, queue: Queue) -> None:
        """Remove a queue with its messages, bindings and consumers. It is out of reach at once."""
        self.broker.do_in_portions(self.deletions.of_queue(queue))

    def add_reply_queue(self) -> ReplyQueue:
        """Create a queue of direct replies under a new name."""
        name = self.broker.unique_name(REPLY_PREFIX)
        queue = self.reply_queues[name] = ReplyQueue(self, name, self.remove_reply_queue)
        return queue

    def remove_reply_queue(self, queue: ReplyQueue) -> None:
        del self.reply_queues[queue.name]
        self.topology_changed()

    # Bindings

    def bind(self, source: Exchange, destination: Destination, routing_key: str, arguments_: fields.Table) -> Binding:
        """Add a binding unless it exists. Raises PreconditionFailed if it is invalid for the type of exchange."""
        binding = Binding(source, destination, routing_key, arguments_)
        source.check(binding)
        if binding.key not in source.bindings:
            if source.had_no_subscribers and not source.bindings:
                source.had_no_subscribers = False
                self.broker.advice.on_first_binding(self, source)
                self.counts.collect()
                self.broker.incidents.on_first_binding(source)
            source.add(binding)
            destination.incoming[binding] = None
            self.topology_changed()
            if binding.is_durable:
                self.broker.journal.define(*journal_entries.of_binding(binding))
            self.broker.events.binding_created(binding)
            source.bound(binding)
        return binding

    def unbind(self, binding: Binding) -> None:
        """Remove a binding; an auto-delete exchange is deleted with its last one."""
        source = binding.source
        self.unlink(binding)
        if source.is_auto_delete and not source.bindings:
            self.broker.do_in_portions(self.deletions.of_exchange(source))
        self.topology_changed()

    def unlink(self, binding: Binding) -> None:
        """Remove a binding, whatever becomes of its source."""
        binding.source.remove(binding)
        del binding.destination.incoming[binding]
        if binding.is_durable:
            self.broker.journal.undefine(journal_entries.key_of_binding(binding))
        self.broker.events.binding_deleted(binding)

    # Routing

    def route(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> tuple[list[Queue], bool]:
        """Return the queues for a message, and whether more than its routing keys decided (see `find_queues`)."""
        return find_queues(self, exchange, routing_keys, headers, message)

    def routing(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: fields.Table, message: Message
    ) -> Steps[list[Queue]]:
        """Return the queues for a message, in steps if it has many keys (see `find_queues`). Count the work."""
        if len(routing_keys) > KEYS_AT_ONCE:
            return (yield from finding_queues(self, exchange, routing_keys, headers, message))
        broker = self.broker
        broker.routing_work = 0
        queues, _ = self.route(exchange, routing_keys, headers, message)
        broker.work += broker.routing_work
        return queues

    def publishers_to(self, queue: Queue) -> Iterator[Publisher]:
        """Yield the channels whose last publish had a route to a queue."""
        for connection in self.connections:
            for channel in connection.channels.values():
                if channel.route is not None and queue in channel.route.queues:
                    yield channel.publisher


def _check_equivalent(exchange: Exchange, declaration: ExchangeDeclaration) -> None:
    """Raise PreconditionFailed for a declaration that differs from the exchange, in RabbitMQ's order."""
    resource = str(exchange)
    # Types are atoms of Erlang there, which are quoted if they have a hyphen.
    types = [f"'{name}'" if "-" in name else name for name in (exchange.type, declaration.type)]
    arguments.require_equal(resource, "type", *types)
    arguments.require_equal(resource, "durable", exchange.is_durable, declaration.is_durable)
    arguments.require_equal(resource, "auto_delete", exchange.is_auto_delete, declaration.is_auto_delete)
    arguments.require_equal(resource, "internal", exchange.is_internal, declaration.is_internal)
    arguments.require_equivalent(resource, ["alternate-exchange"], exchange.arguments, declaration.arguments)


def check_reserved(kind: str, name: str) -> None:
    """Raise AccessRefused for a new object with a reserved name."""
    if name.startswith("amq."):
        raise AccessRefused(f"{kind} name '{name}' contains reserved prefix 'amq.*'")
