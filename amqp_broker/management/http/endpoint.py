"""The declaration of an endpoint: everything that is known of a method of a path, in one place.

Routing, the check of the tag, the OpenAPI document and the page of the HTTP API all come from these declarations. The
first line of the handler's docstring is the sentence that users read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from amqp_broker.management.http.request import Request

Handler: TypeAlias = Callable[[Request], Any]
H = TypeVar("H", bound=Handler)

# The statuses of success that a method has, unless an endpoint declares others.
STATUSES: Final = {"GET": (200,), "PUT": (201, 204), "POST": (204,), "DELETE": (204,)}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method of a path; parts of the path in braces are names, which `Request.path` has."""

    method: str
    path: str
    tag: str
    handler: Handler
    summary: str
    body: type[Struct] | None
    query: type[Struct] | None
    statuses: tuple[int, ...]
    # Set where the handler reads the body itself, in steps.
    is_import: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Endpoints:
    """The endpoints of a module, in the order of their declaration."""

    def __init__(self) -> None:
        self._endpoints: list[Endpoint] = []

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._endpoints)

    def on(
        self,
        *places: str,
        tag: str,
        body: type[Struct] | None = None,
        query: type[Struct] | None = None,
        statuses: tuple[int, ...] = (),
        summary: str = "",
        is_import: bool = False,
    ) -> Callable[[H], H]:
        """Return a decorator that declares a handler for places like "GET /api/queues/{vhost}".

        `tag` is the one that a user needs (http/auth.py). `body` and `query` are the shapes that the handler reads.
        With `is_import` it reads the body itself, in steps.
        """

        def declare(handler: H) -> H:
            sentence = summary or (handler.__doc__ or "").strip().partition("\n")[0]
            for place in places:
                method, _, path = place.partition(" ")
                declared = statuses or STATUSES[method]
                endpoint = Endpoint(method, path, tag, handler, sentence, body, query, declared, is_import)
                self._endpoints.append(endpoint)
            return handler

        return declare
