"""One run of a tool: read the command line, run the command, print the outcome."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from amqp_broker.cli.rabbitmq.command import GENERAL_OPTIONS, Call, Command, Failure
from amqp_broker.cli.rabbitmq.formatters import FORMATTERS, format_rows, json_line, plain
from amqp_broker.cli.rabbitmq.options import Kind, Option, Word, flags_of, read_words
from amqp_broker.cli.rabbitmq.tool_help import overview, print_help, unknown_text, usage_line
from amqp_broker.cli.rabbitmq.words import Misuse
from amqp_broker.cli.shared import node_finder
from amqp_broker.cli.shared.node_finder import Running, UntrustedFolder
from amqp_broker.cli.shared.standard_streams import leave_interrupted_line
from amqp_broker.exit_codes import EX_NOPERM, EX_USAGE


class Rows(NamedTuple):
    """A list as an outcome; RabbitMQ prints lists that are whole differently if they are empty."""

    names: list[str]
    rows: list[list[Any]]
    is_whole: bool = False


class Report(NamedTuple):
    """An outcome with a text for people and a value for programs."""

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
        return _run(tool, words, commands, find or (lambda given: node_finder.find(given, os.environ)))
    except UntrustedFolder as error:
        print(f"Error: {error}", file=sys.stderr)
        return EX_NOPERM
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        leave_interrupted_line()
        return 130


def _run(tool: str, words: list[str], commands: Mapping[str, Command], find: Callable[[str], Running]) -> int:
    arguments, asks_help = _arguments(words, commands)
    if not arguments:
        print(overview(tool, commands), end="", file=sys.stdout if asks_help else sys.stderr)
        return 0 if asks_help else EX_USAGE
    name = "version" if arguments[0] == "--version" else arguments[0]
    command = commands.get(name)
    if name == "help" or (asks_help and command is not None):
        if "--list-commands" in words:
            print("\n".join(sorted(commands)))
            return 0
        return print_help(tool, commands, arguments[1] if name == "help" and len(arguments) > 1 else name)
    if command is None:
        print(unknown_text(name, tool, commands), end="", file=sys.stderr)
        return EX_USAGE
    call = Call(tool, command, words, find)
    if command.former is not None and call.is_before(*command.former.before):
        call.command = command._replace(**command.former.fields)
    try:
        _understand(call)
        _perform(call)
    except Misuse as misuse:
        given = f"Arguments given:\n\t{' '.join(words)}\n\n{call.heading('Usage')}\n\n{usage_line(tool, call.command)}"
        print(f"{misuse.headline}: {misuse.reason}\n{given}", file=sys.stderr)
        return misuse.exit_code
    except Failure as failure:
        print(end="", flush=True)
        if failure.text:
            print(failure.text, file=sys.stderr)
        return failure.exit_code
    return 0


def _read(words: list[str], options: Iterable[Option]) -> Iterator[Word]:
    """Yield the words of a command line; one dash before a longer word begins no option here."""
    for word in read_words(words, flags_of(options).get):
        is_long = word.text.startswith("--") or len(word.text) == 2
        yield word._replace(kind=Kind.ARGUMENT) if word.kind is Kind.UNKNOWN and not is_long else word


def _arguments(words: list[str], commands: Mapping[str, Command]) -> tuple[list[str], bool]:
    """Return the arguments, of which the first names the command, and whether the user asks for help."""
    arguments, asks_help = [], False
    known = [option for command in commands.values() for option in command.options()]
    for word in _read(words, [*known, *GENERAL_OPTIONS]):
        if word.kind is Kind.ARGUMENT or word.text == "--version":
            arguments.append(word.text)
        elif word.option is not None and word.option.key == "help":
            asks_help = is_on(word)
    return arguments, asks_help


def is_on(word: Word) -> bool:
    """Return whether a switch is on: `--quiet=false` is off."""
    return word.value.lower() != "false"


def _understand(call: Call) -> None:
    """Set arguments and options from the words of the command line. Raises Misuse."""
    command = call.command
    invalid = []
    for word in _read(call.words, [*GENERAL_OPTIONS, *command.options()]):
        option = word.option
        if word.kind is Kind.ARGUMENT:
            call.arguments.append(word.text)
        elif word.kind is not Kind.OPTION or option is None:
            invalid.append(f"{word.text.partition('=')[0]} : ")
        elif option.is_integer and not word.value.isdecimal():
            invalid.append(f"--{option.name} : {word.value}")
        elif option.is_integer:
            call.options[option.key] = int(word.value)
        else:
            call.options[option.key] = word.value if option.value else is_on(word)
    call.arguments.remove(command.name)
    if invalid:
        raise Misuse("Invalid options for this command:\n" + "\n".join(invalid))
    if call.formatter not in ("", *FORMATTERS):
        raise Misuse(f"formatter {call.formatter} is not one of {', '.join(FORMATTERS)}")
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
    """Set the arguments, which may have commas between them, to columns. Raises Misuse."""
    names = [name for word in call.arguments for name in word.split(",") if name]
    unknown = [name for name in names if name not in call.command.columns]
    if unknown:
        raise Misuse(f"Info key(s) {','.join(unknown)} are not supported")
    call.arguments = list(dict.fromkeys(names))


def _perform(call: Call) -> None:
    """Run the command and print its outcome. Raises Failure, and Misuse if the node is not started."""
    command = call.command
    if not command.is_for_stopped and not call.running.is_started:
        raise Misuse(
            "this command requires the 'rabbit' app to be running on the target node. "
            "Start it with 'rabbitmqctl start_app'.",
            headline="Error",
        )
    if call.timeout_s == 0:
        raise call.timed_out()
    is_verbose = not call.is_quiet and call.formatter not in ("json", "csv")
    if is_verbose and command.announces_timeout:
        print(f"Timeout: {float(call.timeout_s or 0)} seconds ...")
    if is_verbose and command.says:
        print(call.fill(command.says), flush=True)
    if call.options.get("dry_run"):
        return
    show(call, _outcome(call))
    if is_verbose and command.done:
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


def list_of(call: Call, completed: Callable[[Any], Any] = lambda item: item) -> Rows:
    """Return the list of a command, in the columns that the user names, of its items as `completed`."""
    command = call.command
    assert command.asks is not None
    has_names = command.argument_counts()[1] is None
    names = (call.arguments if has_names else []) or command.shown.split()
    answer = call.ask("GET", call.fill(command.asks[1], is_path=True))
    if not answer.is_ok and (answer.status != 404 or command.missing):
        raise call.failure_of(answer)
    items = map(completed, answer.value) if answer.is_ok else []
    rows = [[command.columns[name].read(item, call.node) for name in names] for item in items]
    return Rows(names, rows)


def empty_list(formatter: str) -> str:
    """Return a list without items that RabbitMQ prints as a whole."""
    if formatter == "pretty_table":
        return format_rows(["Output"], [["[]"]], formatter, has_header=True).rstrip("\n")
    return "[]" if formatter in ("json", "erlang") else ""


def show(call: Call, outcome: Any) -> None:
    """Print the outcome of a command."""
    if outcome is None:
        return
    formatter = call.formatter
    if isinstance(outcome, Rows):
        if outcome.is_whole and not outcome.rows:
            print(empty_list(formatter))
            return
        has_header = not (call.options.get("silent") or call.options.get("no_table_headers"))
        print(format_rows(outcome.names, outcome.rows, formatter, has_header=has_header), end="")
    elif isinstance(outcome, Report):
        print(json_line(outcome.value) if formatter == "json" else outcome.text)
    else:
        print(plain(outcome))
