"""RabbitMQ's command line tools: the command line is read, the command is run, its outcome is printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from amqp_broker.cli import nodes
from amqp_broker.cli.command import GENERAL_LETTERS, GENERAL_OPTIONS, Call, Command, Failure, Misuse, words_of
from amqp_broker.cli.nodes import Running
from amqp_broker.cli.printing import FORMATTERS, format_rows, heading, json_line, plain
from amqp_broker.exit_codes import EX_USAGE

# The order of groups in help.
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
    "Queues",
    "Deprecated",
)
# How like a command a word must be to be taken for a slip of the pen.
LIKENESS_MIN = 0.7
INTEGERS = ("timeout", "priority", "limit", "per_connection_delay", "within", "number", "queue_timeout")
# A command of the tools itself, declared here for help and completion.
HELP = Command(
    "help", "(<command> | [--list-commands])", "Displays usage information for a command", "Help", counts=(0, 1)
)
GENERAL_HELP = """\
The following options are accepted by most or all commands.

-?, -h  --help             show this help
-n      --node <node>      name of the node, or its AMQP port
-t      --timeout <n>      give up after so many seconds
-q      --quiet            no informational messages
-s      --silent           no informational messages, no header of tables
-p      --vhost <vhost>    the virtual host, for commands that are scoped to one
        --formatter <f>    json, csv, table, pretty_table or erlang, for commands that list
