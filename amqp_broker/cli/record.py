"""`amqp-broker record`: write down what is published, for `amqp-broker replay` and for who wants to read it."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from amqp_broker.cli.failing import CommandError
from amqp_broker.cli.running import lines, of_a_running_broker
from amqp_broker.exit_codes import EX_CANTCREAT, EX_DATAERR


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--vhost", default="/", show_default=True, help="The vhost.")
@click.option("--exchange", default=None, help="Only what is published to it; amq.default is the default exchange.")
@click.option("--routing-key", default=None, help="Only with such a key; * stands for any characters, ? for one.")
@click.option("--count", type=click.IntRange(1), default=None, help="End after so many messages.")
@of_a_running_broker
def record(file: Path, vhost: str, count: int | None, node: str, url: str, **query: Any) -> None:
    """Record what is published, with its timing, to FILE, until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    recorded = skipped = 0
    target = f"/_broker/recording/{quote(vhost, safe='')}"
    try:
        with closing(lines(node, url, target, query)) as coming:
            # The first line comes when the recording has begun: what cannot be recorded leaves no file.
            header = next(coming, None)
            if header is None:
                raise CommandError("the broker ended before the recording began", EX_DATAERR)
            with _new(file) as output:
                output.write(header)
                output.flush()
                click.echo(f"recording vhost '{vhost}' to {file}; Ctrl-C ends it", err=True)
                for line in coming:
                    output.write(line)
                    output.flush()
                    if line.startswith(b'{"skipped"'):
                        skipped += 1
                        continue
                    recorded += 1
                    if recorded == count:
                        break
    except KeyboardInterrupt:
        pass  # it is what ends a recording
    click.echo(f"{recorded} messages are recorded", err=True)
    if skipped:
        raise CommandError("messages came faster than they could be written: some are missing", EX_DATAERR)


def _new(file: Path) -> Any:
    """A file that is not there yet. Raises CommandError."""
    try:
        return file.open("xb")
    except FileExistsError:
        raise CommandError(f"'{file}' is there already", EX_CANTCREAT) from None
    except OSError as error:
        raise CommandError(f"cannot write '{file}': {error.strerror}", EX_CANTCREAT) from None
