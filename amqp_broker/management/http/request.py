"""An HTTP request as plain values, without a server around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.management.documents import nested_json
from amqp_broker.management.http import shapes
from amqp_broker.management.http.answers import Refusal, bad_request, not_found
from amqp_broker.management.http.auth import require_vhost, sees_vhost

if TYPE_CHECKING:
    from amqp_broker.broker.admin.access import User
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.management.node.node import Node

S = TypeVar("S", bound=Struct)

# Octets of a body that is read at once, whatever it has, and values that a body may have. Imports have no such limit.
AT_ONCE_BYTES_MAX: Final = 128 * 1024
VALUES_MAX: Final = 100_000
# Name of the default exchange in a path.
DEFAULT_EXCHANGE_NAME: Final = "amq.default"


@dataclass(slots=True)
class Request:
    """`path` has the decoded names in the path; `query` and `headers` (names in lower case) are as sent."""

    broker: Broker
    node: Node
    user: User
    method: str = "GET"
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    query_string: str = ""
    # The value of a body that was read in steps.
    value: Any = None

    def read(self, shape: type[S]) -> S:
        """Return the body in its declared shape. Raise Refusal for a wrong one."""
        return shapes.read(shape, self.json())

    def read_query(self, shape: type[S]) -> S:
        """Return the query in its declared shape. Raise Refusal for a wrong one."""
        return shapes.read(shape, self.query, is_query=True)

    def json(self) -> dict[str, Any]:
        """Return the body, which must be a JSON object; no body is an empty object. Raise Refusal for anything else."""
        # Some clients send "null" for nothing; RabbitMQ accepts "undefined" as well.
        if self.body in (b"", b"null", b"undefined"):
            return {}
        value = self.value if self.value is not None else finished(_decoded(self.body))
        if isinstance(value, str):
            raise bad_request(
                "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"
            )
        if not isinstance(value, dict):
            raise bad_request("not_json")
        return value

    def reading(self) -> Steps[None]:
        """Read a body with many values in steps, for `json`. Raise Refusal."""
        if len(self.body) > AT_ONCE_BYTES_MAX:
            self.value = yield from _decoded(self.body)

    @property
    def vhost(self) -> VHost:
        """The vhost in the path. Raises Refusal if it does not exist, or the user must not see it."""
        vhost = self.broker.vhosts.get(self.path["vhost"])
        if vhost is None:
            raise Refusal(404, "not_found", "vhost_not_found") if self.method in ("PUT", "POST") else not_found()
        require_vhost(self.user, vhost, self.method)
        return vhost

    @property
    def vhosts(self) -> list[VHost]:
        """The vhost in the path; for a path without one, all vhosts that the user sees."""
        if "vhost" in self.path:
            return [self.vhost]
        return [vhost for vhost in self.broker.vhosts.values() if sees_vhost(self.user, vhost)]

    def require_node(self) -> None:
        """Raise Refusal (404) if the path names another node than this one."""
        if self.path.get("node", self.broker.node) != self.broker.node:
            raise not_found()

    def all_of(self, name: str) -> list[str]:
        """Return all values of a parameter of the query that may be given several times."""
        return [value for key, value in parse_qsl(self.query_string, keep_blank_values=True) if key == name]

    @property
    def wants_stats(self) -> bool:
        """True unless the request asks for no statistics."""
        return self.query.get("disable_stats") != "true"

    def exchange_name(self, part: str = "name") -> str:
        """Return the name of the exchange in the path."""
        name = self.path[part]
        return "" if name == DEFAULT_EXCHANGE_NAME else name


def _decoded(octets: bytes) -> Steps[Any]:
    """Return the value of a JSON document. Raise Refusal."""
    try:
        # There are about as many values as these; some may be in texts.
        if len(octets) <= AT_ONCE_BYTES_MAX or len(octets) - len(octets.translate(None, b",:[{")) <= VALUES_MAX:
            try:
                return msgspec.json.decode(octets)
            except RecursionError:
                pass
        return (yield from nested_json.reading(octets.decode(), VALUES_MAX))
    except (nested_json.TooDeep, nested_json.TooManyValues) as error:
        raise bad_request(str(error)) from None
    except ValueError:
        raise bad_request("not_json") from None
