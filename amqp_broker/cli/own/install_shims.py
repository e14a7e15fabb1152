"""`amqp-broker install-shims DIR`: programs with the names of RabbitMQ's tools, for scripts that call these.

They are not installed with the package, because they would shadow the tools of a RabbitMQ.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from amqp_broker.cli.shared.own_program import IS_FROZEN
from amqp_broker.exit_codes import EX_CANTCREAT

# Systems reject a first line of a script that is longer, or that has a space in the path.
INTERPRETER_LENGTH_MAX = 100

# Tools need only the standard library; without the packages of the environment they start twice as fast.
TOOL = """\
import sys
sys.path.insert(0, {folder!r})
from amqp_broker.cli.rabbitmq.tool_main import main
sys.exit(main({name!r}, sys.argv[1:]))
"""
ADMIN = """\
import sys
sys.path.insert(0, {folder!r})
from amqp_broker.cli.rabbitmq.rabbitmqadmin import main
sys.exit(main(sys.argv[1:]))
"""
SERVER = """\
import sys
sys.path.insert(0, {folder!r})
from amqp_broker.cli.rabbitmq.rabbitmq_server import main
main(sys.argv[1:])
"""


@click.command(name="install-shims")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def install_shims(folder: Path) -> None:
    """Write programs with RabbitMQ's names to DIR.

    These are rabbitmqctl, rabbitmq-diagnostics, rabbitmq-plugins, rabbitmq-queues, rabbitmq-streams, rabbitmq-upgrade,
    rabbitmqadmin and rabbitmq-server.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in shims().items():
            path = folder / name
            path.unlink(missing_ok=True)
            if IS_FROZEN:
                # The single executable is the tool that its name says (packages/executable/entry.py).
                path.symlink_to(os.environ["AMQP_BROKER_EXECUTABLE"])
            else:
                path.write_text(text, "utf-8")
                path.chmod(0o755)
    except OSError as error:
        raise CommandError(f"cannot write '{error.filename}': {error.strerror}.", EX_CANTCREAT) from None


def shims() -> dict[str, str]:
    """Return the texts of the programs by name."""
    folder = str(Path(__file__).parents[3])
    light = {name: TOOL.format(folder=folder, name=name) for name in TOOLS.values()}
    light["rabbitmqadmin"] = ADMIN.format(folder=folder)
    return {
        **{name: first_lines("-IS") + text for name, text in light.items()},
        "rabbitmq-server": first_lines("-I") + SERVER.format(folder=folder),
    }


def first_lines(flags: str) -> str:
    """Return the first lines of a script that this Python runs."""
    python = os.path.abspath(sys.executable)  # noqa: PTH100 -- Path.resolve() would leave the virtual environment
    if " " not in python and len(python) <= INTERPRETER_LENGTH_MAX:
        return f"#!{python} {flags}\n"
    # The shell reads the second line as a command, Python as a string.
    return f"#!/bin/sh\n'''exec' \"{python}\" {flags} \"$0\" \"$@\"\n' '''\n"
