"""The declaration of a command of RabbitMQ's tools, and the context in which it runs.

The usage line declares arguments and options: `<name>` is an argument, `[<name>]` is optional, `...` stands for any
number, `--flag` and `--option <value>` are options, `--option|-o` has a short form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from amqp_broker.cli.rabbitmq.formatters import bold, erlang, heading
from amqp_broker.cli.rabbitmq.options import Option
from amqp_broker.cli.rabbitmq.words import path_of
from amqp_broker.cli.shared.http_api import Answered, Api, TimedOut, Unreachable
from amqp_broker.cli.shared.node_finder import NotRunning, Running, UntrustedFolder
from amqp_broker.cli.shared.own_program import commands_for
from amqp_broker.exit_codes import EX_DATAERR, EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE

if TYPE_CHECKING:
    from amqp_broker.cli.rabbitmq.columns import Column

CTL, DIAGNOSTICS, PLUGINS, QUEUES = "rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-plugins", "rabbitmq-queues"
STREAMS, UPGRADE = "rabbitmq-streams", "rabbitmq-upgrade"
# Group in the help.
OPERATIONS = "Operations"
# Tools that share the commands without effects.
BOTH = (CTL, DIAGNOSTICS)

# Options that every command takes; those of a command are in its usage line.
GENERAL_OPTIONS = (
    Option("help", about="show this help", letters="?h"),
    Option("node", "<node>", "name of the node, or its AMQP port", "n"),
    Option("timeout", "<n>", "give up after <n> seconds", "t", is_integer=True),
    Option("quiet", about="no informational messages", letters="q"),
    Option("silent", about="no informational messages, no header of tables", letters="s"),
    Option("vhost", "<vhost>", "the virtual host, for commands that are scoped to one", "p"),
    Option("formatter", "<f>", "json, csv, table, pretty_table or erlang, for commands that list"),
    *(Option(name, f"<{name}>") for name in ("printer", "script-name", "erlang-cookie")),
    *(Option(name) for name in ("dry-run", "no-table-headers", "verbose")),
    Option("longnames", letters="l"),
)
# Placeholders of values that are integers.
INTEGERS = frozenset(
    ("<timeout>", "<priority>", "<limit>", "<delay>", "<period>", "<milliseconds>", "<seconds>", "<number>")
)


class Failure(Exception):
    """The command failed; the tool ends with this exit code and this text on stderr."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.text = text
        self.exit_code = exit_code


def failed(reason: object, exit_code: int = EX_UNAVAILABLE) -> Failure:
    """Return a Failure with the usual headline."""
    return Failure(f"Error:\n{reason}", exit_code)


class Missing(NamedTuple):
    """An object that a command requires: if `path` is not found, the command fails with `text`."""

    path: str
    text: str
    exit_code: int


NO_OBJECT = "Object (queue, stream, exchange, etc) was not found"
NO_VHOST = Missing("/api/vhosts/{vhost}", "Virtual host '{vhost}' does not exist", EX_DATAERR)
NO_SUCH_USER = Missing("/api/users/{0}", 'Error:\n{{:no_such_user, "{0}"}}', EX_UNAVAILABLE)


class Former(NamedTuple):
    """The fields of a command that were different before a version of RabbitMQ (major, minor)."""

    before: tuple[int, int]
    fields: Mapping[str, Any]


