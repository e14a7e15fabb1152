"""The steps of a program, as data. Their names and values are the same at each broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amqp_broker.conformance.wire import Field, Method


class Name(str):
    """The name of a queue or an exchange. A play gives it a prefix, and a scenario has a variable for it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class At:
    """A channel of a connection; both count from 0."""

    connection: int = 0
    channel: int = 0

    @property
    def label(self) -> str:
        return f"{'abcd'[self.connection]}{self.channel + 1}"


@dataclass(frozen=True)
class Call:
    """A method with its fields. With `nowait` among them, it is not answered."""

    at: At
    method: Method
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Publish:
    """Some messages, each with its number as the body, padded to a size in bytes."""

    at: At
    options: Mapping[str, Any]
    count: int = 1
    size: int = 0


@dataclass(frozen=True)
class Settle:
    """An ack, nack or reject of one of the unacked deliveries of a channel; without a pick, of tag 0."""

    at: At
    verb: str
    pick: int | None
    options: Mapping[str, bool]


@dataclass(frozen=True)
class End:
    """The end of a connection: closed, or reset by the network."""

    connection: int
    is_reset: bool = False


@dataclass(frozen=True)
class Wait:
    """Time passes, in milliseconds."""

    duration_ms: int


@dataclass(frozen=True)
class Http:
    """A request to the HTTP API, below `/api/`; `{vhost}` and `{prefix}` in the path and the body are filled in."""

    method: str
    path: str
    body: Any = None


# The time to live, lease or delay of programs that passes while they wait. All others last for minutes.
SHORT_MS = 700

Step = Call | Publish | Settle | End | Wait | Http
Program = tuple[Step, ...]


def has_short_time(value: Any) -> bool:
    """Return whether a time of `SHORT_MS` is in a step, or in a value of one."""
    match value:
        case Call(fields=inner) | Publish(options=inner) | Http(body=inner) | Field(_, inner):
            return has_short_time(inner)
        case dict():
            return any(map(has_short_time, value.values()))
        case list():
            return any(map(has_short_time, value))
    return str(value) == str(SHORT_MS)


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with each name in it replaced."""
    match value:
        case Name():
            return names[value]
        case Field(tag, inner):
            return Field(tag, renamed(inner, names))
        case dict():
            return {key: renamed(item, names) for key, item in value.items()}
        case list():
            return [renamed(item, names) for item in value]
    return value


def names_in(value: Any) -> set[Name]:
    """Return the names in a value."""
    match value:
        case Name():
            return {value}
        case Field(_, inner):
            return names_in(inner)
        case dict():
            return {name for item in value.values() for name in names_in(item)}
        case list():
            return {name for item in value for name in names_in(item)}
    return set()
