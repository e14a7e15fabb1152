"""Headers exchanges, which match the headers of a message instead of its routing key (spec 3.1.3.4)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.exchanges.exchange import Binding, BindingKey, Destination, Exchange


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
    """Return a test of message headers, from a binding's arguments.

    A void value only requires the key. Keys that start with `x-` count only with `all-with-x` and `any-with-x`.
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
