"""The entry point of RabbitMQ's tools, and the commands of each.

Health checks run every second, so modules of other commands are not imported for them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

from amqp_broker.cli.rabbitmq.command import DIAGNOSTICS, PLUGINS, STREAMS, UPGRADE, Command
from amqp_broker.cli.rabbitmq.tool import run
from amqp_broker.cli.rabbitmq.tool_help import HELP
from amqp_broker.cli.shared.standard_streams import finish_output, not_text, output_lost
from amqp_broker.exit_codes import EX_USAGE

MODULES = (
    *("diagnostic_commands", "list_commands", "user_commands", "vhost_commands", "permission_commands"),
    *("limit_commands", "policy_commands", "node_commands", "operation_commands", "queue_commands", "plugin_commands"),
    *("cluster_commands", "runtime_commands", "shovel_commands", "mirroring_commands"),
)
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
    code = None
    if tool == DIAGNOSTICS and "help" not in words:
        # Most health checks are in this module.
        first = {command.name: command for command in _commands("diagnostic_commands") if tool in command.tools}
        if any(word in first for word in words) and "--help" not in words:
            code = run(tool, words, first)
    return run(tool, words, commands_of(tool)) if code is None else code
