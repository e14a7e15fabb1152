"""Exchanges and bindings: an exchange type is where its bindings are kept and which of them a message matches.

Everything that can be done at bind time is done there; matching happens per message, or once per cached route. Here are
the four types of the specification; `exchange_types.py` has the list of all there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from amqp_broker import fields
from amqp_broker.broker.counters import PublishCounts
from amqp_broker.broker.topic import TopicTrie
from amqp_broker.errors import PreconditionFailed

if TYPE_CHECKING:
    from amqp_broker.broker.policies import Policy
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.message import Message

Destination: TypeAlias = "Queue | Exchange"
BindingKey: TypeAlias = "tuple[Destination, str, bytes]"


class Binding:
    """One way from an exchange to a queue or exchange; routing key and arguments are part of its identity."""

    __slots__ = ("arguments", "destination", "key", "routing_key", "source")

    def __init__(self, source: Exchange, destination: Destination, routing_key: str, arguments: fields.Table) -> None:
        self.source = source
        self.destination = destination
        self.routing_key = routing_key
        self.arguments = arguments
        self.key: BindingKey = (destination, routing_key, fields.encode_table(dict(sorted(arguments.items()))))

    @property
    def is_durable(self) -> bool:
        """A binding outlives the process if both its ends do."""
        return self.source.is_durable and self.destination.is_durable


@dataclass(eq=False)
class Exchange:
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
    policy: Policy | None = None
    operator_policy: Policy | None = None
    # Where the journal keeps messages of a durable exchange that has some.
    range_id: int | None = None
    # What was published to it, directly.
    publishes: PublishCounts = field(default_factory=PublishCounts)
    # A routing key that led to no queue, published without mandatory.
    unroutable_key: str | None = None

    def __str__(self) -> str:
        return f"exchange '{self.name}' in vhost '{self.vhost}'"

    @property
    def alternate(self) -> str | None:
        """Name of the exchange that takes what matches no binding here; the argument counts before the policy."""
        name = self.arguments.get("alternate-exchange")
        if name is None and self.policy is not None:
            name = self.policy.definition.get("alternate-exchange")
        return name

    @property
    def routes_by_message(self) -> bool:
        """Whether each message must come by here, since more than its routing keys decides what becomes of it."""
        return False

    def open(self, vhost: VHost) -> None:
        """Take up work in a vhost. Raises PreconditionFailed for arguments that this type cannot have."""

    def close(self) -> None:
        """The exchange is deleted."""

    def check(self, binding: Binding) -> None:
        """Raise PreconditionFailed for a binding that this type cannot have."""

    def add(self, binding: Binding) -> None:
        """Keep a binding that is new."""
        self.bindings[binding.key] = binding
        self._index(binding)

    def binding(self, destination: Destination, routing_key: str, arguments: fields.Table) -> Binding | None:
        """The binding with these attributes, if there is one."""
        return self.bindings.get(Binding(self, destination, routing_key, arguments).key)

    def remove(self, binding: Binding) -> None:
        del self.bindings[binding.key]
        self._unindex(binding)

    def bound(self, binding: Binding) -> None:
        """A binding that is new is in force."""

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        """The destinations that a message goes to, each once.

        Without a message, this is only the question where one with these keys and headers would go.
        """
        if len(routing_keys) == 1:
            return self.match(routing_keys[0], headers)
        return {destination: None for key in routing_keys for destination in self.match(key, headers)}

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        """The destinations for one of a message's routing keys, each once: for types that look at each alone."""
        raise NotImplementedError

    def _index(self, binding: Binding) -> None:
        raise NotImplementedError

    def _unindex(self, binding: Binding) -> None:
        raise NotImplementedError


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

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        return self._destinations

    def _index(self, binding: Binding) -> None:
        _count_up(self._destinations, binding.destination)

    def _unindex(self, binding: Binding) -> None:
        _count_down(self._destinations, binding.destination)


@dataclass(eq=False)
class TopicExchange(Exchange):
    type: ClassVar[str] = "topic"

    _trie: TopicTrie[Destination] = field(default_factory=TopicTrie)

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        return self._trie.match(routing_key)

    def _index(self, binding: Binding) -> None:
        self._trie.add(binding.routing_key, binding.destination)

    def _unindex(self, binding: Binding) -> None:
        self._trie.remove(binding.routing_key, binding.destination)


@dataclass(eq=False)
class HeadersExchange(Exchange):
    type: ClassVar[str] = "headers"

    _matchers: dict[BindingKey, tuple[Callable[[fields.Table], bool], Destination]] = field(default_factory=dict)

    @property
    def routes_by_message(self) -> bool:
        return True

    def check(self, binding: Binding) -> None:
        x_match = binding.arguments.get("x-match", "all")
        if not isinstance(x_match, str):
            raise PreconditionFailed(
                f"Invalid x-match field type {fields.type_name(x_match)} "
                f"(value {fields.erlang_term(x_match)}); expected longstr"
            )
        if x_match not in ("all", "any", "all-with-x", "any-with-x"):
            raise PreconditionFailed(
                f"Invalid x-match field value {fields.erlang_term(x_match)}; "
                "expected all, any, all-with-x, or any-with-x"
            )

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        return {destination for matches, destination in self._matchers.values() if matches(headers)}

    def _index(self, binding: Binding) -> None:
        self._matchers[binding.key] = (header_matcher(binding.arguments), binding.destination)

    def _unindex(self, binding: Binding) -> None:
        del self._matchers[binding.key]


def header_matcher(arguments: fields.Table) -> Callable[[fields.Table], bool]:
    """A test of message headers, from a binding's arguments.

    A void value asks only for the key to be there. Keys that start with `x-` count only in the forms with x.
    """
    x_match = arguments.get("x-match", "all")
    with_x = x_match.endswith("-with-x")
    wanted = {
        key: value for key, value in arguments.items() if key != "x-match" and (with_x or not key.startswith("x-"))
    }

    def fits(headers: fields.Table, key: str) -> bool:
        return key in headers and (wanted[key] is None or _is_match(headers[key], wanted[key]))

    if x_match.startswith("any"):
        return lambda headers: any(fits(headers, key) for key in wanted)
    return lambda headers: all(fits(headers, key) for key in wanted)


def _is_match(one: Any, other: Any) -> bool:
    """Equality of two header values without their type tags, as Erlang's =:= sees them."""
    return _erlang_class(one) is _erlang_class(other) and bool(_comparable(one) == _comparable(other))


def _erlang_class(value: Any) -> type:
    if isinstance(value, int) and not isinstance(value, bool):
        return int
    if isinstance(value, float):
        return float
    return bytes if isinstance(value, str) else type(value)


def _comparable(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        # What is in them has its type tag with it.
        return fields.encode_table({"": value})
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _count_up(counts: dict[Destination, int], destination: Destination) -> None:
    counts[destination] = counts.get(destination, 0) + 1


def _count_down(counts: dict[Destination, int], destination: Destination) -> None:
    counts[destination] -= 1
    if not counts[destination]:
        del counts[destination]
