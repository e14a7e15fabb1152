"""What a command of RabbitMQ's tools is: one declaration gives its arguments, options, help, request and texts.

The usage line is the declaration of arguments and options: `<name>` is an argument, `[<name>]` one that may be left
out, `...` as many as one likes, `--flag` and `--option <value>` are options, `--option|-o` has a short form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from amqp_broker.cli.api import Answered, Api, TimedOut, Unreachable
from amqp_broker.cli.nodes import NotRunning, Running
from amqp_broker.exit_codes import EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE

if TYPE_CHECKING:
    from amqp_broker.cli.columns import Column

CTL, DIAGNOSTICS, PLUGINS, QUEUES = "rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-plugins", "rabbitmq-queues"
# A group of commands in the help.
OPERATIONS = "Operations"
# Commands that only look are in both.
BOTH = (CTL, DIAGNOSTICS)

# Options that every command takes, and whether they take a value.
GENERAL_OPTIONS: Mapping[str, bool] = {
    **dict.fromkeys(("node", "vhost", "formatter", "printer", "timeout", "script_name", "erlang_cookie"), True),
    **dict.fromkeys(("quiet", "silent", "longnames", "help", "dry_run", "no_table_headers", "verbose"), False),
}
GENERAL_LETTERS: Mapping[str, str] = {
    "n": "node",
    "p": "vhost",
    "t": "timeout",
    "q": "quiet",
    "s": "silent",
    "l": "longnames",
    "h": "help",
    "?": "help",
}


# Octets that stand for themselves in a path (RFC 3986).
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Failure(Exception):
    """The command ends with this exit code, and with this text on stderr."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.text = text
        self.exit_code = exit_code


class Misuse(Exception):
    """The command cannot be meant so; the usage line is shown with it."""

    def __init__(self, reason: str, exit_code: int = EX_USAGE, headline: str = "Error (argument validation)") -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_code = exit_code
        self.headline = headline


def failed(reason: object, exit_code: int = EX_UNAVAILABLE) -> Failure:
    """An error as most are told."""
    return Failure(f"Error:\n{reason}", exit_code)


class Missing(NamedTuple):
    """What has to be there: if nothing is found at `path`, the command fails with `text`."""

    path: str
    text: str
    exit_code: int


class Command(NamedTuple):
    """`says`, `asks` and what is `missing` are templates: {0} is the first argument, {vhost} an option.

    `run` does what a request alone does not; what it returns is shown. `columns` are those that a list has, `shown`
    those that it shows unless the user names some.
    """

    name: str
    usage: str
    about: str
    group: str
    says: str = ""
    asks: tuple[str, str] | None = None
    body: Callable[[Call], Any] | None = None
    check: Callable[[Call], None] | None = None
    missing: tuple[Missing, ...] = ()
    otherwise: str = ""
    done: str = ""
    run: Callable[[Call], Any] | None = None
    columns: Mapping[str, Column] = {}
    shown: str = ""
    tools: tuple[str, ...] = (CTL,)
    # The app need not run on the node.
    is_for_stopped: bool = False
    # How many arguments there may be, if the usage line does not say.
    counts: tuple[int, int] | None = None
    # What happens after this many seconds, if the user does not say.
    timeout_s: float | None = 60.0
    tells_timeout: bool = False

    def options(self) -> dict[str, bool]:
        """Its own options, and whether they take a value."""
        found = re.findall(r"--([a-z-]+)(?:\|-\w)?( <| \")?", self.usage)
        return {name.replace("-", "_"): bool(value) for name, value in found}

    def letters(self) -> dict[str, str]:
        return {letter: name.replace("-", "_") for name, letter in re.findall(r"--([a-z-]+)\|-(\w)", self.usage)}

    def argument_counts(self) -> tuple[int, int | None]:
        """How many arguments there must be at least, and may be at most (None: any number)."""
        if self.counts is not None:
            return self.counts
        usage = re.sub(r"--[a-z-]+(\|-\w)?( <[^>]*>| \"[^\"]*\")?", "", self.usage)
        optional = sum(part.count("<") or 1 for part in re.findall(r"\[([^\[\]]*\w[^\[\]]*)\]", usage))
        needed = len(re.findall(r"<[^>]*>", re.sub(r"\[[^\[\]]*\]", "", usage)))
        return needed, None if "..." in usage else needed + optional


def simple(name: str, usage: str, about: str, group: str, says: str, *asks: str, **further: Any) -> Command:
    """A command that is one request (`asks` is its method and its path), or what `run` does."""
    return Command(name, usage, about, group, says=says, asks=(asks[0], asks[1]) if asks else None, **further)


