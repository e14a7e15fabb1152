"""rabbitmq-plugins: plugins are built in, so enabling one only changes the file of enabled plugins.

The file is RabbitMQ's: an Erlang list of names and a full stop, `[rabbitmq_management,rabbitmq_shovel].`
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any

from amqp_broker.cli.rabbitmq.command import PLUGINS, Call, Command, Failure, failed, pattern_of
from amqp_broker.cli.rabbitmq.tool import Report
from amqp_broker.cli.rabbitmq.words import Misuse
from amqp_broker.exit_codes import EX_SOFTWARE
from amqp_broker.settings.plugins import BUILT_IN, NEEDS, missing, with_needed

GROUP = "Plugin Management"
DEFAULT_FILE = "/etc/rabbitmq/enabled_plugins"


def file_of() -> str:
    """Return the path of the file of enabled plugins."""
    return os.environ.get("RABBITMQ_ENABLED_PLUGINS_FILE") or DEFAULT_FILE


def read() -> list[str]:
    """Return the plugins that are enabled explicitly."""
    try:
        with open(file_of(), encoding="utf-8") as file:  # noqa: PTH123
            return re.findall(r"\w+", file.read())
    except OSError:
        return []


def has_file() -> bool:
    return os.path.exists(file_of())  # noqa: PTH110


def at_node(call: Call) -> list[str]:
    """Return the plugins that the node was started with, without those that they require."""
    names: list[str] = call.get("/_broker/status")["plugins"]
    return names


def write(names: Iterable[str]) -> None:
    path = file_of()
    try:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"[{','.join(sorted(names))}].\n")
    except OSError as error:
        raise failed(f"cannot write '{path}': {error.strerror}") from None


def is_offline(call: Call) -> bool:
    """Return whether only the file changes: with --offline, or without a node."""
    if call.options.get("offline"):
        return True
    try:
        call.node  # noqa: B018
    except Failure:
        return True
    return False


def place(call: Call) -> str:
    return f"{call.options.get('node') or os.environ.get('RABBITMQ_NODENAME') or 'rabbit@' + socket.gethostname()}"


def change(call: Call, names: list[str], doing: str) -> str:
    """Write the new list of enabled plugins, and return a report of the changes."""
    offline = is_offline(call)
    node = place(call) if offline else call.node
    lines = [] if call.is_quiet else [f"{doing} plugins on node {node}:", *named(call)]
    print("\n".join(lines), flush=True)
    unknown = [name for name in call.arguments if name not in NEEDS]
    if unknown:
        raise failed(f"{{:plugins_not_found, [{', '.join(f':{name}' for name in unknown)}]}}", EX_SOFTWARE)
    before, after = set(with_needed(read())), set(with_needed(names))
    write(names)
    if doing == "Enabling":
        warn_of_missing(call.arguments)
    lines = ["The following plugins have been configured:", *(f"  {described(name)}" for name in sorted(after))]
    lines.append(f"Applying plugin configuration to {node}...")
    if after == before:
        return "\n".join(
            [*lines, "nothing to do." if call.command.name == "set" else "Plugin configuration unchanged."]
        )
    started, stopped = (sorted(BUILT_IN & (some - others)) for some, others in ((after, before), (before, after)))
    for verb, changed in (("enabled", started), ("disabled", stopped)):
        if changed:
            lines += [f"The following plugins have been {verb}:", *(f"  {name}" for name in changed), ""]
    running = set() if offline else set(with_needed(at_node(call)))
    if offline or not running.issuperset(started) or running & set(stopped):
        # A broker reads the file when it starts.
        late = "Offline change; changes" if offline else "Changes"
        return "\n".join([*lines, f"set {len(after)} plugins.", f"{late} will take effect at broker restart."])
    counts = [f"{verb} {len(some)} plugins" for verb, some in (("started", started), ("stopped", stopped)) if some]
    return "\n".join([*lines, f"{' and '.join(counts) or 'started 0 plugins'}."])


def warn_of_missing(names: Iterable[str]) -> None:
    """Warn of plugins that this broker does not have. Scripts for several brokers enable them, so it is no error."""
    if absent := missing(names):
        them = "them" if len(absent) > 1 else "it"
        print(f"Warning: this broker does not have {', '.join(absent)}: enabling {them} has no effect", file=sys.stderr)


def described(name: str) -> str:
    """Return a name as the log of the broker's start shows it."""
    return name if name in BUILT_IN else f"{name} (not available)"


def named(call: Call) -> list[str]:
    if not call.options.get("all"):
        return call.arguments
    return sorted(BUILT_IN if call.command.name == "enable" else NEEDS)


def enable(call: Call) -> str:
    return change(call, sorted({*read(), *named(call)}), "Enabling")


def disable(call: Call) -> str:
    gone = set(named(call))
    # Plugins that require a disabled one are disabled, too.
    kept = [name for name in read() if not gone & set(with_needed([name]))]
    return change(call, kept, "Disabling")


def set_(call: Call) -> str:
    return change(call, sorted(set(call.arguments)), "Enabling")


