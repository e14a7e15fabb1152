"""What a handler gets and gives: an HTTP request and its answer as plain values, without a server around them.

A handler is a function `handler(request) -> value | Answer`. What it raises becomes a status and a JSON reason: a
`Refusal` its own, an AMQP error or one of those for administrators what RabbitMQ makes of it (`refusal_of`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from amqp_broker.errors import AccessRefused, AMQPError, DoesNotExist, InvalidParameter, NotAllowed, NotFound

if TYPE_CHECKING:
    from amqp_broker.broker.access import User
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.broker.waiting import Wait
    from amqp_broker.management.node import Node

# What the default exchange is called in a path.
DEFAULT_EXCHANGE_NAME: Final = "amq.default"


class Refusal(Exception):
    """An answer that is an error: its HTTP status, RabbitMQ's word for the kind of it, and the reason."""

    def __init__(self, status: int, error: str, reason: Any) -> None:
        """The reason is a text; where RabbitMQ lets an Erlang tuple through, a list of its elements."""
        super().__init__(reason)
        self.status = status
        self.error = error
        self.reason = reason


def bad_request(reason: str) -> Refusal:
    return Refusal(400, "bad_request", reason)


def unauthenticated(reason: str) -> Refusal:
    """Nobody knows who asks: he is challenged."""
    return Refusal(401, "not_authorized", reason)


def not_authorised(reason: str) -> Refusal:
    """Who asks is known, and may not. (RabbitMQ spells the two in two ways.)"""
    return Refusal(401, "not_authorised", reason)


def not_found() -> Refusal:
    return Refusal(404, "Object Not Found", "Not Found")


def refusal_of(error: Exception) -> Refusal | None:
    """What RabbitMQ answers where its core raised (rabbit_mgmt_util.erl, direct_request); None: it is no such error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, DoesNotExist):
        return not_found()
    if isinstance(error, NotFound):
        return Refusal(404, "not_found", str(error))
    if isinstance(error, (AccessRefused, NotAllowed)):
        return not_authorised("Access refused.")
    if isinstance(error, AMQPError):
        return bad_request(str(error))
    if isinstance(error, InvalidParameter):
        return bad_request(str(error))
    return None


class Answer(NamedTuple):
    """An answer that is not just 200 and a value: `value` is sent as JSON, octets as they are, None as no body."""

    status: int
    value: Any = None
    headers: Mapping[str, str] = {}


class Deferred(NamedTuple):
    """An answer that comes when `wait` is done, or after `timeout_s`: `answer()` then returns it, or raises."""

    wait: Wait
    timeout_s: float
    answer: Callable[[], Any]


class Streamed(NamedTuple):
    """An answer that goes on: `send` is given aiohttp's request, and returns its response when that has ended."""

    send: Callable[[Any], Awaitable[Any]]


CREATED: Final = Answer(201)
NO_CONTENT: Final = Answer(204)


@dataclass(slots=True)
class Request:
    """`path` are the named parts of the path, decoded; `query` and `headers` (names in lower case) are as sent."""

    broker: Broker
    node: Node
    user: User
    method: str = "GET"
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    query_string: str = ""

    def json(self) -> dict[str, Any]:
        """The body, which must be a JSON object; nothing is an empty one. Raises Refusal."""
        # Some clients send "null" for nothing; RabbitMQ takes "undefined", too.
        if self.body in (b"", b"null", b"undefined"):
            return {}
        try:
            value = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise bad_request("not_json") from None
        if isinstance(value, str):
            raise bad_request(
                "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"
            )
        if not isinstance(value, dict):
            raise bad_request("not_json")
        return value

    @property
    def vhost(self) -> VHost:
        """The vhost in the path. Raises Refusal if there is none, or none that the user may see."""
        from amqp_broker.management.access import require_vhost

        vhost = self.broker.vhosts.get(self.path["vhost"])
        if vhost is None:
            raise Refusal(404, "not_found", "vhost_not_found") if self.method in ("PUT", "POST") else not_found()
        require_vhost(self.user, vhost, self.method)
        return vhost

    @property
    def vhosts(self) -> list[VHost]:
        """The vhost in the path, or where none is, all that the user may see."""
        from amqp_broker.management.access import sees_vhost

        if "vhost" in self.path:
            return [self.vhost]
        return [vhost for vhost in self.broker.vhosts.values() if sees_vhost(self.user, vhost)]

    def all_of(self, name: str) -> list[str]:
        """All values of a part of the query that may be there several times."""
        return [value for key, value in parse_qsl(self.query_string, keep_blank_values=True) if key == name]

    @property
    def wants_stats(self) -> bool:
        return self.query.get("disable_stats") != "true"

    def exchange_name(self, part: str = "name") -> str:
        """The name of an exchange in the path."""
        name = self.path[part]
        return "" if name == DEFAULT_EXCHANGE_NAME else name


Handler: TypeAlias = "Callable[[Request], Any]"


class Resource(NamedTuple):
    """A path, the tag that a user needs for it (management/access.py), and what each method of HTTP does."""

    path: str
    needs: str
    handlers: Mapping[str, Handler]
