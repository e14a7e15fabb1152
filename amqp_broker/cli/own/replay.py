"""`amqp-broker replay`: publish captured messages again, with their timing, to any broker."""

from __future__ import annotations

import asyncio
import math
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import click

from amqp_broker.broker.observe.capture import CapturedMessage
from amqp_broker.cli.own.command_error import CommandError, refusal
from amqp_broker.cli.shared.progress_bar import lasted, showing_progress
from amqp_broker.cli.shared.standard_streams import leave_interrupted_line
from amqp_broker.exit_codes import EX_DATAERR, EX_NOINPUT, EX_USAGE
from amqp_broker.management.documents.capture_file import CaptureFileError, Skipped, read
from amqp_broker.server.replay_runner import Item, Replay, ReplayLost, ReplayRunner, parse_uri
from amqp_broker.shovel.shovel_definition import Uri

DEFAULT_URL = "amqp://guest:guest@localhost:5672"


class Speed(click.ParamType[float]):
    """A factor, or max."""

    name = "factor|max"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        if value == "max":
            return math.inf
        try:
            return float(value)
        except ValueError:
            self.fail(f"'{value}' is not a speed like 1, 0.5 or max", parameter, context)


class Contents(NamedTuple):
    """Counts of a valid capture, and the exchanges that it names."""

    messages: int
    skipped: int
    exchanges: frozenset[str]


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--speed", type=Speed(), default="1", help="Factor: 2 is twice as fast; max waits only for confirms.")
@click.option("--url", default=DEFAULT_URL, show_default=True, help="Broker: an amqp-broker or a RabbitMQ.")
@click.option("--vhost", default=None, help="Vhost, instead of the one in the URL.")
@click.option("--exchange", default=None, help="Exchange, instead of the captured ones.")
def replay(file: Path, speed: float, url: str, vhost: str | None, exchange: str | None) -> None:
    """Publish the messages in FILE with confirms, and with their original timing.

    Queues, exchanges and bindings must exist. The exit code is 0 if every message was confirmed and none came back,
    65 if not, 69 if the broker was lost, 77 if it refused the login.
    """
    if exchange == "amq.default":
        exchange = ""
    with opened(file) as source:
        contents = contents_of(source, file)
        source.seek(0)
        try:
            uri = parse_uri(url, vhost)
            subject = Replay(
                _items(read(source)), speed, exchange=exchange, exchanges=contents.exchanges, user=uri.user
            )
        except ValueError as error:
            raise CommandError(str(error), EX_USAGE) from None
        if contents.skipped:
            click.echo(f"{contents.skipped} messages are missing from the capture", err=True)
        _run(subject, uri, contents.messages)
    if subject.nacked or subject.returned:
        raise CommandError("the broker did not accept all messages", EX_DATAERR)


def opened(file: Path) -> IO[bytes]:
    """Open a file that is read twice: the contents of a pipe are copied. Raises CommandError."""
    try:
        source = file.open("rb")
        if source.seekable():
            return source
        with source, ExitStack() as closing:
            copy = closing.enter_context(TemporaryFile())
            shutil.copyfileobj(source, copy)
            copy.seek(0)
            closing.pop_all()
            return copy
    except OSError as error:
        raise CommandError(f"cannot read '{file}': {error.strerror}", EX_NOINPUT) from None


def contents_of(source: IO[bytes], file: Path) -> Contents:
    """Read a capture to its end before anything is published. Raises CommandError."""
    messages = skipped = 0
    exchanges = set()
    try:
        for one in read(source):
            if isinstance(one, CapturedMessage):
                messages += 1
                exchanges.add(one.message.exchange)
            else:
                skipped += one.messages
    except OSError as error:
        raise CommandError(f"cannot read '{file}': {error.strerror}", EX_NOINPUT) from None
    except CaptureFileError as error:
        raise CommandError(f"'{file}': {error}", EX_DATAERR) from None
    return Contents(messages, skipped, frozenset(exchanges))


def _items(captured: Iterator[CapturedMessage | Skipped]) -> Iterator[Item]:
    for one in captured:
        if isinstance(one, CapturedMessage):
            yield one.at_us, one.message, one.mandatory


def _run(subject: Replay, uri: Uri, count: int) -> None:
    """Replay, and print the counts. Raises CommandError."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    try:
        with showing_progress("Replaying", count) as progress:

            def on_settled(settled: int) -> None:
                for _ in range(settled):
                    progress.step()

            async def run() -> None:
                await ReplayRunner(subject, uri, on_settled=on_settled).run()

            asyncio.run(run())
    except ReplayLost as error:
        raise refusal(f"{error}\n{counts_of(subject, began)}") from None
    except KeyboardInterrupt:
        leave_interrupted_line()
        click.echo(counts_of(subject, began), err=True)
        sys.exit(130)
    click.echo(counts_of(subject, began))


def counts_of(subject: Replay, began: float) -> str:
    """Return the counts of a replay that `began` then (`time.monotonic`), and its returned messages, one per line."""
    lines = [
        f"{subject.published} published, {subject.confirmed} confirmed, {subject.nacked} nacked, "
        f"{subject.returned} returned in {lasted(began)}; at most {subject.late_us_max / 1000:.1f} ms late"
    ]
    lines += [
        f"returned: exchange '{address.exchange}', routing key '{address.routing_key}': {reason}"
        for address, reason in subject.returns
    ]
    if subject.user_ids_left_out:
        lines.append(f"{subject.user_ids_left_out} published without their user-id, because it names another user")
    return "\n".join(lines)