"""


class Rows(NamedTuple):
    """A list as the outcome of a command; `is_whole` if RabbitMQ prints it at once, which an empty one shows."""

    names: list[str]
    rows: list[list[Any]]
    is_whole: bool = False


class Report(NamedTuple):
    """An outcome that is a text for people and a value for programs."""

    text: str
    value: Any


def run(
    tool: str,
    words: list[str],
    commands: Mapping[str, Command],
    find: Callable[[str], Running] | None = None,
) -> int:
    """Run a tool with the words of its command line, and return its exit code."""
    try:
        return _run(tool, words, commands, find or (lambda given: nodes.find(given, os.environ)))
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130


def _run(tool: str, words: list[str], commands: Mapping[str, Command], find: Callable[[str], Running]) -> int:
    name, general = _command_word(words, commands)
    if name is None:
        if general.get("help"):
            print(overview(tool, commands), end="")
            return 0
        print(overview(tool, commands), end="", file=sys.stderr)
        return EX_USAGE
    if name == "--version":
        name = "version"
    command = commands.get(name)
    if name == "help" or (general.get("help") and command is not None):
        return _help(tool, words, commands, None if name == "help" else command)
    if command is None:
        print(_unknown(name, tool, commands), end="", file=sys.stderr)
        return EX_USAGE
    call = Call(tool, command, words, find)
    try:
        _understand(call)
        _perform(call)
    except Misuse as misuse:
        given = f"Arguments given:\n\t{' '.join(words)}\n\n{heading('Usage')}\n\n{usage_line(tool, command)}"
        print(f"{misuse.headline}: {misuse.reason}\n{given}", file=sys.stderr)
        return misuse.exit_code
    except Failure as failure:
        print(end="", flush=True)
        if failure.text:
            print(failure.text, file=sys.stderr)
        return failure.exit_code
    return 0


def _command_word(words: list[str], commands: Mapping[str, Command]) -> tuple[str | None, dict[str, Any]]:
    """The word that is the command, and the options that every command has."""
    known = {name: takes for command in commands.values() for name, takes in command.options().items()}
    general: dict[str, Any] = {}
    for name, value in words_of(words, {**known, **GENERAL_OPTIONS}, GENERAL_LETTERS):
        if name == "" or (name == "?" and value == "--version"):
            general.setdefault("", value)
        else:
            general[name] = value
    return general.get(""), general


def _understand(call: Call) -> None:
    """Take the words of the command line apart. Raises Misuse."""
    command = call.command
    invalid = []
    options = {**GENERAL_OPTIONS, **command.options()}
    for name, value in words_of(call.words, options, {**GENERAL_LETTERS, **command.letters()}):
        if name == "?":
            invalid.append(f"{value} : ")
        elif name == "":
            call.arguments.append(value)
        elif name in INTEGERS and not value.isdecimal():
            invalid.append(f"--{name.replace('_', '-')} : {value}")
        else:
            call.options[name] = int(value) if name in INTEGERS else value
    call.arguments.remove(command.name)
    if invalid:
        raise Misuse("Invalid options for this command:\n" + "\n".join(invalid))
    if call.formatter not in ("", *FORMATTERS):
        raise Misuse(f"formatter {call.formatter} is none of {', '.join(FORMATTERS)}")
    least, most = command.argument_counts()
    if len(call.arguments) < least:
        raise Misuse("not enough arguments.")
    if command.columns and most is None:
        _require_columns(call)
    elif most is not None and len(call.arguments) > most:
        raise Misuse("too many arguments.")
    if command.check is not None:
        command.check(call)


def _require_columns(call: Call) -> None:
    """The arguments are columns, with commas between them or not."""
    names = [name for word in call.arguments for name in word.split(",") if name]
    unknown = [name for name in names if name not in call.command.columns]
    if unknown:
        raise Misuse(f"Info key(s) {','.join(unknown)} are not supported")
    call.arguments = list(dict.fromkeys(names))


def _perform(call: Call) -> None:
    """Do it and print what comes of it. Raises Failure, and Misuse where the node is not started."""
    command = call.command
    if not command.is_for_stopped and not call.running.is_started:
        raise Misuse(
            "this command requires the 'rabbit' app to be running on the target node. "
            "Start it with 'rabbitmqctl start_app'.",
            headline="Error",
        )
    if call.timeout_s == 0:
        raise call.timed_out()
    is_told = not call.is_quiet and call.formatter not in ("json", "csv")
    if is_told and command.tells_timeout:
        print(f"Timeout: {float(call.timeout_s or 0)} seconds ...")
    if is_told and command.says:
        print(call.fill(command.says), flush=True)
    if call.options.get("dry_run"):
        return
    show(call, _outcome(call))
    if is_told and command.done:
        print(call.fill(command.done))


def _outcome(call: Call) -> Any:
    command = call.command
    if command.run is not None:
        return command.run(call)
    if command.columns:
        return list_of(call)
    if command.asks is not None:
        method, path = command.asks
        body = None if command.body is None else command.body(call)
        call.request(method, call.fill(path, is_path=True), body)
    return None


def list_of(call: Call) -> Rows:
    """The list that a command shows, in the columns that the user names."""
    command = call.command
    assert command.asks is not None
    has_names = command.argument_counts()[1] is None
    names = (call.arguments if has_names else []) or command.shown.split()
    answer = call.ask("GET", call.fill(command.asks[1], is_path=True))
    if not answer.is_ok and (answer.status != 404 or command.missing):
        raise call.failure_of(answer)
    items = answer.value if answer.is_ok else []
    rows = [[command.columns[name].read(item, call.node) for name in names] for item in items]
    return Rows(names, rows)


def show(call: Call, outcome: Any) -> None:
    """Print what came of a command."""
    if outcome is None:
        return
    formatter = call.formatter
    if isinstance(outcome, Rows):
        if outcome.is_whole and not outcome.rows:
            print("[]" if formatter in ("json", "erlang") else "")
            return
        has_header = not (call.options.get("silent") or call.options.get("no_table_headers"))
        print(format_rows(outcome.names, outcome.rows, formatter, has_header=has_header), end="")
    elif isinstance(outcome, Report):
        print(json_line(outcome.value) if formatter == "json" else outcome.text)
    else:
        print(plain(outcome))


# Help


def usage_line(tool: str, command: Command) -> str:
    return f"{tool} [--node <node>] [--longnames] [--quiet] {command.name} {command.usage}".rstrip()


def overview(tool: str, commands: Mapping[str, Command]) -> str:
    """All commands of a tool, by their groups."""
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


def _help(tool: str, words: list[str], commands: Mapping[str, Command], command: Command | None) -> int:
    named = [word for word in words if not word.startswith("-") and word != "help"]
    if "--list-commands" in words:
        print("\n".join(sorted(commands)))
        return 0
    if command is None and named:
        command = commands.get(named[0])
        if command is None:
            print(f"Error:\n\nCommand '{named[0]}' not found.", file=sys.stderr)
            return EX_USAGE
    print(overview(tool, commands) if command is None else help_of(tool, command), end="")
    return 0


def help_of(tool: str, command: Command) -> str:
    """What there is to know of one command."""
    parts = ["", heading("Usage"), "", usage_line(tool, command), "", f"{command.about.rstrip('.')}.", ""]
    if command.columns and command.argument_counts()[1] is None:
        parts += [heading("Arguments"), "", f"<column>\n\tmust be one of {', '.join(sorted(command.columns))}", ""]
    return "\n".join([*parts, heading("General Options"), "", GENERAL_HELP, ""])


def _unknown(name: str, tool: str, commands: Mapping[str, Command]) -> str:
    text = f"\nCommand '{name}' not found. \n"
    likeness, likest = max((likeness_of(name, known), known) for known in commands)
    if likeness >= LIKENESS_MIN:
        return f"{text}Did you mean '{likest}'? \n\n"
    return text + overview(tool, commands)


def likeness_of(one: str, other: str) -> float:
    """How like each other two words are, from 0 to 1 (Jaro's measure)."""
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
