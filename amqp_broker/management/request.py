"""What a handler gets and gives: an HTTP request and its answer as plain values, without a server around them.

A handler is a function `handler(request) -> value | Answer`. What it raises becomes a status and a JSON reason: a
`Refusal` its own, an AMQP error or one of those for administrators what RabbitMQ makes of it (`refusal_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from amqp_broker.errors import AccessRefused, AMQPError, DoesNotExist, InvalidParameter, NotFound

if TYPE_CHECKING:
    from amqp_broker.broker.access import User
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.management.node import Node

# What the default exchange is called in a path.
DEFAULT_EXCHANGE_NAME: Final = "amq.default"


class Refusal(Exception):
    """An answer that is an error: its HTTP status, RabbitMQ's word for the kind of it, and the reason."""

    def __init__(self, status: int, error: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.error = error
        self.reason = reason


def bad_request(reason: str) -> Refusal:
    return Refusal(400, "bad_request", reason)


def not_authorised(reason: str) -> Refusal:
    return Refusal(401, "not_authorized", reason)


def not_found() -> Refusal:
    return Refusal(404, "Object Not Found", "Not Found")


def refusal_of(error: Exception) -> Refusal | None:
    """What RabbitMQ answers where its core raised (rabbit_mgmt_util.erl, with_channel); None: it is no such error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, (NotFound, DoesNotExist)):
        return not_found()
    if isinstance(error, AccessRefused):
        return not_authorised(error.reply_text)
    if isinstance(error, AMQPError):
        return bad_request(error.reply_text)
    if isinstance(error, InvalidParameter):
        return bad_request(str(error))
    return None


class Answer(NamedTuple):
    """An answer that is not just 200 and a value: `value` is sent as JSON, octets as they are, None as no body."""

    status: int
    value: Any = None
    headers: Mapping[str, str] = {}


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

    def json(self) -> dict[str, Any]:
        """The body, which must be a JSON object; nothing is an empty one. Raises Refusal."""
        if not self.body:
            return {}
        try:
            value = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Refusal(400, "bad_request", "Not valid JSON") from None
        if not isinstance(value, dict):
            raise bad_request("The body must be a JSON object")
        return value

    @property
    def vhost(self) -> VHost:
        """The vhost in the path. Raises Refusal if there is none, or none that the user may see."""
        from amqp_broker.management.access import require_vhost

        vhost = self.broker.vhosts.get(self.path["vhost"])
        if vhost is None:
            raise not_found()
        require_vhost(self.user, vhost)
        return vhost

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
