"""RabbitMQ's tools by their names, and the commands of each.

A health check runs every second, so the modules of commands that it does not need are not imported.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator

from amqp_broker.cli.command import DIAGNOSTICS, PLUGINS, Command
from amqp_broker.cli.tool import HELP, run

MODULES = ("diagnostics", "lists", "access", "policies", "node_commands", "queue_commands", "plugins")
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
    code = None
    if tool == DIAGNOSTICS and "help" not in words:
        # Most of what runs every second is there.
        first = {command.name: command for command in _commands("diagnostics") if tool in command.tools}
        if any(word in first for word in words) and "--help" not in words:
            code = run(tool, words, first)
    if code is None:
        code = run(tool, words, commands_of(tool))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code
