"""`amqp-broker` as a group of click: commands are imported when they are used, errors become exit codes."""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Final

import click

from amqp_broker import __version__
from amqp_broker.cli.own.command_exit import fail, run_and_exit
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from amqp_broker.exit_codes import EX_USAGE

# The module of each command.
COMMANDS: Final = {
    **{
        name: name.replace("-", "_")
        for name in (
            *("advice", "capture", "check-config", "clock", "compare", "conformance", "definitions", "demo"),
            *("faults", "install-shims", "messages", "pipeline", "replay", "serve", "snapshot", "store"),
            *("tls", "trace"),
        )
    },
    "message": "messages",
    "serve": "serve_command",
}
TOOL_HELP: Final = "The commands of {} for this broker."
ADMIN_HELP: Final = "The commands of rabbitmqadmin v1, with arguments as name=value or --name value."


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
    run_and_exit(_run)


def _run() -> None:
    try:
        cli.main(prog_name="amqp-broker", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(EX_USAGE)
    except click.UsageError as error:
        fail(error.format_message(), EX_USAGE)
    except click.Abort:
        sys.exit(130)
