"""Headers exchanges, which match the headers of a message instead of its routing key (spec 3.1.3.4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.exchanges.exchange import Binding, BindingKey, Destination, Exchange

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message

# The tests and destinations of bindings.
Matchers: TypeAlias = "dict[BindingKey, tuple[Callable[[fields.Table], bool], Destination]]"
# The class of a value in Erlang, and a value that equals those that match.
HeaderValue: TypeAlias = "tuple[type, bytes | int]"


@dataclass(eq=False)
class HeadersExchange(Exchange):
    type: ClassVar[str] = "headers"

    # By one header that a message needs for it: its key, and then its value.
    _by_header: dict[str, dict[HeaderValue, Matchers]] = field(default_factory=dict)
    # Bindings that need no certain value.
    _others: Matchers = field(default_factory=dict)

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

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        # However many keys there are: none counts.
        return self.match("", headers)

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        found = {destination for matches, destination in self._others.values() if matches(headers)}
        self.match_work += len(self._others)
        for key, by_value in self._by_header.items():
            if key in headers and (value := _header_value(headers[key])) in by_value:
                assert value is not None
                matchers = by_value[value].values()
                found.update(destination for matches, destination in matchers if matches(headers))
                self.match_work += len(matchers)
        return found

    def _index(self, binding: Binding) -> None:
        needed = _needed_header(binding.arguments)
        matchers = self._others
        if needed is not None:
            key, value = needed
            matchers = self._by_header.setdefault(key, {}).setdefault(value, {})
        matchers[binding.key] = (header_matcher(binding.arguments), binding.destination)

    def _unindex(self, binding: Binding) -> None:
        needed = _needed_header(binding.arguments)
        if needed is None:
            del self._others[binding.key]
            return
        key, value = needed
        by_value = self._by_header[key]
        del by_value[value][binding.key]
        if not by_value[value]:
            del by_value[value]
        if not by_value:
            del self._by_header[key]


def _wanted(arguments: fields.Table) -> fields.Table:
    with_x = arguments.get("x-match", "all").endswith("-with-x")
    return {key: value for key, value in arguments.items() if key != "x-match" and (with_x or not key.startswith("x-"))}


def _needed_header(arguments: fields.Table) -> tuple[str, HeaderValue] | None:
    """Return a header without which no message matches, with the value that it has; None if there is none."""
    if not arguments.get("x-match", "all").startswith("all"):
        return None
    for key, wanted in _wanted(arguments).items():
        value = _header_value(wanted)
        if value is not None:
            return key, value
    return None


def _header_value(value: Any) -> HeaderValue | None:
    """Return what two values that match have in common; None for values that cannot be keys of a dict."""
    kind = _erlang_class(value)
    return (kind, _comparable(value)) if kind in (bytes, int, bool) else None


def header_matcher(arguments: fields.Table) -> Callable[[fields.Table], bool]:
    """Return a test of message headers, from a binding's arguments.

    A void value only requires the key. Keys that start with `x-` count only with `all-with-x` and `any-with-x`.
    """
    wanted = _wanted(arguments)

    def fits(headers: fields.Table, key: str) -> bool:
        return key in headers and (wanted[key] is None or _is_match(headers[key], wanted[key]))

    if arguments.get("x-match", "all").startswith("any"):
        return lambda headers: any(fits(headers, key) for key in wanted)
    return lambda headers: all(fits(headers, key) for key in wanted)


def _is_match(one: Any, other: Any) -> bool:
    """Compare two header values without their type tags, as Erlang's =:= does."""
    return _erlang_class(one) is _erlang_class(other) and bool(_comparable(one) == _comparable(other))


def _erlang_class(value: Any) -> type:
    if isinstance(value, int) and not isinstance(value, bool):
        return int
    if isinstance(value, float):
        return float
    return bytes if isinstance(value, str) else type(value)


def _comparable(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        # Erlang compares nested values with their type tags.
        return fields.encode_table({"": value})
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
