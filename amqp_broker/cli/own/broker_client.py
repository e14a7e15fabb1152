"""Requests of commands to a running broker: the options that select it, and its HTTP API."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

import click

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.shared import node_finder
from amqp_broker.cli.shared.http_api import Answered, Api, Place, Refused, Unreachable, without_password
from amqp_broker.cli.shared.own_program import commands_for
from amqp_broker.exit_codes import EX_DATAERR, EX_NOPERM, EX_UNAVAILABLE, EX_USAGE

CONFLICT: Final = 409
TIMEOUT_S: Final = 700.0
# Sentences for reasons of the API that are only names.
SENTENCES: Final = {"vhost_not_found": "there is no such vhost"}


class NotMet(CommandError):
    """A condition was not met in time."""


def of_a_running_broker(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select the broker."""
    for option in (
        click.option("--url", default="", help="HTTP API of the broker, such as http://user:password@host:15672."),
        click.option("--node", "-n", default="", help="Name or AMQP port of a broker on this machine, if several run."),
    ):
        command = option(command)
    return command


def ask(
    node: str, url: str, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None
) -> Any:
    """Return the answer of a broker. Raises CommandError if the broker refuses or does not answer."""
    answer = answer_of(address_of_broker(node, url), method, _target(path, query), body)
    if not answer.is_ok:
        raise _error_of(answer)
    return answer.value


def lines(node: str, url: str, path: str, query: Mapping[str, Any]) -> Generator[bytes, None, None]:
    """Yield the lines of an endless answer as they arrive. Raises CommandError as `ask` does."""
    yield from _arriving(node, url, path, query, Api.lines)


def pieces(node: str, url: str, path: str, query: Mapping[str, Any]) -> Generator[bytes, None, None]:
    """Yield the body of a long answer as it arrives. Raises CommandError as `ask` does, also if the end is missing."""
    yield from _arriving(node, url, path, query, Api.pieces)


def _arriving(
    node: str, url: str, path: str, query: Mapping[str, Any], read: Callable[[Api, str], Iterator[bytes]]
) -> Generator[bytes, None, None]:
    address = address_of_broker(node, url)
    try:
        yield from read(Api(address.place, TIMEOUT_S), address.prefix + _target(path, query))
    except Unreachable as error:
        raise _unreachable(address, error) from None
    except Refused as refused:
        raise _error_of(refused.answer) from None


def answer_of(address: Address, method: str, target: str, body: Any = None) -> Answered:
    """Return any answer of an API. Raises CommandError if there is none."""
    try:
        return Api(address.place, TIMEOUT_S).ask(method, address.prefix + target, body)
    except Unreachable as error:
        raise _unreachable(address, error) from None


def _unreachable(address: Address, error: Unreachable) -> CommandError:
    return CommandError(f"no HTTP API answers at {address.name}: {error}", EX_UNAVAILABLE)


def _target(path: str, query: Mapping[str, Any] | None) -> str:
    given = {key: value for key, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _error_of(answer: Answered) -> CommandError:
    if answer.status == CONFLICT:
        return NotMet(answer.reason, EX_DATAERR)
    reason = SENTENCES.get(answer.reason, answer.reason)
    return CommandError(reason, EX_NOPERM if answer.status in (401, 403) else EX_DATAERR)


class Address(NamedTuple):
    """An HTTP API: the path before that of a request, and a name for messages."""

    place: Place
    name: str
    prefix: str = ""
    user: str = ""


def address_of_broker(node: str, url: str) -> Address:
    """Return the address that the options of a command select. Raises CommandError."""
    return address_of(url) if url else address_near(node)


def address_near(node: str) -> Address:
    """Return the address of a broker on this machine. Raises CommandError if it does not run."""
    try:
        running = node_finder.find(node, os.environ)
    except node_finder.NotRunning as error:
        if error.is_choice:
            raise CommandError(f"several brokers run here; choose one:{commands_for(error.others)}", EX_USAGE) from None
        remedy = f"for one that does:{commands_for(error.others)}" if error.others else "--url names one elsewhere"
        raise CommandError(f"no broker {error.name} runs here; {remedy}", EX_UNAVAILABLE) from None
    except node_finder.UntrustedFolder as error:
        raise CommandError(str(error), EX_NOPERM) from None
    return Address(running.place, running.name)


def address_of(url: str) -> Address:
    """Return the address in a URL. Raises CommandError if it is invalid."""
    try:
        parts = urlsplit(url)
        given_port = parts.port
    except ValueError:
        parts, given_port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or given_port == 0:
        shown = without_password(url)
        raise CommandError(f"'{shown}' is not the address of an HTTP API like http://localhost:15672", EX_UNAVAILABLE)
    user = unquote(parts.username or "guest")
    credentials = f"{user}:{unquote(parts.password or 'guest')}"
    tls = None
    if parts.scheme == "https":
        import ssl

        tls = ssl.create_default_context()
    port = given_port or (15672 if tls is None else 15671)
    authorization = f"Basic {base64.b64encode(credentials.encode()).decode()}"
    place = Place(host=parts.hostname, port=port, authorization=authorization, tls=tls)
    return Address(place, f"{parts.hostname}:{port}", parts.path.rstrip("/"), user)
