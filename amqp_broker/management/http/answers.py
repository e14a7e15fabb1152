"""Values that a handler returns, and the refusals that it raises.

A handler returns an `Answer`, or a plain value that becomes the JSON of a 200. An exception becomes a status and a JSON
reason: `refusal_of` maps the broker's errors as RabbitMQ does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.amqp.errors import AccessRefused, AMQPError, DoesNotExist, InvalidParameter, NotAllowed, NotFound

if TYPE_CHECKING:
    from aiohttp import web

    from amqp_broker.broker.observe.waiting import Wait


class Answer(NamedTuple):
    """Status, value and headers. A value is sent as JSON, octets as they are, None without a body."""

    status: int
    value: Any = None
    headers: Mapping[str, str] = {}


class Deferred(NamedTuple):
    """An answer that is due when `wait` is done, or after `timeout_s`: `answer()` then returns it, or raises."""

    wait: Wait
    timeout_s: float
    answer: Callable[[], Any]


class Streamed(NamedTuple):
    """An answer of unknown length: `send` takes aiohttp's request and returns its response when the stream ends."""

    send: Callable[[web.Request], Awaitable[web.StreamResponse]]


CREATED: Final = Answer(201)
NO_CONTENT: Final = Answer(204)


class Refusal(Exception):
    """An error as an answer: its status, RabbitMQ's word for the kind of error, and the reason."""

    def __init__(self, status: int, error: str, reason: Any) -> None:
        """Give a text as the reason, a list of terms for an Erlang tuple, or None for an empty answer."""
        super().__init__(reason)
        self.status = status
        self.error = error
        self.reason = reason


def bad_request(reason: str) -> Refusal:
    """Return the refusal of a wrong request."""
    return Refusal(400, "bad_request", reason)


def bad_term(*term: object) -> Refusal:
    """Return the refusal of a wrong request with an Erlang tuple as its reason, which is an array in JSON."""
    return Refusal(400, "bad_request", list(term))


def validation_failed(reason: object) -> Refusal:
    """Return RabbitMQ's refusal of a wrong runtime parameter, policy or limit."""
    return bad_request(f"Validation failed\n\n{reason}\n")


def escaped(reason: object, release: tuple[int, int]) -> str:
    """Return a reason about a policy or a parameter as RabbitMQ writes it: before 4.3 with HTML's escapes."""
    return str(reason) if release >= (4, 3) else str(reason).replace("<", "&lt;").replace(">", "&gt;")


class Challenge(Refusal):
    """The refusal of a request without acceptable credentials, with the header `WWW-Authenticate`."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(401, "not_authorized", reason)


def unauthenticated(reason: str) -> Refusal:
    """Return the refusal of unknown credentials."""
    return Refusal(401, "not_authorized", reason)


def not_authorised(reason: str) -> Refusal:
    """Return the refusal of a known user without the permission. (RabbitMQ spells the two differently.)"""
    return Refusal(401, "not_authorised", reason)


def not_found() -> Refusal:
    """Return the refusal of a path that names nothing."""
    return Refusal(404, "Object Not Found", "Not Found")


def no_such(reason: str) -> Refusal:
    """Return the refusal of a path or query that names nothing, with the name in the reason."""
    return Refusal(404, "not_found", reason)


def refusal_of(error: Exception) -> Refusal | None:
    """Return RabbitMQ's answer to an error of the broker, or None for any other exception.

    Source: rabbit_mgmt_util.erl, direct_request.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, DoesNotExist):
        return not_found()
    if isinstance(error, NotFound):
        return Refusal(404, "not_found", str(error))
    if isinstance(error, (AccessRefused, NotAllowed)):
        return not_authorised("Access refused.")
    if isinstance(error, (AMQPError, InvalidParameter)):
        return bad_request(str(error))
    if isinstance(error, RecursionError):
        return bad_request("the values are nested too deeply")
    return None
