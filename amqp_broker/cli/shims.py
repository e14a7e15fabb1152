"""`amqp-broker install-shims DIR`: programs with RabbitMQ's names, for what calls RabbitMQ by name.

They are not installed by themselves, where they would shadow a real RabbitMQ.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from amqp_broker.cli.failing import CommandError
from amqp_broker.cli.main import TOOLS
from amqp_broker.exit_codes import EX_CANTCREAT

# Beyond that, or with a space in it, a system does not take the first line of a script.
INTERPRETER_LENGTH_MAX = 100

# Tools need nothing but Python's own library: without the packages of the environment they start twice as fast.
TOOL = """\
import sys
sys.path.insert(0, {folder!r})
from amqp_broker.cli.tools import main
sys.exit(main({name!r}, sys.argv[1:]))
"""
ADMIN = """\
import sys
sys.path.insert(0, {folder!r})
from amqp_broker.cli.admin import main
sys.exit(main(sys.argv[1:]))
"""
SERVER = """\
import sys
sys.path.insert(0, {folder!r})
from amqp_broker.cli.rabbitmq_server import main
main(sys.argv[1:])
"""


@click.command(name="install-shims")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def install_shims(folder: Path) -> None:
    """Write programs with RabbitMQ's names to DIR.

    These are rabbitmqctl, rabbitmq-diagnostics, rabbitmq-plugins, rabbitmq-queues, rabbitmqadmin and rabbitmq-server.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in shims().items():
            path = folder / name
            path.write_text(text)
            path.chmod(0o755)
    except OSError as error:
        raise CommandError(f"cannot write '{error.filename}': {error.strerror}.", EX_CANTCREAT) from None


def shims() -> dict[str, str]:
    """The programs by name."""
    folder = str(Path(__file__).parents[2])
    light = {name: TOOL.format(folder=folder, name=name) for name in TOOLS.values()}
    light["rabbitmqadmin"] = ADMIN.format(folder=folder)
    return {
        **{name: first_lines("-IS") + text for name, text in light.items()},
        "rabbitmq-server": first_lines("-I") + SERVER.format(folder=folder),
    }


def first_lines(flags: str) -> str:
    """What has a system run a script with this Python."""
    python = os.path.abspath(sys.executable)  # noqa: PTH100 -- a link, as in an environment, is what is meant
    if " " not in python and len(python) <= INTERPRETER_LENGTH_MAX:
        return f"#!{python} {flags}\n"
    # For the shell it is a command, for Python a string.
    return f"#!/bin/sh\n'''exec' \"{python}\" {flags} \"$0\" \"$@\"\n' '''\n"
