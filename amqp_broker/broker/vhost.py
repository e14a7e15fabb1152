"""A virtual host: its exchanges, queues and bindings, and the verbs that change them.

The verbs raise with RabbitMQ's texts. They ask for no permissions: who calls them has, in the order that RabbitMQ has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from amqp_broker import fields
from amqp_broker.broker import arguments, definitions
from amqp_broker.broker.counters import DeliveryCounts, PublishCounts
from amqp_broker.broker.dead_letter import DeadForms
from amqp_broker.broker.exchange import Binding, Destination, DirectExchange, Exchange
from amqp_broker.broker.exchange_types import EXCHANGE_TYPES, exchange_type
from amqp_broker.broker.limits import MAX_QUEUES, vhost_limits
from amqp_broker.broker.metadata import Metadata, with_queue_type
from amqp_broker.broker.parameters import Parameters
from amqp_broker.broker.policies import OPERATOR_KEYS, POLICY_VALUES, Policies, Policy
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.queue_types import check_shape, queue_class
from amqp_broker.broker.reply_queue import REPLY_PREFIX, REPLY_TO, ReplyQueue
from amqp_broker.broker.trace import TRACE_EXCHANGE, Tap, Trace
from amqp_broker.errors import AccessRefused, InternalError, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.route import Route
    from amqp_broker.message import Message

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

    `route_caches` holds, per user, what publishers found out about routes, `dead_forms` what dying makes of messages
    and where they go then; any change of topology empties them.
    """

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        self.name = name
        # Set while its messages are traced, or tapped.
        self.trace: Trace | None = None
        self.default_exchange = DirectExchange(name, "")
        self.exchanges: dict[str, Exchange] = {"": self.default_exchange}
        for exchange, kind, is_internal in PREDECLARED:
            self.exchanges[exchange] = EXCHANGE_TYPES[kind](name, exchange, is_internal=is_internal)
        self.queues: dict[str, Queue] = {}
        # Where direct replies go, by the names that they are published to.
        self.reply_queues: dict[str, ReplyQueue] = {}
        self.connections: set[Connection] = set()
        self.metadata = Metadata()
        self.limits = vhost_limits()
        self.parameters = Parameters(self)
        self.policies = Policies(POLICY_VALUES)
        self.operator_policies = Policies(OPERATOR_KEYS)
        self.route_caches: dict[str, dict[bytes, Route]] = {}
        self.dead_forms: DeadForms = {}
        # What was published and delivered here, and the routes whose messages are not in that yet.
        self.publishes = PublishCounts()
        self.deliveries = DeliveryCounts()
        self.counted_routes: list[Route] = []

    def __str__(self) -> str:
        return f"vhost '{self.name}'"

    def forget(self) -> None:
        """The vhost is deleted, its queues already: the journal need not know anything of it."""
        journal = self.broker.journal
        for exchange in list(self.exchanges.values()):
            if exchange is not self.default_exchange:
                self._remove_exchange(exchange)
        for kind, policies in (("policy", self.policies), ("operator_policy", self.operator_policies)):
            for policy in policies:
                journal.undefine((kind, self.name, policy.name))
        self.parameters.forget()
        journal.undefine(("vhost", self.name))

    def on_restored(self) -> None:
        """After a restart, when all is there: what a queue gives up only now finds its way."""
        for exchange in self.exchanges.values():
            self._find_policies_of_exchange(exchange)
        queues = list(self.queues.values())
        for queue in queues:
            queue.on_restored()
        for queue in queues:
            queue.catch_up()

    def topology_changed(self) -> None:
        """What publishers know about routes is no longer true."""
        for cache in self.route_caches.values():
            cache.clear()
        self.dead_forms.clear()
        if self.counted_routes:
            self.count_routes()

    # Counting

    def count_routes(self) -> None:
        """Tell what took which route to all that have to know it."""
        routes, self.counted_routes = self.counted_routes, []
        for route in routes:
            count, route.count = route.count, 0
            self.count_publishes(route.exchange, route.queues, count, route.mandatory)

    def count_publishes(self, exchange: Exchange, queues: Sequence[Queue], count: int, mandatory: bool) -> None:
        """A client has published so many messages to an exchange, and each went to these queues."""
        for counts in self.publish_counts(exchange):
            counts.count(count, len(queues), mandatory)
        is_there = self.exchanges.get(exchange.name) is exchange
        for queue in queues:
            queue.count_publishes(exchange if is_there else None, count)

    def publish_counts(self, exchange: Exchange) -> tuple[PublishCounts, ...]:
        """All that has to count what is published to an exchange."""
        return exchange.publishes, self.publishes, self.broker.counters.publishes

    def message_stats(self) -> dict[str, int]:
        """The `message_stats` of a vhost."""
        return {**self.publishes.stats(), **self.deliveries.stats()}

    # Tracing

    def start_trace(self, extended: bool = False) -> None:
        """Copy what is published and delivered to `amq.rabbitmq.trace`; `extended` tells more of it than RabbitMQ."""
        self._trace_with(self._taps, is_published=True, is_extended=extended)

    def stop_trace(self) -> None:
        self._trace_with(self._taps, is_published=False)

    @property
    def is_tracing(self) -> bool:
        """Whether what is published and delivered is copied to `amq.rabbitmq.trace`."""
        return self.trace is not None and self.trace.is_published

    def tap(self, tap: Tap) -> None:
        """Tell all that happens to messages to `tap`, too."""
        self._trace_with((*self._taps, tap), is_published=self.is_tracing, is_extended=self.is_trace_extended)

    def untap(self, tap: Tap) -> None:
        taps = tuple(other for other in self._taps if other != tap)
        self._trace_with(taps, is_published=self.is_tracing, is_extended=self.is_trace_extended)

    @property
    def _taps(self) -> tuple[Tap, ...]:
        return self.trace.taps if self.trace is not None else ()

    @property
    def is_trace_extended(self) -> bool:
        """Whether more is told there than RabbitMQ tells."""
        return self.trace is not None and self.trace.is_extended

    def _trace_with(self, taps: tuple[Tap, ...], *, is_published: bool, is_extended: bool = False) -> None:
        """A traced vhost has no plain route and no plain queue, so that where there is no trace nobody asks for it."""
        is_traced = is_published or bool(taps)
        was_traced = self.trace is not None
        trace = Trace(self, taps, is_published=is_published, is_extended=is_extended) if is_traced else None
        self.trace = trace
        if was_traced is is_traced:
            return
        for queue in self.queues.values():
            queue.apply(queue.settings)
        self.topology_changed()

    # Metadata, policies and limits

    def set_metadata(self, metadata: Metadata) -> None:
        """Note something else about the vhost; queues that are there stay what they are. Raises InvalidParameter."""
        metadata.check()
        if metadata == self.metadata:
            return
        self.metadata = metadata
        self.broker.journal.define(*definitions.of_vhost(self))
        self.broker.events.vhost_updated(self)

    def set_policy(self, policy: Policy) -> None:
        """Set a policy, instead of the one of that name; it is in force at once. Raises InvalidParameter."""
        if self.policies.put(policy):
            self.broker.journal.define(*definitions.of_policy("policy", self, policy))
            self._policies_changed(policy)
            self.broker.events.emit_action("policy.set", vhost=self.name, **policy.as_event())
            self.broker.advice.on_policy(self, policy)

    def clear_policy(self, name: str) -> None:
        """Raises DoesNotExist."""
        self.policies.remove(name)
        self.broker.journal.undefine(("policy", self.name, name))
        self._policies_changed(None)
        self.broker.events.emit_action("policy.cleared", vhost=self.name, name=name)

    def set_operator_policy(self, policy: Policy) -> None:
        """As `set_policy`, for what the users of the vhost may not lift. Raises InvalidParameter."""
        if self.operator_policies.put(policy):
            self.broker.journal.define(*definitions.of_policy("operator_policy", self, policy))
            told = policy.as_event()
            self.broker.events.parameter_set(self.name, "operator_policy", told.pop("name"), told)
            self._policies_changed(policy)
            self.broker.events.emit_action("policy.set", vhost=self.name, **policy.as_event())

    def clear_operator_policy(self, name: str) -> None:
        """Raises DoesNotExist."""
        self.operator_policies.remove(name)
        self.broker.journal.undefine(("operator_policy", self.name, name))
        self.broker.events.parameter_cleared(self.name, "operator_policy", name)
        self._policies_changed(None)
        self.broker.events.emit_action("operator.policy.cleared", vhost=self.name, name=name)

    def _policies_changed(self, policy: Policy | None) -> None:
        """Look again at what applies to what, since a policy was set or (None) cleared.

        Queues come last: they may drop messages, which then find their way.
        """
        for exchange in self.exchanges.values():
            self._find_policies_of_exchange(exchange)
        self.topology_changed()
        for queue in list(self.queues.values()):
            if self._find_policies_of_queue(queue):
                self.broker.events.queue_policy_changed(queue, policy)

    def _find_policies_of_exchange(self, exchange: Exchange) -> None:
        exchange.policy = self.policies.for_exchange(exchange)
        exchange.operator_policy = self.operator_policies.for_exchange(exchange)

    def _find_policies_of_queue(self, queue: Queue) -> bool:
        return queue.follow(self.policies.for_queue(queue), self.operator_policies.for_queue(queue))

    def set_limit(self, name: str, value: object) -> None:
        """Set `max-connections` or `max-queues`; negative is no limit. Raises InvalidParameter."""
        self.limits.set(name, value)
        self.broker.journal.define(*definitions.of_vhost(self))
        self.broker.events.parameter_set(self.name, "vhost-limits", "limits", dict(self.limits.given))
        self.broker.events.emit_action("vhost.limits.set", name="limits", **self.limits.given)

    def set_limits(self, values: Mapping[str, object]) -> None:
        """Limit what `values` says, and nothing else. Raises InvalidParameter, and changes nothing then."""
        self.limits.replace(values)
        self.broker.journal.define(*definitions.of_vhost(self))
        if not values:
            self.broker.events.parameter_cleared(self.name, "vhost-limits", "limits")
            self.broker.events.emit_action("vhost.limits.cleared", name="limits")
            return
        self.broker.events.parameter_set(self.name, "vhost-limits", "limits", dict(self.limits.given))
        self.broker.events.emit_action("vhost.limits.set", name="limits", **self.limits.given)

    def clear_limit(self, name: str) -> None:
        self.limits.clear(name)
        self.broker.journal.define(*definitions.of_vhost(self))
        self.broker.events.parameter_cleared(self.name, "vhost-limits", "limits")
        self.broker.events.emit_action("vhost.limits.cleared", name="limits")

    # Exchanges

    def exchange(self, name: str) -> Exchange:
        """The exchange of that name. Raises NotFound."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise NotFound(f"no exchange '{name}' in {self}")
        return exchange

    def exchange_type(self, name: str) -> type[Exchange]:
        """The type of exchange of that name. Raises PreconditionFailed."""
        return exchange_type(self.broker.profile, name)

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

        Raises PreconditionFailed (unknown type, bad argument, inequivalent) and AccessRefused (reserved name).
        """
        exchange_class = self.exchange_type(kind)
        exchange = self.exchanges.get(name)
        if exchange is None:
            check_reserved("exchange", name)
            alternate = arguments_.get("alternate-exchange")
            if "alternate-exchange" in arguments_ and not isinstance(alternate, str):
                raise PreconditionFailed(
                    f"invalid type '{fields.type_name(alternate)}' for arg 'alternate-exchange' "
                    f"in exchange '{name}' in {self}"
                )
            self.broker.check_exchange_limit(f"exchange '{name}' in {self}")
            exchange = self.add_exchange(
                name,
                exchange_class,
                is_durable=is_durable,
                is_auto_delete=is_auto_delete,
                is_internal=is_internal,
                arguments_=arguments_,
            )
            self.broker.events.exchange_created(exchange)
            return exchange
        resource = str(exchange)
        arguments.require_equal(resource, "type", exchange.type, kind)
        arguments.require_equal(resource, "durable", exchange.is_durable, is_durable)
        arguments.require_equal(resource, "auto_delete", exchange.is_auto_delete, is_auto_delete)
        arguments.require_equal(resource, "internal", exchange.is_internal, is_internal)
        arguments.require_equivalent(resource, ["alternate-exchange"], exchange.arguments, arguments_)
        return exchange

    def add_exchange(
        self,
        name: str,
        exchange_class: type[Exchange],
        *,
        is_durable: bool,
        is_auto_delete: bool,
        is_internal: bool,
        arguments_: fields.Table,
        range_id: int | None = None,
    ) -> Exchange:
        """Put a new exchange into the vhost. Raises PreconditionFailed for an argument that its type cannot have."""
        exchange = exchange_class(
            self.name,
            name,
            is_durable=is_durable,
            is_auto_delete=is_auto_delete,
            is_internal=is_internal,
            arguments=arguments_,
            range_id=range_id,
        )
        exchange.open(self)
        self.exchanges[name] = exchange
        self._find_policies_of_exchange(exchange)
        self.topology_changed()
        if is_durable:
            self.broker.journal.define(*definitions.of_exchange(exchange))
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
        exchange.close()
        if exchange.is_durable:
            self.broker.journal.undefine(("exchange", self.name, exchange.name))
        for queue in self.queues.values():
            queue.published_from.pop(exchange, None)
        self.broker.events.exchange_deleted(exchange)
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
        arguments_ = with_queue_type(
            arguments_,
            self.metadata.default_queue_type or self.broker.config.default_queue_type,
            is_durable=is_durable,
            is_exclusive=owner is not None,
            is_auto_delete=is_auto_delete,
        )
        queue = self.queues.get(name)
        if queue is None:
            if self.limits.is_reached(MAX_QUEUES, len(self.queues)):
                raise PreconditionFailed(
                    f"cannot declare queue '{name}': queue limit in {self} ({self.limits[MAX_QUEUES]}) is reached"
                )
            resource = f"queue '{name}' in {self}"
            arguments.check_queue(arguments_, self.broker.profile, resource)
            self._check_deprecated(is_durable, owner, arguments_)
            check_shape(resource, arguments_, is_durable, is_auto_delete, owner)
            queue = self.add_queue(
                name, is_durable=is_durable, is_auto_delete=is_auto_delete, owner=owner, arguments_=arguments_
            )
            self.broker.counters.queues_declared += 1
            self.broker.counters.queues_created += 1
            self.broker.events.queue_created(queue)
            return queue
        resource = str(queue)
        queue.check_owner(connection)
        arguments.require_equal(resource, "durable", queue.is_durable, is_durable)
        arguments.require_equal(resource, "auto_delete", queue.is_auto_delete, is_auto_delete)
        if queue.owner is not owner:
            raise queue.locked()
        arguments.require_equivalent(resource, arguments.COMPARED[queue.type], queue.arguments, arguments_)
        queue.use()
        self.broker.counters.queues_declared += 1
        return queue

    def add_queue(
        self,
        name: str,
        *,
        is_durable: bool,
        is_auto_delete: bool,
        owner: Connection | None,
        arguments_: fields.Table,
        range_id: int | None = None,
    ) -> Queue:
        """Put a new queue into the vhost; `range_id` is where the journal keeps messages of one that is restored."""
        queue = self.queues[name] = queue_class(arguments_)(
            self, name, is_durable=is_durable, is_auto_delete=is_auto_delete, owner=owner, arguments=arguments_
        )
        journal = self.broker.journal
        if is_durable and journal.is_durable:
            queue.keep(journal.new_ranges(queue.range_count) if range_id is None else range_id)
            journal.define(*definitions.of_queue(queue))
        if owner is not None:
            owner.exclusive_queues.add(queue)
        self._find_policies_of_queue(queue)
        self.topology_changed()
        return queue

    def _check_deprecated(self, is_durable: bool, owner: Connection | None, arguments_: fields.Table) -> None:
        """Raise InternalError, as RabbitMQ 4.3 does, for what it does not permit any more."""
        profile = self.broker.profile
        if "x-queue-master-locator" in arguments_ and not profile.has_master_locator:
            raise deprecated("queue_master_locator")
        if not is_durable and owner is None and not profile.has_transient_queues:
            raise deprecated("transient_nonexcl_queues")

    def remove_queue(self, queue: Queue) -> None:
        """Take a queue out of the vhost, with its messages, bindings and consumers."""
        queue.is_deleted = True
        queue.stop_timers()
        del self.queues[queue.name]
        if queue.is_durable:
            self.broker.journal.undefine(("queue", self.name, queue.name))
        self._remove_incoming(queue)
        self.topology_changed()
        queue.purge()
        queue.drop_windows()
        if queue.owner is not None:
            queue.owner.exclusive_queues.discard(queue)
        for consumer in list(queue.consumers):
            queue.unsubscribe(consumer)
            consumer.on_queue_deleted()
        self.broker.counters.queues_deleted += 1
        self.broker.events.queue_deleted(queue)

    def add_reply_queue(self) -> ReplyQueue:
        """A name for direct replies, and what it stands for."""
        name = self.broker.unique_name(REPLY_PREFIX)
        queue = self.reply_queues[name] = ReplyQueue(self, name)
        return queue

    def remove_reply_queue(self, queue: ReplyQueue) -> None:
        del self.reply_queues[queue.name]
        self.topology_changed()

    # Bindings

    def bind(self, source: Exchange, destination: Destination, routing_key: str, arguments_: fields.Table) -> Binding:
        """Bind, if it is not bound so already. Raises PreconditionFailed for a binding the exchange cannot have."""
        binding = Binding(source, destination, routing_key, arguments_)
        source.check(binding)
        if binding.key not in source.bindings:
            source.add(binding)
            destination.incoming[binding] = None
            self.topology_changed()
            if binding.is_durable:
                self.broker.journal.define(*definitions.of_binding(binding))
            self.broker.events.binding_created(binding)
            source.bound(binding)
        return binding

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
        if binding.is_durable:
            self.broker.journal.undefine(definitions.of_binding(binding)[0])
        self.broker.events.binding_deleted(binding)

    # Routing

    def route(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> tuple[list[Queue], bool]:
        """The queues that a message goes to, each once, and whether more than its routing keys had a say in that.

        An exchange without a match hands over to its alternate exchange; cycles of either kind are walked once.
        A message is routed once: an exchange may remember it, or keep it to route it later. Without a message, the
        answer is where one with these keys and headers would go, if that is all that decides it.
        """
        queues: dict[Queue, None] = {}
        by_message = False
        seen = {exchange}
        pending = [exchange]
        while pending:
            exchange = pending.pop()
            if exchange is self.default_exchange:
                queues.update((queue, None) for key in routing_keys if (queue := self._queue_named(key)) is not None)
                continue
            by_message = by_message or exchange.routes_by_message
            destinations = exchange.destinations(routing_keys, headers, message)
            for destination in destinations:
                if isinstance(destination, Queue):
                    queues[destination] = None
                elif destination not in seen:
                    seen.add(destination)
                    pending.append(destination)
            # The default exchange has no bindings of its own, so as an alternate it matches nothing.
            if not destinations and exchange.alternate:
                alternate = self.exchanges.get(exchange.alternate)
                if alternate is not None and alternate not in seen:
                    seen.add(alternate)
                    pending.append(alternate)
        return list(queues), by_message

    def _queue_named(self, name: str) -> Queue | None:
        """What the default exchange finds under a routing key."""
        queue = self.queues.get(name)
        if queue is not None or not name.startswith(REPLY_PREFIX):
            return queue
        reply_queue = self.reply_queues.get(name)
        if reply_queue is None and not self.broker.profile.returns_late_replies:
            # Lost, but not unroutable: the client that asked has gone, and its node would know, not ours.
            return ReplyQueue(self, REPLY_TO)
        return reply_queue


def deprecated(feature: str) -> InternalError:
    return InternalError(
        f"Feature `{feature}` is deprecated. By default, this feature is not permitted anymore.", method_id=0
    )


def check_reserved(kind: str, name: str) -> None:
    """Raise AccessRefused for a new name that only the broker may give."""
    if name.startswith("amq."):
        raise AccessRefused(f"{kind} name '{name}' contains reserved prefix 'amq.*'")
