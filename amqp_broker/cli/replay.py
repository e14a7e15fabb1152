"""`amqp-broker replay`: publish again what was recorded, with its timing, to any broker."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from amqp_broker.broker.recording import Recorded
from amqp_broker.cli.failing import CommandError, refusal
from amqp_broker.cli.progress import showing_progress
from amqp_broker.errors import InvalidParameter
from amqp_broker.exit_codes import EX_DATAERR, EX_NOINPUT, EX_USAGE
from amqp_broker.management.recording_file import RecordingError, read
from amqp_broker.server.replaying import Item, Replay, Replaying, ReplayLost, parse_uri

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
            self.fail(f"'{value}' is no speed: 1, 0.5 and max are some", parameter, context)


class Contents(NamedTuple):
    """What a recording has; all of its lines are right."""

    messages: int
    skipped: int
    exchanges: frozenset[str]


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--speed", type=Speed(), default="1", help="2 is twice as fast; max is as fast as it is confirmed.")
@click.option("--url", default=DEFAULT_URL, show_default=True, help="The broker, ours or RabbitMQ.")
@click.option("--vhost", default=None, help="Its vhost, instead of the one in the URL.")
@click.option("--exchange", default=None, help="Publish to this exchange instead of the recorded ones.")
def replay(file: Path, speed: float, url: str, vhost: str | None, exchange: str | None) -> None:
    """Publish what FILE has recorded, with confirms, and with the time between messages that there was.

    Queues, exchanges and bindings must be there. The exit code is 0 if every message was confirmed and none came back,
    65 if not, 69 if the broker was lost, 77 if it refused the login.
    """
    contents = look_into(file)
    try:
        uri = parse_uri(url, vhost)
    except InvalidParameter as error:
        raise CommandError(str(error), EX_USAGE) from None
    if exchange == "amq.default":
        exchange = ""
    with file.open("rb") as source:
        try:
            subject = Replay(
                _items(read(source)), speed, exchange=exchange, exchanges=contents.exchanges, user=uri.user
            )
        except ValueError as error:
            raise CommandError(str(error), EX_USAGE) from None
        if contents.skipped:
            click.echo(f"{contents.skipped} messages are missing in the recording", err=True)
        _run(subject, uri, contents.messages)
    if subject.nacked or subject.returned:
        raise CommandError("not all messages were taken", EX_DATAERR)


def look_into(file: Path) -> Contents:
    """Read a recording to its end before anything is published. Raises CommandError."""
    messages = skipped = 0
    exchanges = set()
    try:
        with file.open("rb") as source:
            for one in read(source):
                if isinstance(one, Recorded):
                    messages += 1
                    exchanges.add(one.message.exchange)
                else:
                    skipped += one.messages
    except OSError as error:
        raise CommandError(f"cannot read '{file}': {error.strerror}", EX_NOINPUT) from None
    except RecordingError as error:
        raise CommandError(f"'{file}': {error}", EX_DATAERR) from None
    return Contents(messages, skipped, frozenset(exchanges))


def _items(recorded: Iterator[Any]) -> Iterator[Item]:
    for one in recorded:
        if isinstance(one, Recorded):
            yield one.at_us, one.message, one.mandatory


def _run(subject: Replay, uri: Any, count: int) -> None:
    """Replay, and tell how it went. Raises CommandError."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with showing_progress("replaying", count) as step:

        def on_settled(settled: int) -> None:
            for _ in range(settled):
                step()

        async def run() -> None:
            await Replaying(subject, uri, on_settled=on_settled).run()

        try:
            asyncio.run(run())
        except ReplayLost as error:
            raise refusal(f"{error}\n{counts_of(subject)}") from None
        except KeyboardInterrupt:
            click.echo(counts_of(subject), err=True)
            raise
    click.echo(counts_of(subject))


def counts_of(subject: Replay) -> str:
    """What a replay has done so far, as a line for each thing."""
    lines = [
        f"{subject.published} published, {subject.confirmed} confirmed, {subject.nacked} nacked, "
        f"{subject.returned} returned; at most {subject.late_us_max / 1000:.1f} ms late"
    ]
    lines += [
        f"returned: exchange '{address.exchange}', routing key '{address.routing_key}': {reason}"
        for address, reason in subject.returns
    ]
    if subject.user_ids_left_out:
        lines.append(f"{subject.user_ids_left_out} without their user-id, which is that of another user")
    return "\n".join(lines)
