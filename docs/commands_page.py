"""Write docs/commands.md from the declarations of the commands: `python -m docs.commands_page`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from amqp_broker.cli.own.broker_client import of_a_running_broker
from amqp_broker.cli.own.program import COMMANDS, cli
from amqp_broker.cli.own.setting_options import settings_as_options
from amqp_broker.cli.rabbitmq.command import Command
from amqp_broker.cli.rabbitmq.tool_help import GROUPS
from amqp_broker.cli.rabbitmq.tool_main import commands_of
from amqp_broker.cli.rabbitmq.tool_names import TOOLS

PAGE: Final = Path(__file__).with_name("commands.md")

INTRODUCTION: Final = """\
# All commands

This page is generated: `python -m docs.commands_page`. [Command line](command-line.md) shows commands in use.

## Commands of amqp-broker

The tables leave out two kinds of options:

- `serve` and `check-config` have an option for each of the [settings](settings.md).
- Commands that talk to a running broker have `--node` (`-n`), the name or AMQP port of a broker on this machine, and
  `--url`, the HTTP API of a broker anywhere: `http://user:password@host:15672`.

`run` starts a broker for the command after `--` ([testing from any language](testing-anywhere.md)).
"""

TOOLS_INTRODUCTION: Final = """
## Commands of RabbitMQ's tools

`amqp-broker ctl add_user` is `rabbitmqctl add_user`. The column "tools" lists the tools that have the command.
"""


@click.command()
@settings_as_options
@of_a_running_broker
def shared() -> None:
    """Have the options that many commands share."""


# Name and help of the options that the tables leave out.
LEFT_OUT: Final = {(option.name, option.help) for option in shared.params if isinstance(option, click.Option)}


def page() -> str:
    """Return the text of the page."""
    return INTRODUCTION + "".join(_own_commands()) + TOOLS_INTRODUCTION + "".join(_tool_commands())


def _own_commands() -> Iterator[str]:
    context = click.Context(cli)
    for name in sorted(COMMANDS):
        command = cli.get_command(context, name)
        assert command is not None
        yield from _command(name, command, context)


def _command(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the sections of a command and its subcommands."""
    own = click.Context(command, context, name)
    if isinstance(command, click.Group):
        for subcommand in sorted(command.commands):
            yield from _command(f"{name} {subcommand}", command.commands[subcommand], own)
        return
    options = "".join(_options(command))
    arguments = " ".join(_argument(part, own) for part in command.params if isinstance(part, click.Argument))
    yield f"\n### {name}\n\n`amqp-broker {f'{name} {arguments}'.strip()}`: {_sentence(command.help)}\n"
    if options:
        yield f"\n| option | effect |\n|---|---|\n{options}"


def _argument(argument: click.Argument, context: click.Context) -> str:
    # click would show all the values.
    is_choice = isinstance(argument.type, click.Choice)
    return f"[{argument.human_readable_name}]" if is_choice else argument.make_metavar(context)


def _options(command: click.Command) -> Iterator[str]:
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden and (option.name, option.help) not in LEFT_OUT:
            names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
            yield f"| {names} | {_cell(option.help)} |\n"


def _sentence(text: str | None) -> str:
    """Return the first paragraph of a help text, in one line."""
    return " ".join((text or "").partition("\n\n")[0].split())


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def _tool_commands() -> Iterator[str]:
    """Yield a table for each group of commands."""
    tools: dict[str, list[str]] = {}
    commands: dict[str, Command] = {}
    for own, tool in TOOLS.items():
        for name, command in commands_of(tool).items():
            tools.setdefault(name, []).append(own)
            commands.setdefault(name, command)
    for group in GROUPS:
        members = sorted(name for name, command in commands.items() if command.group == group)
        if members:
            yield f"\n### {group}\n\n| command | tools | effect |\n|---|---|---|\n"
        for name in members:
            usage = f"{name} {commands[name].usage}".strip().replace("|", "\\|")
            known = "all" if len(tools[name]) == len(TOOLS) else ", ".join(f"`{tool}`" for tool in tools[name])
            yield f"| `{usage}` | {known} | {_cell(commands[name].about)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