def some(call: Call) -> None:
    if not call.arguments and not call.options.get("all"):
        raise Misuse("not enough arguments.")


def list_(call: Call) -> Report:
    pattern = pattern_of(call.arguments[0] if call.arguments else ".*")
    is_running = not is_offline(call)
    active = at_node(call) if is_running else []
    running = with_needed(active)
    # Without the file, the node's plugins are those that are on without being named.
    explicit = set(active if is_running and not has_file() else read())
    warn_of_missing(explicit)
    implicit = set(with_needed(explicit)) - explicit
    version = str(call.get("/_broker/node")["version"]) if is_running else _version()
    names = [name for name in sorted(BUILT_IN) if pattern.search(name)]
    if call.options.get("enabled"):
        names = [name for name in names if name in explicit]
    elif call.options.get("implicitly_enabled"):
        names = [name for name in names if name in explicit | implicit]
    states = {
        name: "enabled" if name in explicit else "implicit" if name in implicit else "not_enabled" for name in names
    }
    value = {
        "format": "normal",
        "plugins": [
            {"enabled": state, "name": name, "running": name in running, "version": version}
            for name, state in states.items()
        ],
        "status": "running" if is_running else "node_down",
    }
    lines = [] if call.is_quiet else [f'Listing plugins with pattern "{pattern.pattern}" ...']
    if call.options.get("minimal"):
        return Report("\n".join([*lines, *names]), value)
    node = call.node if is_running else place(call)
    lines += [
        " Configured: E = explicitly enabled; e = implicitly enabled",
        f" | Status: {f'* = running on {node}' if is_running else f'[failed to contact {node} - status not shown]'}",
        " |/",
    ]
    width = max(map(len, names), default=0)
    for name, state in states.items():
        mark = {"enabled": "E", "implicit": "e"}.get(state, " ")
        lines.append(f"[{mark}{'*' if name in running else ' '}] {name:{width}} {version}")
    return Report("\n".join(lines), value)


def _version() -> str:
    from amqp_broker.settings.profiles import DEFAULT, PROFILES

    return PROFILES[DEFAULT].version


def is_enabled(call: Call) -> str:
    offline = is_offline(call)
    names = call.arguments
    enabled = [name for name in with_needed(read() if offline else at_node(call)) if name in BUILT_IN]
    what = f"plugin{'s' * (len(names) > 1)} {', '.join(names)}"
    verb = "are" if len(names) > 1 else "is"
    if not call.is_quiet:
        print(
            f"Inferring if {what} {verb} from local environment..."
            if offline
            else f"Asking node {call.node} if {what} {verb} enabled...",
            flush=True,
        )
    where = "" if offline else f" on node {call.node}"
    lacking = [name for name in names if name not in enabled]
    if lacking:
        subject = f"Plugin{'s' * (len(lacking) > 1)} {', '.join(lacking)} {'are' if len(lacking) > 1 else 'is'}"
        raise failed(f"{subject} not enabled{where}. Enabled plugins and dependencies: {', '.join(enabled)}")
    return f"{what.capitalize()} {verb} enabled{where}"


def directories(call: Call) -> str:
    offline = is_offline(call)
    if not call.is_quiet:
        print(
            "Listing plugin directories inferred from local environment..."
            if offline
            else f"Listing plugin directories used by node {call.node}",
            flush=True,
        )
    folder = os.environ.get("RABBITMQ_PLUGINS_DIR", "(none: plugins are built in)")
    return f"Plugin archives directory: {folder}\nPlugin expansion directory: (none)\nEnabled plugins file: {file_of()}"


def command(name: str, usage: str, about: str, run: Callable[[Call], Any], **further: Any) -> Command:
    return Command(name, usage, about, GROUP, run=run, tools=(PLUGINS,), is_for_stopped=True, **further)


ONES = "<plugin1> [ <plugin2>] | --all [--offline] [--online]"
COMMANDS = (
    command("enable", ONES, "Enables one or more plugins", enable, check=some, counts=(0, 1000)),
    command("disable", ONES, "Disables one or more plugins", disable, check=some, counts=(0, 1000)),
    command(
        "set",
        "<plugin1> [ <plugin2>] [--offline] [--online]",
        "Enables one or more plugins, disables the rest",
        set_,
        counts=(0, 1000),
    ),
    command(
        "list",
        "[pattern] [--verbose|-v] [--minimal|-m] [--enabled|-E] [--implicitly-enabled|-e] [--offline] [--online]",
        "Lists plugins and their state",
        list_,
        counts=(0, 1),
    ),
    command(
        "is_enabled",
        "<plugin1> [ <plugin2>] [--offline] [--online]",
        "Health check that exits with a non-zero code if provided plugins are not enabled on target node",
        is_enabled,
        counts=(1, 1000),
    ),
    command(
        "directories",
        "[--offline] [--online]",
        "Displays plugin directory and enabled plugin file paths",
        directories,
        counts=(0, 0),
    ),
)
