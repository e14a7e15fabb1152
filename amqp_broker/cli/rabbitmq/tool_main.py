"""The entry point of RabbitMQ's tools, and the commands of each."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

from amqp_broker.cli.rabbitmq.command import PLUGINS, STREAMS, UPGRADE, Command
from amqp_broker.cli.rabbitmq.command_modules import MODULES
from amqp_broker.cli.rabbitmq.tool import run
from amqp_broker.cli.rabbitmq.tool_help import HELP
from amqp_broker.cli.shared.standard_streams import finish_output, not_text, output_lost
from amqp_broker.exit_codes import EX_USAGE

# Options without a value, which may precede the name of any command.
FLAGS = {"-q", "--quiet", "-s", "--silent"}
# Tools whose commands are in few modules.
_NARROW = {
    PLUGINS: ("plugin_commands", "diagnostic_commands", "cluster_commands"),
    STREAMS: ("queue_commands",),
    UPGRADE: ("cluster_commands",),
}


def commands_of(tool: str) -> dict[str, Command]:
    """Return all commands of a tool by name."""
    found = {HELP.name: HELP}
    for module in _NARROW.get(tool, MODULES):
        found |= {command.name: command for command in _commands(module) if tool in command.tools}
    return found


def _commands(module: str) -> Iterator[Command]:
    yield from importlib.import_module(f"amqp_broker.cli.rabbitmq.{module}").COMMANDS


def main(tool: str, words: list[str]) -> int:
    """Run a tool, and return its exit code."""
    if word := not_text(words):
        print(f"Error (argument validation): {word} is not text in UTF-8", file=sys.stderr)
        return EX_USAGE
    try:
        code = _run(tool, words)
    except OSError as error:
        # Commands handle errors of the files and sockets that they use.
        if error.filename is not None:
            raise
        code = output_lost(error)
    return finish_output(code)


def _run(tool: str, words: list[str]) -> int:
    module = _module_of(words)
    if module is not None:
        alone = {command.name: command for command in _commands(module) if tool in command.tools}
        if _first(words) in alone:
            return run(tool, words, alone)
    return run(tool, words, commands_of(tool))


def _module_of(words: list[str]) -> str | None:
    """Return the module of the command that words call. None: the words ask for help, or only all commands tell."""
    if "help" in words or "--help" in words:
        return None
    name = _first(words)
    return next((module for module, names in MODULES.items() if name in names.split()), None)


def _first(words: list[str]) -> str:
    """Return the first word that is no flag of all commands."""
    return next((word for word in words if word not in FLAGS), "")
