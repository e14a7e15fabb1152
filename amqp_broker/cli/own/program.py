"""`amqp-broker` as a group of click: commands are imported when they are used, errors become exit codes."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Final

import click

from amqp_broker import __version__
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from amqp_broker.cli.standard_streams import finish_output, not_text, output_lost
from amqp_broker.exit_codes import EX_CONFIG, EX_USAGE

# The module of each command.
COMMANDS: Final = {
    **{
        name: name.replace("-", "_")
        for name in (
            *("advice", "capture", "check-config", "clock", "compare", "definitions", "demo", "faults"),
            *("install-shims", "messages", "pipeline", "replay", "serve", "store", "tls", "trace"),
        )
    },
    "message": "messages",
}
TOOL_HELP: Final = "The commands of {} for this broker."
ADMIN_HELP: Final = "The commands of rabbitmqadmin v1 (name=value) and v2 (--name value)."


class Program(click.Group):
    """Imports a command when it is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*COMMANDS, *TOOLS, "admin", "run"])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            # Collections of garbage during imports find nothing, and take a tenth of the start.
            gc.disable()
            try:
                module = importlib.import_module(f"amqp_broker.cli.own.{COMMANDS[name]}")
                command: click.Command = getattr(module, name.replace("-", "_"))
            finally:
                gc.enable()
            return command
        if name in TOOLS:
            return tool_as_group(name)
        if name == "run":
            from amqp_broker.cli.own import run

            # click breaks the lines of a paragraph unless it begins with this mark.
            return click.Command("run", help=run.HELP.replace("\n\n    ", "\n\n\b\n    "))
        if name == "admin":
            return click.Command("admin", help=ADMIN_HELP)
        return None


def tool_as_group(name: str) -> click.Group:
    """Return one of RabbitMQ's tools as a group, for help and completion; main.py runs it without click."""
    from amqp_broker.cli.rabbitmq.tool_main import commands_of

    group = click.Group(name, help=TOOL_HELP.format(TOOLS[name]))
    for command in commands_of(TOOLS[name]).values():
        options = [click.Option([f"--{option.name}"], is_flag=not option.value) for option in command.options()]
        group.add_command(click.Command(command.name, params=list(options), short_help=command.about))
    return group


def show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Print version and kind of build, and exit, if that was asked for."""
    if value:
        from amqp_broker.implementation import implementation

        click.echo(f"amqp-broker, version {__version__} ({implementation()})")
        context.exit()


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """An AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ."""


def main() -> None:
    """Run a command; an error is a sentence on stderr and an exit code."""
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
        pass  # the reader of the output has gone
    except OSError as error:
        # Commands handle errors of the files that they use.
        if error.filename is not None:
            raise
        sys.exit(output_lost(error))
    except Exception as error:
        expected = _expected(error)
        if expected is None:
            raise
        _fail(*expected)
    finally:
        lost = finish_output(0)
    sys.exit(lost)


def _expected(error: Exception) -> tuple[str, int] | None:
    """Return sentence and exit code of an expected error; None for a bug.

    The imports cost little: the code that raised the error has imported most of them.
    """
    from amqp_broker.cli.own.command_error import CommandError
    from amqp_broker.cli.own.definitions import exit_code_of_definitions
    from amqp_broker.cli.own.store import exit_code_of
    from amqp_broker.management.documents.definition import DefinitionsError
    from amqp_broker.server.tls import TlsError
    from amqp_broker.settings.settings import SettingsError
    from amqp_broker.store.environment import StoreError

    if isinstance(error, (CommandError, TlsError)):
        return str(error), error.exit_code
    if isinstance(error, SettingsError):
        return str(error), EX_CONFIG
    if isinstance(error, DefinitionsError):
        # RabbitMQ's messages have several lines.
        return " ".join(str(error).split()), exit_code_of_definitions(error)
    return (str(error), exit_code_of(error)) if isinstance(error, StoreError) else None


def _open_standard_files() -> None:
    """Open standard files that the parent has closed; libuv aborts if a socket gets their number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _fail(sentence: str, code: int) -> None:
    """Exit with sentences, each on its own line."""
    for line in sentence.splitlines():
        end = "" if line.endswith((".", "?")) else "."
        click.echo(f"amqp-broker: {line}{end}", err=True)
    sys.exit(code)
