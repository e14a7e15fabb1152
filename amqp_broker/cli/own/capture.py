"""`amqp-broker capture`: write published messages to a file, for `amqp-broker replay`."""

from __future__ import annotations

import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import click

from amqp_broker.cli.own.broker_client import lines, of_a_running_broker
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.shared.progress_bar import lasted, showing_progress
from amqp_broker.cli.shared.standard_streams import leave_interrupted_line
from amqp_broker.exit_codes import EX_CANTCREAT, EX_DATAERR


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--vhost", default="/", show_default=True, help="Vhost to capture.")
@click.option("--exchange", default=None, help="Only messages to this exchange; amq.default is the default one.")
@click.option("--routing-key", default=None, help="Only matching routing keys; * stands for any characters, ? for one.")
@click.option("--count", type=click.IntRange(1), default=None, help="End after this number of messages.")
@of_a_running_broker
def capture(file: Path, vhost: str, count: int | None, node: str, url: str, **query: Any) -> None:
    """Write published messages and their timing to FILE until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    captured = skipped = 0
    began = time.monotonic()
    target = f"/_broker/capture/{quote(vhost, safe='')}"
    try:
        with closing(lines(node, url, target, query)) as coming:
            # The first line arrives when the capture has begun, so a refused capture leaves no file.
            header = next(coming, None)
            if header is None:
                raise CommandError("the broker ended before the capture began", EX_DATAERR)
            with new_file(file) as output, showing_progress("Capturing", count or 0) as progress:
                output.write(header)
                output.flush()
                click.echo(f"capturing vhost '{vhost}' to {file}; Ctrl-C ends it", err=True)
                for line in coming:
                    output.write(line)
                    output.flush()
                    if line.startswith(b'{"skipped"'):
                        skipped += 1
                        continue
                    captured += 1
                    progress.step()
                    if captured == count:
                        break
    except KeyboardInterrupt:
        # The usual way to end a capture.
        leave_interrupted_line()
    click.echo(f"{captured} {'message' if captured == 1 else 'messages'} captured in {lasted(began)}", err=True)
    if skipped:
        raise CommandError("some messages are missing: they came faster than they could be written", EX_DATAERR)


def new_file(file: Path) -> BinaryIO:
    """Create a file. Raises CommandError if it exists, or cannot be created."""
    try:
        return file.open("xb")
    except FileExistsError:
        raise CommandError(f"'{file}' already exists", EX_CANTCREAT) from None
    except OSError as error:
        raise CommandError(f"cannot write '{file}': {error.strerror}", EX_CANTCREAT) from None
