"""RabbitMQ's tools by their names, and the commands of each.

A health check runs every second, so the modules of commands that it does not need are not imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

from amqp_broker.cli.command import DIAGNOSTICS, PLUGINS, Command
from amqp_broker.cli.standard_files import finish_output, not_text, output_lost
from amqp_broker.cli.tool import HELP, run
from amqp_broker.exit_codes import EX_USAGE

MODULES = ("diagnostics", "lists", "access", "policies", "node_commands", "operations", "queue_commands", "plugins")
# Modules that have all commands of a tool.
_NARROW = {PLUGINS: ("plugins", "diagnostics")}


def commands_of(tool: str) -> dict[str, Command]:
    """All commands of a tool by name."""
    found = {HELP.name: HELP}
    for module in _NARROW.get(tool, MODULES):
        found |= {command.name: command for command in _commands(module) if tool in command.tools}
    return found


def _commands(module: str) -> Iterator[Command]:
    yield from importlib.import_module(f"amqp_broker.cli.{module}").COMMANDS


def main(tool: str, words: list[str]) -> int:
    """Run a tool, and return its exit code."""
    if word := not_text(words):
        print(f"Error (argument validation): {word} is not text in UTF-8", file=sys.stderr)
        return EX_USAGE
    try:
        code = _run(tool, words)
    except OSError as error:
        # Commands know why of what they do with files and sockets.
        if error.filename is not None:
            raise
        code = output_lost(error)
    return finish_output(code)


def _run(tool: str, words: list[str]) -> int:
    code = None
    if tool == DIAGNOSTICS and "help" not in words:
        # Most of what runs every second is there.
        first = {command.name: command for command in _commands("diagnostics") if tool in command.tools}
        if any(word in first for word in words) and "--help" not in words:
            code = run(tool, words, first)
    return run(tool, words, commands_of(tool)) if code is None else code