class Call:
    """One run of a command: what was given, and the broker it is for.

    `find` finds the broker; it is not asked before something has to be.
    """

    def __init__(self, tool: str, command: Command, words: list[str], find: Callable[[str], Running]) -> None:
        self.tool = tool
        self.command = command
        self.words = words
        self.find = find
        self.arguments: list[str] = []
        self.options: dict[str, Any] = {}
        self._running: Running | None = None

    @property
    def is_quiet(self) -> bool:
        return bool(self.options.get("quiet") or self.options.get("silent"))

    @property
    def vhost(self) -> str:
        return str(self.options.get("vhost", "/"))

    @property
    def formatter(self) -> str:
        return str(self.options.get("formatter", ""))

    @property
    def timeout_s(self) -> float | None:
        given: float | None = self.options.get("timeout", self.command.timeout_s)
        return given

    @property
    def running(self) -> Running:
        """The broker. Raises Failure if there is none."""
        if self._running is None:
            try:
                self._running = self.find(str(self.options.get("node", "")))
            except NotRunning as missing:
                raise Failure(unreachable_text(missing), EX_UNAVAILABLE) from None
        return self._running

    @property
    def node(self) -> str:
        return self.running.name

    def state(self) -> dict[str, Any]:
        """What the node is doing now: {"name", "state", "version", "pid" ...}."""
        found: dict[str, Any] = self.get("/_broker/node")
        return found

    def fill(self, template: str, *, is_path: bool = False) -> str:
        """A template with what was given; in a path each is quoted."""
        arguments: list[str] = self.arguments
        values = {"vhost": self.vhost, **{name: str(value) for name, value in self.options.items()}}
        if "{node}" in template:
            values["node"] = self.node
        if is_path:
            arguments = [path_of(word) for word in arguments]
            values = {name: path_of(value) for name, value in values.items()}
        return template.format(*arguments, **values)

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answered:
        """Ask the broker. Raises Failure if it does not answer, or not in time."""
        if self.timeout_s == 0:
            raise self.timed_out()
        try:
            return Api(self.running.place, self.timeout_s).ask(method, target, body, **headers)
        except TimedOut:
            raise self.timed_out() from None
        except Unreachable as error:
            raise failed(f"{error}") from None

    def get(self, target: str) -> Any:
        """What the broker has there. Raises Failure for an answer that is an error."""
        answer = self.ask("GET", target)
        if not answer.is_ok:
            raise self.failure_of(answer)
        return answer.value

    def request(self, method: str, target: str, body: Any = None, **headers: str) -> Answered:
        """Have the broker do something. Raises Failure if it does not."""
        answer = self.ask(method, target, body, **headers)
        if not answer.is_ok:
            raise self.failure_of(answer)
        return answer

    def wanted_node(self) -> str:
        """What the node is called, whether it runs or not."""
        try:
            return self.find(str(self.options.get("node", ""))).name
        except NotRunning as missing:
            return missing.name

    def timed_out(self) -> Failure:
        given_ms = round((self.timeout_s or 0) * 1000)
        what = f"operation {self.command.name} on node {self.wanted_node()}"
        return Failure(
            f"Error: {what} timed out. Timeout value used: {given_ms}",
            EX_TEMPFAIL,
        )

    def failure_of(self, answer: Answered) -> Failure:
        """Why not: what the command needs may be missing, else the broker says why."""
        for needed in self.command.missing:
            if self.ask("GET", self.fill(needed.path, is_path=True)).status == 404:
                return Failure(self.fill(needed.text), needed.exit_code)
        if answer.status == 404:
            return failed(self.fill(self.command.otherwise) if self.command.otherwise else "not_found")
        # RabbitMQ's API writes it for a page.
        return failed(answer.reason.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def path_of(word: str) -> str:
    """A word as a part of a path, as urllib's `quote` makes it."""
    return "".join(chr(octet) if octet in UNRESERVED else f"%{octet:02X}" for octet in word.encode())


def unreachable_text(missing: NotRunning) -> str:
    """What RabbitMQ's tools say of a node that is not there, with what may help here."""
    name, others = missing.name, ", ".join(missing.others)
    return "\n".join(
        [
            f"Error: unable to perform an operation on node '{name}'. Please see diagnostics information and "
            "suggestions below.",
            "",
            "Most common reasons for this are:",
            "",
            " * Target node is not running",
            " * Target node was started by another user, or with another AMQP_BROKER_RUNTIME_DIR",
            " * Target node does not listen on the default port: name it with -n NODE or by RABBITMQ_NODE_PORT",
            "",
            "DIAGNOSTICS",
            "===========",
            "",
            f"attempted to contact: [{name}]",
            "",
            f"{name}:",
            f"  * no control socket of it in {missing.folder}",
            f"  * other nodes there: [{others}]",
            "  * suggestion: start the node" + (", or name another with -n" if others else ""),
            "",
        ]
    )


def octets_of(path: str) -> bytes:
    """What is in a file. Raises Failure."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        raise failed(f"cannot read '{path}': {error.strerror}") from None


def is_number(text: str) -> bool:
    """Whether a text is a number that is not negative."""
    return text.replace(".", "", 1).isdecimal()


def words_of(words: list[str], options: Mapping[str, bool], letters: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Words of a command line as options, arguments (named "") and what is neither (named "?")."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield from (("", other) for other in rest)
        elif word.startswith("--") or (word.startswith("-") and len(word) == 2 and not word[1].isdigit()):
            given, equals, value = word.partition("=")
            name = given[2:].replace("-", "_") if given.startswith("--") else letters.get(given[1:], "?")
            if name not in options:
                yield "?", given
            elif not options[name]:
                yield name, value.lower() != "false"
            elif equals:
                yield name, value
            else:
                following = next(rest, None)
                yield ("?", given) if following is None else (name, following)
        else:
            yield "", word
