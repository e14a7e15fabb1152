"""Help of RabbitMQ's tools: all commands by their groups, one command, and a hint for a mistyped one."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from amqp_broker.cli.rabbitmq.command import GENERAL_OPTIONS, Command
from amqp_broker.cli.rabbitmq.formatters import heading
from amqp_broker.cli.rabbitmq.options import Option, help_lines
from amqp_broker.exit_codes import EX_USAGE

# Groups in their order in the help.
GROUPS = (
    "Help",
    "Nodes",
    "Cluster",
    "Users",
    "Access Control",
    "Monitoring, observability and health checks",
    "Parameters",
    "Policies",
    "Virtual hosts",
    "Configuration and Environment",
    "Definitions",
    "Feature flags",
    "Operations",
    "Plugin Management",
    "Shovels",
    "Queues",
    "Replication",
    "Upgrade",
    "Management plugin",
    "Other",
    "Deprecated",
)
# Similarity beyond which an unknown word counts as a mistyped command.
LIKENESS_MIN = 0.7
# The tools implement this command themselves; it is declared for help and completion.
HELP = Command(
    "help", "(<command> | [--list-commands])", "Displays usage information for a command", "Help", counts=(0, 1)
)


def general_help() -> str:
    """Return the help for the options that every command takes."""

    def layout(option: Option) -> str:
        letters = ", ".join(f"-{letter}" for letter in option.letters)
        return f"{letters:8}--{option.name} {option.value}"

    lines = help_lines(GENERAL_OPTIONS, layout, 27)
    return "\n".join(["The following options are accepted by most or all commands.", "", *lines, ""])


def usage_line(tool: str, command: Command) -> str:
    return f"{tool} [--node <node>] [--longnames] [--quiet] {command.name} {command.usage}".rstrip()


def overview(tool: str, commands: Mapping[str, Command]) -> str:
    """Return the help of a tool: all commands by groups."""
    lines = [
        *("", heading("Usage"), ""),
        f"{tool} [--node <node>] [--timeout <timeout>] [--longnames] [--quiet] <command> [<command options>]",
        *("", "Available commands:", ""),
    ]
    width = max(map(len, commands)) + 2
    for group in GROUPS:
        members = sorted(command for command in commands.values() if command.group == group)
        if members:
            lines += [f"{heading(group)}:", ""]
            lines += [f"   {command.name:{width}}{command.about}" for command in members]
            lines.append("")
    return "\n".join([*lines, f"Use '{tool} help <command>' to learn more about a specific command", ""])


def print_help(tool: str, commands: Mapping[str, Command], name: str) -> int:
    """Print the help of a tool, or of the command that is not `help`, and return the exit code."""
    command = commands.get(name)
    if command is None:
        print(f"Error:\n\nCommand '{name}' not found.", file=sys.stderr)
        return EX_USAGE
    print(overview(tool, commands) if command is HELP else help_of(tool, command), end="")
    return 0


def help_of(tool: str, command: Command) -> str:
    """Return the help of one command."""
    parts = ["", heading("Usage"), "", usage_line(tool, command), "", f"{command.about.rstrip('.')}.", ""]
    if command.columns and command.argument_counts()[1] is None:
        parts += [heading("Arguments"), "", f"<column>\n\tmust be one of {', '.join(sorted(command.columns))}", ""]
    return "\n".join([*parts, heading("General Options"), "", general_help(), ""])


def unknown_text(name: str, tool: str, commands: Mapping[str, Command]) -> str:
    text = f"\nCommand '{name}' not found. \n"
    likeness, likest = max((likeness_of(name, known), known) for known in commands)
    if likeness >= LIKENESS_MIN:
        return f"{text}Did you mean '{likest}'? \n\n"
    return text + overview(tool, commands)


def likeness_of(one: str, other: str) -> float:
    """Return the Jaro similarity of two words, from 0 to 1."""
    if one == other:
        return 1.0
    reach = max(max(len(one), len(other)) // 2 - 1, 0)
    taken: set[int] = set()
    matched = []
    for i, letter in enumerate(one):
        for j in range(max(0, i - reach), min(len(other), i + reach + 1)):
            if j not in taken and other[j] == letter:
                taken.add(j)
                matched.append(letter)
                break
    if not matched:
        return 0.0
    moved = sum(a != other[j] for a, j in zip(matched, sorted(taken), strict=True)) / 2
    count = len(matched)
    return (count / len(one) + count / len(other) + (count - moved) / count) / 3
