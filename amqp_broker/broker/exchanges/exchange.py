"""Exchanges and bindings: an exchange type stores its bindings and finds those that a message matches.

As much as possible is computed at bind time; matching happens per message, or once per cached route. This module has
the base and the two simplest types; `types.py` lists all types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.broker.counting.counters import PublishCounts

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.admin.policies import Policy
    from amqp_broker.broker.counting.history import History
    from amqp_broker.broker.counting.incident import Incident
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost

Destination: TypeAlias = "Queue | Exchange"
BindingKey: TypeAlias = "tuple[Destination, str, bytes]"


class Binding:
    """A binding of an exchange to a queue or exchange, identified also by its routing key and arguments."""

    __slots__ = ("arguments", "destination", "key", "routing_key", "source")

    def __init__(self, source: Exchange, destination: Destination, routing_key: str, arguments: fields.Table) -> None:
        self.source = source
        self.destination = destination
        self.routing_key = routing_key
        self.arguments = arguments
        self.key: BindingKey = (destination, routing_key, fields.encode_table(dict(sorted(arguments.items()))))

    @property
    def is_durable(self) -> bool:
        """True if both ends are durable."""
        return self.source.is_durable and self.destination.is_durable

    @property
    def is_in_force(self) -> bool:
        """True unless an end is deleted, whose bindings are removed in steps."""
        return not (self.source.is_deleted or self.destination.is_deleted)


class ExchangeDeclaration(NamedTuple):
    """The attributes of an exchange to declare."""

    name: str
    type: str
    arguments: fields.Table
    is_durable: bool = False
    is_auto_delete: bool = False
    is_internal: bool = False


# Types that choose queues by what a message says.
_ROUTING_TYPES: Final = frozenset({"direct", "topic", "headers"})
# The creator of the exchanges that every vhost has.
INTERNAL_CREATOR: Final = "rmq-internal"


@dataclass(eq=False)
class Exchange(ABC):
    """An exchange. `bindings` lead away from it, `incoming` lead to it."""

    type: ClassVar[str]

    vhost: str
    name: str
    is_durable: bool = True
    is_auto_delete: bool = False
    is_internal: bool = False
    arguments: fields.Table = field(default_factory=dict)
    bindings: dict[BindingKey, Binding] = field(default_factory=dict)
    incoming: dict[Binding, None] = field(default_factory=dict)
    is_deleted: bool = False
    policy: Policy | None = None
    operator_policy: Policy | None = None
    # The journal's range of messages, for a durable exchange that keeps messages.
    range_id: int | None = None
    # The user who declared it.
    creator: str = INTERNAL_CREATOR
    # Counts of messages that were published directly to this exchange.
    publishes: PublishCounts = field(default_factory=PublishCounts)
    history: History | None = None
    # The work of matching the current message (`Session.spend`): bindings that were looked at.
    match_work: int = 0
    # A routing key that led to no queue where one was expected, published without mandatory.
    unroutable_key: str | None = None
    # Messages that led to no queue lately. A hint at the closest keys is kept with its key and the topology's version.
    unroutable: Incident | None = None
    closest_keys: tuple[str, int, str] | None = None
    # Set if messages were dropped where none was expected.
    had_no_subscribers: bool = False
    # Set by the first binding.
    was_bound: bool = False

    def __str__(self) -> str:
        return f"exchange '{self.name}' in vhost '{self.vhost}'"

    @property
    def alternate(self) -> str | None:
        """Name of the exchange for messages that match no binding; the argument has priority over the policy."""
        name = self.arguments.get("alternate-exchange")
        if name is None and self.policy is not None:
            name = self.policy.definition.get("alternate-exchange")
        return name

    @property
    def expects_queues(self) -> bool:
        """True if a message that no queue gets is a loss.

        It is none if the exchange is for subscribers, and has none at the moment and no alternate exchange.
        """
        return self.type == "direct" or bool(self.bindings) or self.alternate is not None

    @property
    def is_watched(self) -> bool:
        """True if an administrator wants to know of messages that no queue got.

        A fanout before its first binding has no subscribers yet. The default exchange, whose replies may come too late,
        and one that delays messages have a key if one is lost.
        """
        return self.unroutable_key is not None or self.was_bound or (self.type in _ROUTING_TYPES and bool(self.name))

    @property
    def routes_by_message(self) -> bool:
        """True if the exchange must see each message, because more than the routing keys decides."""
        return False

    def delays(self, headers: fields.Table) -> bool:
        """Return whether the exchange keeps a message with these headers for a time."""
        return False

    def open(self, vhost: VHost) -> None:  # noqa: B027 # most types need nothing of their vhost
        """Start work in a vhost. Raises PreconditionFailed for arguments that are invalid for this type."""

    def close(self) -> None:  # noqa: B027 # most types hold nothing
        """Stop work, because the exchange is deleted."""

    def check(self, binding: Binding) -> None:  # noqa: B027 # most types allow every binding
        """Raise PreconditionFailed for a binding that is invalid for this type."""

    def add(self, binding: Binding) -> None:
        """Add a new binding."""
        self.bindings[binding.key] = binding
        self.was_bound = True
        self._index(binding)

    def binding(self, destination: Destination, routing_key: str, arguments: fields.Table) -> Binding | None:
        """Return the binding with these attributes, or None."""
        return self.bindings.get(Binding(self, destination, routing_key, arguments).key)

    def remove(self, binding: Binding) -> None:
        del self.bindings[binding.key]
        self._unindex(binding)

    def bound(self, binding: Binding) -> None:  # noqa: B027 # most types send nothing to a new binding
        """Act on a new binding that is in force."""

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        """Return the destinations of a message, each once.

        Without a message, return the destinations for these keys and headers, without side effects.
        """
        if len(routing_keys) == 1:
            return self.match(routing_keys[0], headers)
        self.match_work += len(routing_keys)
        return {destination: None for key in routing_keys for destination in self.match(key, headers)}

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        """Return the destinations for one routing key, each once; for types that decide on each key alone."""
        return ()

    @abstractmethod
    def _index(self, binding: Binding) -> None:
        """Add a binding to the data that `match` or `destinations` use."""

    @abstractmethod
    def _unindex(self, binding: Binding) -> None:
        """Remove a binding from that data."""


@dataclass(eq=False)
class DirectExchange(Exchange):
    type: ClassVar[str] = "direct"

    _by_key: dict[str, dict[Destination, int]] = field(default_factory=dict)

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        return self._by_key.get(routing_key, ())

    def _index(self, binding: Binding) -> None:
        _count_up(self._by_key.setdefault(binding.routing_key, {}), binding.destination)

    def _unindex(self, binding: Binding) -> None:
        destinations = self._by_key[binding.routing_key]
        _count_down(destinations, binding.destination)
        if not destinations:
            del self._by_key[binding.routing_key]


@dataclass(eq=False)
class FanoutExchange(Exchange):
    type: ClassVar[str] = "fanout"

    _destinations: dict[Destination, int] = field(default_factory=dict)

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        return self._destinations

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        return self._destinations

    def _index(self, binding: Binding) -> None:
        _count_up(self._destinations, binding.destination)

    def _unindex(self, binding: Binding) -> None:
        _count_down(self._destinations, binding.destination)


def _count_up(counts: dict[Destination, int], destination: Destination) -> None:
    counts[destination] = counts.get(destination, 0) + 1


def _count_down(counts: dict[Destination, int], destination: Destination) -> None:
    counts[destination] -= 1
    if not counts[destination]:
        del counts[destination]