class Command(NamedTuple):
    """The declaration of a command.

    `says` (the first message), `asks` (method and path of a request) and `missing` are templates: {0} is the first
    argument, {rest} the others, {vhost} an option. `run` is for commands that need more than a request; its result is
    printed. `columns` are all columns of a list, `shown` those that are shown unless the user names some.
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
    # The command works while the app on the node is stopped.
    is_for_stopped: bool = False
    # Least and greatest number of arguments, if the usage line does not show them.
    counts: tuple[int, int] | None = None
    # Default timeout.
    timeout_s: float | None = 60.0
    announces_timeout: bool = False
    former: Former | None = None

    def options(self) -> list[Option]:
        """Return the options of this command, without those that every command takes."""
        found = re.findall(r"--([a-z-]+)(?:\|-(\w))?(?:[ =](<[^>]*>|\"[^\"]*\"))?", self.usage)
        return [Option(name, value, letters=letter, is_integer=value in INTEGERS) for name, letter, value in found]

    def argument_counts(self) -> tuple[int, int | None]:
        """Return the least and greatest number of arguments (None: no limit)."""
        if self.counts is not None:
            return self.counts
        usage = re.sub(r"--[a-z-]+(\|-\w)?([ =]<[^>]*>|[ =]\"[^\"]*\")?", "", self.usage)
        optional = sum(part.count("<") or 1 for part in re.findall(r"\[([^\[\]]*\w[^\[\]]*)\]", usage))
        needed = len(re.findall(r"<[^>]*>", re.sub(r"\[[^\[\]]*\]", "", usage)))
        return needed, None if "..." in usage else needed + optional


def simple(name: str, usage: str, about: str, group: str, says: str, *asks: str, **further: Any) -> Command:
    """Return a command that is one request (`asks` is method and path), or that `run` implements."""
    return Command(name, usage, about, group, says=says, asks=(asks[0], asks[1]) if asks else None, **further)


class Call:
    """One run of a command: the arguments and options of the user, and requests to the broker.

    `find` finds the broker, when it is needed first.
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
        """The broker. Raises Failure if it does not run, and UntrustedFolder."""
        if self._running is None:
            try:
                self._running = self.find(str(self.options.get("node", "")))
            except NotRunning as missing:
                if missing.is_choice:
                    commands = commands_for(missing.others)
                    raise Failure(f"Error: several brokers run here; choose one:{commands}", EX_USAGE) from None
                raise Failure(unreachable_text(missing), EX_UNAVAILABLE) from None
        return self._running

    def is_before(self, *version: int) -> bool:
        """Return whether the node imitates an older RabbitMQ than this; without a node, it is the newest."""
        try:
            return tuple(map(int, self.running.version.split(".")[:2])) < version
        except (Failure, UntrustedFolder):
            return False

    def heading(self, text: str) -> str:
        """Return a heading; RabbitMQ 3 prints it in bold even if no terminal shows it."""
        return bold(text) if self.is_before(4, 0) else heading(text)

    @property
    def node(self) -> str:
        return self.running.name

    def state(self) -> dict[str, Any]:
        """Return the state of the node: {"name", "state", "version", "pid" ...}."""
        found: dict[str, Any] = self.get("/_broker/node")
        return found

    def fill(self, template: str, *, is_path: bool = False) -> str:
        """Return a template with the given arguments and options, which are quoted for a path."""
        arguments: list[str] = self.arguments
        values = {
            "vhost": self.vhost,
            "rest": ", ".join(arguments[1:]),
            **{name: str(value) for name, value in self.options.items()},
        }
        if "{node}" in template:
            values["node"] = self.node
        if is_path:
            arguments = [path_of(word) for word in arguments]
            values = {name: path_of(value) for name, value in values.items()}
        return template.format(*arguments, **values)

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answered:
        """Return the answer of the broker. Raises Failure without an answer in time, and for an empty name."""
        if self.timeout_s == 0:
            raise self.timed_out()
        if "" in target.partition("?")[0].split("/")[1:]:
            # Without its last name, a path is that of a list.
            raise failed("the name of an object must not be empty", EX_DATAERR)
        try:
            return Api(self.running.place, self.timeout_s).ask(method, target, body, **headers)
        except TimedOut:
            raise self.timed_out() from None
        except Unreachable as error:
            raise failed(f"{error}") from None

    def get(self, target: str) -> Any:
        """Return the value at a path of the API. Raises Failure for an error."""
        answer = self.ask("GET", target)
        if not answer.is_ok:
            raise self.failure_of(answer)
        return answer.value

    def request(self, method: str, target: str, body: Any = None, **headers: str) -> Answered:
        """Send a request that changes the broker. Raises Failure for an error."""
        answer = self.ask(method, target, body, **headers)
        if not answer.is_ok:
            raise self.failure_of(answer)
        return answer

    def wanted_node(self) -> str:
        """Return the name of the node, even if it does not run."""
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
        """Return the reason of an error: a missing object, or the answer of the broker."""
        for needed in self.command.missing:
            if self.ask("GET", self.fill(needed.path, is_path=True)).status == 404:
                return Failure(self.fill(needed.text), needed.exit_code)
        if answer.status == 404:
            return failed(self.fill(self.command.otherwise) if self.command.otherwise else "not_found")
        # The API quotes reasons for HTML.
        return failed(answer.reason.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def unreachable_text(missing: NotRunning) -> str:
    """Return RabbitMQ's message about a node that does not run, with hints for this broker."""
    name, others = missing.name, ", ".join(missing.others)
    commands = commands_for(missing.others).replace("\n", "\n  ")
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
            f"  * no control socket of this node in {missing.folder}",
            f"  * other nodes there: [{others}]",
            "  * suggestion: start the node" + (f", or ask another:{commands}" if others else ""),
            "",
        ]
    )


def octets_of(path: str) -> bytes:
    """Return the contents of a file. Raises Failure."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        raise failed(f"cannot read '{path}': {error.strerror}") from None


def pattern_of(text: str) -> re.Pattern[str]:
    """Return a regular expression. Raises Failure."""
    try:
        return re.compile(text)
    except re.error as error:
        raise failed(f"'{text}' is not a regular expression: {error}", EX_DATAERR) from None


def json_of(call: Call, text: str) -> Any:
    """Return a value that is given as JSON. Raises Failure."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise not_json(call, text) from None


def not_json(call: Call, text: str) -> Failure:
    if call.is_before(4, 0):
        return failed("JSON decoding error. Reason: badarg")
    return failed(f"Could not parse JSON document: {{error,{{failed_to_decode_json,{erlang(text)}}}}}")
