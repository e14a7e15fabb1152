"""Our own commands that ask a broker that runs: which one that is, and asking it."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit

import click

from amqp_broker.cli import nodes
from amqp_broker.cli.api import Answered, Api, Place, Refused, Unreachable
from amqp_broker.cli.failing import CommandError
from amqp_broker.exit_codes import EX_DATAERR, EX_NOPERM, EX_UNAVAILABLE

CONFLICT: Final = 409
TIMEOUT_S: Final = 700.0
# Of reasons that are none.
SENTENCES: Final = {"vhost_not_found": "there is no such vhost"}


class NotMet(CommandError):
    """What was waited for did not come true."""


def of_a_running_broker(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which broker."""
    for option in (
        click.option("--url", default="", help="HTTP API of the broker, as http://user:password@host:15672."),
        click.option("--node", "-n", default="", help="Name or AMQP port of a broker on this machine, if not the one."),
    ):
        command = option(command)
    return command


def ask(
    node: str, url: str, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None
) -> Any:
    """The answer of a broker. Raises CommandError with its reason if it refuses, or if there is none."""
    place, name = _place_of(url) if url else _place_near(node)
    try:
        answer = Api(place, TIMEOUT_S).ask(method, _target(path, query), body)
    except Unreachable as error:
        raise CommandError(f"no HTTP API answers at {name}: {error}", EX_UNAVAILABLE) from None
    if not answer.is_ok:
        raise _error_of(answer)
    return answer.value


def lines(node: str, url: str, path: str, query: Mapping[str, Any]) -> Generator[bytes, None, None]:
    """The lines of an answer that goes on, as they come. Raises CommandError as `ask` does."""
    place, name = _place_of(url) if url else _place_near(node)
    try:
        yield from Api(place, TIMEOUT_S).lines(_target(path, query))
    except Unreachable as error:
        raise CommandError(f"no HTTP API answers at {name}: {error}", EX_UNAVAILABLE) from None
    except Refused as refused:
        raise _error_of(refused.answer) from None


def _target(path: str, query: Mapping[str, Any] | None) -> str:
    given = {key: value for key, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _error_of(answer: Answered) -> CommandError:
    if answer.status == CONFLICT:
        return NotMet(answer.reason, EX_DATAERR)
    reason = SENTENCES.get(answer.reason, answer.reason)
    return CommandError(reason, EX_NOPERM if answer.status in (401, 403) else EX_DATAERR)


def _place_near(node: str) -> tuple[Place, str]:
    try:
        running = nodes.find(node, os.environ)
    except nodes.NotRunning as error:
        others = f"; there is {', '.join(error.others)}" if error.others else ""
        raise CommandError(f"no broker {error.name} runs here{others}", EX_UNAVAILABLE) from None
    return running.place, running.name


def _place_of(url: str) -> tuple[Place, str]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandError(f"'{url}' is no address of an HTTP API, as http://localhost:15672 is", EX_UNAVAILABLE)
    credentials = f"{unquote(parts.username or 'guest')}:{unquote(parts.password or 'guest')}"
    tls = None
    if parts.scheme == "https":
        import ssl

        tls = ssl.create_default_context()
    port = parts.port or (15672 if tls is None else 15671)
    authorization = f"Basic {base64.b64encode(credentials.encode()).decode()}"
    return Place(host=parts.hostname, port=port, authorization=authorization, tls=tls), f"{parts.hostname}:{port}"
