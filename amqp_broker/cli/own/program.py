"""`amqp-broker` as a group of click: commands are imported when they are used, errors become exit codes."""

from __future__ import annotations

import gc
import importlib
import re
import sys
from typing import Final

import click

from amqp_broker import __version__
from amqp_broker.broker.admin.similar_names import did_you_mean
from amqp_broker.cli.own.command_exit import fail, run_and_exit
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from amqp_broker.exit_codes import EX_USAGE

# The module of each command.
COMMANDS: Final = {
    **{
        name: name.replace("-", "_")
        for name in (
            *("advice", "attention", "capture", "check-config", "clock", "compare", "conformance", "definitions"),
            *("demo", "faults", "install-shims", "mcp", "messages", "pipeline", "queue", "replay", "serve", "snapshot"),
            *("store", "tls", "trace"),
        )
    },
    "message": "messages",
    "serve": "serve_command",
}
# The headings of the help, each with its commands in the order of their use.
GROUPS: Final = {
    "Start a broker": ("serve", "run", "check-config", "tls", "demo"),
    "See what is wrong": ("attention", "advice", "mcp"),
    "Look into messages": ("queue", "messages", "message"),
    "Test clients": ("faults", "clock", "snapshot"),
    "Record and compare": ("capture", "replay", "compare", "conformance", "trace", "pipeline"),
    "Keep data": ("definitions", "store"),
    "RabbitMQ's tools": (*TOOLS, "admin", "install-shims"),
}
# Of a line of help; a terminal may be narrower.
COLUMNS_MAX: Final = 120
TOOL_HELP: Final = "The commands of {} for this broker."
ADMIN_HELP: Final = "The commands of rabbitmqadmin v1, with arguments as name=value or --name value."


class Program(click.Group):
    """Imports a command when it is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for names in GROUPS.values() for name in names]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with what they do, in groups."""
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, summary(self.get_command(context, name))) for name in names])

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of these words. Raise UsageError for an unknown one, with what is similar."""
        name = words[0]
        if not name.startswith("-") and name not in self.list_commands(context):
            question = did_you_mean(name, self.list_commands(context)) or _tool_with(name)
            raise click.UsageError(f"No such command '{name}'. {question[:1].upper()}{question[1:]}".strip(), context)
        return super().resolve_command(context, words)

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


def _tool_with(name: str) -> str:
    """Return a question that names the command of RabbitMQ's tools with this name; "" if there is none."""
    from amqp_broker.cli.rabbitmq.tool_main import commands_of

    tool = next((tool for tool, rabbitmqs in TOOLS.items() if name in commands_of(rabbitmqs)), None)
    return f"did you mean 'amqp-broker {tool} {name}'?" if tool is not None else ""


def summary(command: click.Command | None) -> str:
    """Return what a command does: the first clause of its help."""
    assert command is not None
    assert command.help is not None
    first = " ".join(command.help.split("\n\n")[0].split())
    return re.split(r"[.;:](?=\s|$)", first, maxsplit=1)[0] + "."


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


CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": COLUMNS_MAX}


@click.command(cls=Program, context_settings=CONTEXT)
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
