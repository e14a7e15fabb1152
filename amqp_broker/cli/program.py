"""`amqp-broker` as commands of click, each imported when it is asked for, and its exit codes (sysexits.h)."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Final

import click

from amqp_broker.cli.main import TOOLS
from amqp_broker.cli.standard_files import finish_output, not_text, output_lost
from amqp_broker.exit_codes import EX_CONFIG, EX_USAGE

# Where commands are: module and name.
COMMANDS: Final = {
    "serve": ("serve", "serve"),
    "check-config": ("check_config", "check_config"),
    "store": ("store", "store"),
    "definitions": ("definitions", "definitions"),
    "tls": ("tls", "tls"),
    "faults": ("faults", "faults"),
    "advice": ("advice", "advice"),
    "clock": ("clock", "clock"),
    "compare": ("compare", "compare"),
    "messages": ("messages", "messages"),
    "message": ("messages", "message"),
    "demo": ("demo", "demo"),
    "record": ("record", "record"),
    "replay": ("replay", "replay"),
    "trace": ("trace", "trace"),
    "pipeline": ("pipeline", "pipeline"),
    "install-shims": ("shims", "install_shims"),
}
RUN_HELP: Final = """Run a command with a broker of its own, which is gone when the command ends.

    amqp-broker run -- pytest -q

What stands before -- are options of serve. The broker keeps everything in memory and listens on free ports of
127.0.0.1 unless they say otherwise. The command finds it by AMQP_URL, RABBITMQ_URL, CELERY_BROKER_URL, RABBITMQ_HOST,
RABBITMQ_PORT, RABBITMQ_USER, RABBITMQ_PASSWORD, RABBITMQ_VHOST and RABBITMQ_MANAGEMENT_URL, and its exit code is
that of amqp-broker: 128 and the number of the signal if one ended it.
"""
TOOL_HELP: Final = "What {} does, for this broker."
ADMIN_HELP: Final = "What rabbitmqadmin does, over HTTP: v1's name=value and v2's --name value."


class Program(click.Group):
    """Imports a command when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*COMMANDS, *TOOLS, "admin", "run"])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            module, attribute = COMMANDS[name]
            # What is imported stays: looking for garbage in it is a tenth of the time in which a broker starts.
            gc.disable()
            try:
                command: click.Command = getattr(importlib.import_module(f"amqp_broker.cli.{module}"), attribute)
            finally:
                gc.enable()
            return command
        if name in TOOLS:
            return tool_as_group(name)
        if name == "run":
            return click.Command("run", help=RUN_HELP.replace("\n\n    ", "\n\n\b\n    "), add_help_option=True)
        if name == "admin":
            return click.Command("admin", help=ADMIN_HELP)
        return None


def tool_as_group(name: str) -> click.Group:
    """One of RabbitMQ's tools as click knows commands, for help and completion; main.py runs it without click."""
    from amqp_broker.cli.tools import commands_of

    group = click.Group(name, help=TOOL_HELP.format(TOOLS[name]))
    for command in commands_of(TOOLS[name]).values():
        options = [
            click.Option(["--" + option.replace("_", "-")], is_flag=not takes_value)
            for option, takes_value in command.options().items()
        ]
        group.add_command(click.Command(command.name, params=list(options), short_help=command.about))
    return group


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="amqp-minibroker", prog_name="amqp-broker")
def cli() -> None:
    """An AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ."""


def main() -> None:
    """Run a command; whatever goes wrong is one sentence on stderr and an exit code."""
    _open_standard_files()
    if word := not_text(sys.argv):
        _fail(f"{word} is not text in UTF-8.", EX_USAGE)
    try:
        cli.main(prog_name="amqp-broker", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(EX_USAGE)
    except click.UsageError as error:
        _fail(error.format_message(), EX_USAGE)
    except click.Abort:
        sys.exit(130)
    except BrokenPipeError:
        pass  # whoever read our output has gone
    except OSError as error:
        # Of what commands do with files, they know why.
        if error.filename is not None:
            raise
        sys.exit(output_lost(error))
    except Exception as error:
        told = _told(error)
        if told is None:
            raise
        _fail(*told)
    finally:
        lost = finish_output(0)
    sys.exit(lost)


def _told(error: Exception) -> tuple[str, int] | None:
    """Sentence and exit code of an error that is not a bug. What raised it has imported what is imported here."""
    from amqp_broker.cli.definitions import exit_code_of_definitions
    from amqp_broker.cli.failing import CommandError
    from amqp_broker.cli.store import exit_code_of
    from amqp_broker.config import ConfigError
    from amqp_broker.management.importing import DefinitionsError
    from amqp_broker.server.tls import TlsError
    from amqp_broker.store.environment import StoreError

    if isinstance(error, (CommandError, TlsError)):
        return str(error), error.exit_code
    if isinstance(error, ConfigError):
        return str(error), EX_CONFIG
    if isinstance(error, DefinitionsError):
        # RabbitMQ's words for them have several lines.
        return " ".join(str(error).split()), exit_code_of_definitions(error)
    return (str(error), exit_code_of(error)) if isinstance(error, StoreError) else None


def _open_standard_files() -> None:
    """Whoever started us may have closed some of them, and libuv aborts if a socket takes their number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _fail(sentence: str, code: int) -> None:
    """End with a sentence, or with several, each on a line of its own."""
    for line in sentence.splitlines():
        end = "" if line.endswith((".", "?")) else "."
        click.echo(f"amqp-broker: {line}{end}", err=True)
    sys.exit(code)
