"""`amqp-broker queue`: the messages of a queue: show, download, move, and return them where they died."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from amqp_broker.cli.own.advice import printable
from amqp_broker.cli.own.broker_client import ask, of_a_running_broker, pieces
from amqp_broker.cli.own.capture import new_file
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.exit_codes import EX_CANTCREAT, EX_DATAERR

SHOWN_MAX: Final = 60
TRUNCATED_BYTES: Final = 1000
STATES: Final = ("ready", "unacked", "delayed")
LISTED: Final = "For a list of queues:\n  amqp-broker ctl list_queues name messages consumers"
POSITIONS_HELP: Final = "The message at this position, which peek shows; may be repeated."


class QueueCommands(click.Group):
    """The commands of the group; an unknown one, such as `list`, leads to RabbitMQ's list of queues."""

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of these words. Raise UsageError for an unknown one."""
        if words[0] not in self.commands and not words[0].startswith("-"):
            raise click.UsageError(f"No such command '{words[0]}'. {LISTED}", context)
        return super().resolve_command(context, words)


@click.group(cls=QueueCommands)
def queue() -> None:
    """Show, download, move and return the messages of a queue."""


def of_a_queue(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the name of a queue, and the options that select the vhost and the broker."""
    command = click.option("--vhost", default="/", show_default=True, help="The vhost.")(command)
    return of_a_running_broker(click.argument("name")(command))


def of_some_messages(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select messages; without them, all that are ready."""
    command = click.option("--position", "positions", type=click.IntRange(0), multiple=True, help=POSITIONS_HELP)(
        command
    )
    return click.option("--count", type=click.IntRange(0), default=None, help="The first messages, up to this number.")(
        command
    )


@queue.command()
@of_a_queue
@click.option("--count", type=click.IntRange(1, 1000), default=20, show_default=True, help="Messages to show.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Messages to pass over first.")
@click.option("--state", type=click.Choice(STATES), default="ready", show_default=True, help="State of the messages.")
@click.option("--search", default=None, help="Only with this text in key, properties or body.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line, with whole bodies.")
def peek(name: str, vhost: str, node: str, url: str, as_json: bool, **query: Any) -> None:
    """Show messages of the queue NAME without consuming them, one per line.

    A line has the position of a message, its size, routing key and body, and the queue where it died.
    """
    truncate = None if as_json else TRUNCATED_BYTES
    answer = ask(node, url, "GET", _path(vhost, name, "peek"), query={**query, "truncate": truncate})
    for message in answer["messages"]:
        click.echo(json.dumps(message) if as_json else line_of(message))


@queue.command()
@of_a_queue
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    *("--format", "format_"),
    type=click.Choice(("json", "capture")),
    default="json",
    show_default=True,
    help="An array, or a file for amqp-broker replay.",
)
@click.option("--position", "positions", type=click.IntRange(0), multiple=True, help=POSITIONS_HELP)
def download(name: str, file: Path, vhost: str, format_: str, positions: tuple[int, ...], node: str, url: str) -> None:
    """Write the ready messages of the queue NAME to FILE, or to - for stdout, and leave them in the queue.

    Bodies are complete, unlike those that peek shows.
    """
    query = {"format": format_, "positions": ",".join(map(str, positions)) or None}
    with closing(pieces(node, url, _path(vhost, name, "download"), query)) as coming:
        # A refused download leaves no file.
        first = next(coming, b"")
        if str(file) == "-":
            sys.stdout.buffer.writelines(chain((first,), coming))
            return
        with new_file(file) as output:
            try:
                output.writelines(chain((first,), coming))
                output.flush()
                octets = output.tell()
            except BaseException as error:
                # A part would look like the whole.
                file.unlink()
                if isinstance(error, OSError):
                    raise CommandError(f"cannot write '{file}': {error.strerror}", EX_CANTCREAT) from None
                raise
    click.echo(f"{octets} octets written to {file}", err=True)


@queue.command()
@of_a_queue
@click.argument("to")
@of_some_messages
def move(name: str, to: str, vhost: str, node: str, url: str, **choice: Any) -> None:
    """Move ready messages of the queue NAME to the end of the queue TO, in their order."""
    body = {"destination": {"queue": to}, **_chosen(**choice)}
    _report("moved", ask(node, url, "POST", _path(vhost, name, "move"), body=body))


@queue.command("return")
@of_a_queue
@of_some_messages
def return_(name: str, vhost: str, node: str, url: str, **choice: Any) -> None:
    """Return dead letters of the queue NAME to the queues that gave them up, which x-death names."""
    _report("returned", ask(node, url, "POST", _path(vhost, name, "return"), body=_chosen(**choice)))


def _path(vhost: str, name: str, action: str) -> str:
    return f"/_broker/queues/{quote(vhost, safe='')}/{quote(name, safe='')}/{action}"


def _chosen(count: int | None, positions: tuple[int, ...]) -> dict[str, Any]:
    if positions and count is not None:
        raise click.UsageError("give --count or --position, not both")
    return {"positions": positions} if positions else {} if count is None else {"count": count}


def _report(done: str, answer: dict[str, Any]) -> None:
    """Print how many messages have gone. Raises CommandError if some were not."""
    messages = "1 message" if answer["moved"] == 1 else f"{answer['moved']} messages"
    click.echo(f"{messages} {done}; {answer['messages_ready']} ready")
    if answer["reason"] is not None:
        raise CommandError(answer["reason"], EX_DATAERR)


def line_of(message: dict[str, Any]) -> str:
    """Return a message on one line."""
    body = printable(message["payload"])
    words = [
        f"{message.get('position', '-'):>6}",
        f"{message['payload_bytes']:>7} B",
        f"key {printable(message['routing_key'])}",
        body[:SHOWN_MAX] + ("…" if len(body) > SHOWN_MAX else ""),
    ]
    properties = message["properties"]
    deaths = properties.get("headers", {}).get("x-death") if isinstance(properties, dict) else None
    if isinstance(deaths, list) and deaths and isinstance(deaths[0], dict):
        words.append(f"died in {printable(str(deaths[0].get('queue')))} ({printable(str(deaths[0].get('reason')))})")
    if message.get("connection"):
        words.append(f"held by {printable(message['connection'])} ({message['channel']})")
    return "  ".join(words)
