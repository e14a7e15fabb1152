"""Commands for the node: its life, its limits, its definitions, its connections and queues."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from amqp_broker.cli.columns import Atom, pid_of
from amqp_broker.cli.command import (
    BOTH,
    EX_DATAERR,
    EX_USAGE,
    Call,
    Command,
    Failure,
    Missing,
    Misuse,
    failed,
    path_of,
)
from amqp_broker.cli.lists import NO_VHOST
from amqp_broker.cli.nodes import NotRunning
from amqp_broker.cli.policies import json_of
from amqp_broker.cli.progress import showing_progress

CONFIGURATION = "Configuration and Environment"
OPERATIONS = "Operations"
LOG_LEVELS = ("debug", "info", "warning", "error", "critical", "none")
UNITS = ("", "k", "m", "g", "t", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib")
# How long to wait between looks at what a node does.
LOOK_S = 0.02


# Its life


def wait_for(call: Call, is_reached: Callable[[], bool]) -> None:
    """Look again and again. Raises Failure after the time that the command has."""
    deadline = None if call.timeout_s is None else time.monotonic() + call.timeout_s
    while not is_reached():
        if deadline is not None and time.monotonic() > deadline:
            raise call.timed_out()
        time.sleep(LOOK_S)


def change_app(call: Call, verb: str, wanted: str) -> None:
    call.request("POST", f"/_broker/{verb}")

    def is_reached() -> bool:
        node = call.state()
        if node["problem"]:
            raise failed(node["problem"])
        return bool(node["state"] == wanted)

    wait_for(call, is_reached)


def must_be_stopped(call: Call) -> None:
    if call.running.is_started:
        raise Misuse(
            "this command requires the 'rabbit' app to be stopped on the target node. "
            "Stop it with 'rabbitmqctl stop_app'.",
            headline="Error",
        )


def stop(call: Call) -> None:
    call.request("POST", "/_broker/stop")


def maybe_idempotent(call: Call) -> None:
    """`stop --idempotent` is content with a node that is down already."""
    if call.options.get("idempotent"):
        try:
            call.node  # noqa: B018
        except Failure:
            raise Failure("", 0) from None


def shutdown(call: Call) -> str:
    node, pid = call.node, call.state()["pid"]
    if not call.is_quiet:
        print(f"Shutting down RabbitMQ node {node} running at PID {pid}", flush=True)
    stop(call)
    if not call.is_quiet:
        print(f"Waiting for PID {pid} to terminate", flush=True)
    wait_for(call, lambda: not is_alive(pid))
    return f"RabbitMQ node {node} running at PID {pid} successfully shut down"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True


def await_startup(call: Call) -> None:
    """Wait until there is a node, and it is started."""

    def is_started() -> bool:
        try:
            return call.find(str(call.options.get("node", ""))).is_started
        except NotRunning:
            return False

    wait_for(call, is_started)


def wait(call: Call) -> str:
    """Wait for a node whose process is known, by its id or by a file that has it."""
    if not call.arguments and "pid" not in call.options:
        raise Misuse('"No pid or pidfile specified"')
    pid, name = str(call.options.get("pid", "")), call.wanted_node()
    if not pid:
        path = call.arguments[0]
        print(f"Waiting for pid file '{path}' to appear", flush=True)
        wait_for(call, lambda: os.path.exists(path))  # noqa: PTH110
        with open(path) as file:  # noqa: PTH123
            pid = file.read().strip()
        print(f"pid is {pid}", flush=True)
    print(f"Waiting for erlang distribution on node '{name}' while OS process '{pid}' is running", flush=True)
    print(f"Waiting for applications 'rabbit_and_plugins' to start on node '{name}'", flush=True)
    if not pid.isdigit() or not is_alive(int(pid)):
        raise failed("process_not_running")
    await_startup(call)
    return f"Applications 'rabbit_and_plugins' are running on node '{name}'"


# Its limits


def is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def is_amount(text: str) -> bool:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return digits.isdigit() and text[len(digits) :].lower() in UNITS


def check_memory(call: Call) -> None:
    words = call.arguments
    if words[0] == "absolute" and len(words) == 2 and is_amount(words[1]):
        call.options["shown"], call.options["given"] = f"{words[1]} bytes", words[1]
    elif len(words) == 1 and is_number(words[0]):
        if float(words[0]) > 1:
            raise Misuse("Bad argument: The threshold should be a fraction between 0.0 and 1.0", EX_DATAERR)
        call.options["shown"], call.options["given"] = words[0], str(float(words[0]))
    else:
        raise Misuse("Bad argument.", EX_DATAERR)


def check_disk(call: Call) -> None:
    words = call.arguments
    if words[0] == "mem_relative" and len(words) == 2 and is_number(words[1]):
        call.options["shown"], call.options["given"] = f"{words[1]} times the total RAM", str(float(words[1]))
    elif len(words) == 1 and is_amount(words[0]):
        call.options["shown"], call.options["given"] = f"{words[0]} bytes", words[0]
    else:
        raise Misuse("Bad argument.", EX_DATAERR)


def set_log_level(call: Call) -> None:
    level = call.arguments[-1]
    if level not in LOG_LEVELS:
        raise failed(f"level {level} is not supported. Try one of {', '.join(LOG_LEVELS)}")
    # Nothing is more severe here than an error.
    call.request("PUT", "/_broker/log-level", {"value": "error" if level in ("critical", "none") else level})


# Its definitions


def export_definitions(call: Call) -> None:
    path = call.arguments[0]
    text = json.dumps(call.get("/api/definitions"), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    if path == "-":
        print(text, end="")
        return
    try:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise failed(f"cannot write '{path}': {error.strerror}") from None


def check_file(call: Call) -> None:
    path = call.arguments[0]
    if path != "-" and not os.path.isfile(path):  # noqa: PTH113
        raise Misuse(f"Bad argument: File {path} does not exist", EX_DATAERR)
    call.options["what"] = "standard input" if path == "-" else f'a file at "{path}"'


def import_definitions(call: Call) -> str:
    path = call.arguments[0]
    if path == "-":
        octets = sys.stdin.buffer.read()
    else:
        with open(path, "rb") as file:  # noqa: PTH123
            octets = file.read()
    json_of(octets.decode("utf-8", "replace"))
    with showing_progress("Importing definitions"):
        call.request("POST", "/api/definitions", octets)
    return "Successfully started definition import. This process is asynchronous and can take some time."


def says_export(call: Call) -> None:
    if call.arguments[0] == "-":
        call.options["quiet"] = True
    call.options["what"] = f'a file at "{call.arguments[0]}"'


# Its connections and queues


def close_connection(call: Call) -> None:
    wanted, explanation = call.arguments
    for connection in call.get("/api/connections"):
        if wanted in (connection["name"], pid_of(call.node, connection["name"])):
            close(call, connection["name"], explanation)
            return
    raise failed(f'Error:\n{{:invalid_pid_syntax, "{wanted}"}}')


def close(call: Call, name: str, explanation: str) -> None:
    # One that has gone meanwhile is closed, too.
    call.ask("DELETE", f"/api/connections/{path_of(name)}", X_Reason=explanation)


def close_all(call: Call, field: str, wanted: str | None) -> int:
    """Close the connections of a user or vhost, or all (None); how many that were."""
    names = [item["name"] for item in call.get("/api/connections") if wanted in (None, item.get(field))]
    names = names[: call.options.get("limit") or None]
    with showing_progress("Closing connections", len(names)) as advance:
        for name in names:
            close(call, name, call.arguments[-1])
            time.sleep(call.options.get("per_connection_delay", 0) / 1000)
            advance()
    return len(names)


def where_connections(call: Call) -> None:
    call.options["where"] = f"to node {call.node}" if call.options.get("global") else f"in vhost {call.vhost}"


def close_all_connections(call: Call) -> str:
    vhost = None if call.options.get("global") else call.vhost
    return f"Closed {close_all(call, 'vhost', vhost)} connections"


def close_all_user_connections(call: Call) -> None:
    close_all(call, "user", call.arguments[0])


def delete_conditions(call: Call) -> None:
    given = [f"if queue is {word} " for word in ("empty", "unused") if call.options.get(f"if_{word}")]
    call.options["when"] = "and ".join(given)


def delete_queue(call: Call) -> str:
    target = call.fill("/api/queues/{vhost}/{0}", is_path=True)
    found = call.ask("GET", target)
    if found.status == 404:
        raise failed("Queue not found", EX_USAGE)
    conditions = [f"if-{word}=true" for word in ("empty", "unused") if call.options.get(f"if_{word}")]
    answer = call.ask("DELETE", "?".join([target, "&".join(conditions)]) if conditions else target)
    if not answer.is_ok:
        if "empty" in answer.reason:
            raise failed("Queue is not empty", EX_USAGE)
        if "in use" in answer.reason:
            raise failed("Queue is in use", EX_USAGE)
        raise failed(answer.reason)
    return f"Queue was successfully deleted with {found.value.get('messages', 0)} ready messages"


def purge_queue(call: Call) -> None:
    with showing_progress("Purging"):
        call.request("DELETE", call.fill("/api/queues/{vhost}/{0}/contents", is_path=True))


def enable_feature(call: Call) -> None:
    name = call.arguments[0]
    flags = [flag["name"] for flag in call.get("/api/feature-flags")]
    if name != "all" and name not in flags:
        raise failed(f"This feature flag is not supported by node {call.node}", EX_USAGE)
    for flag in flags if name == "all" else [name]:
        call.request("PUT", f"/api/feature-flags/{path_of(flag)}/enable", {"name": flag})


def says_flags(call: Call) -> None:
    name = call.arguments[0]
    call.options["what"] = "all feature flags" if name == "all" else f'feature flag "{name}"'


# What of Erlang a script may ask
EXPRESSIONS: dict[str, Callable[[Call], Any]] = {
    "node()": lambda call: Atom(call.node),
    "erlang:node()": lambda call: Atom(call.node),
    "rabbit:is_running()": lambda call: call.state()["state"] == "running",
    "rabbit_nodes:cluster_name()": lambda call: f'<<"{call.get("/api/overview")["cluster_name"]}">>',
    "rabbit_misc:version()": lambda call: f'"{call.state()["version"]}"',
}


def evaluate(call: Call) -> Any:
    expression = call.arguments[0].strip().rstrip(".").strip()
    known = EXPRESSIONS.get(expression.replace(" ", ""))
    if known is None:
        raise failed(f"this broker has no Erlang; of expressions it knows {', '.join(EXPRESSIONS)}")
    return known(call)


def simple(name: str, usage: str, about: str, group: str, says: str, *asks: str, **further: Any) -> Command:
    """A command that is one request, or none."""
    return Command(name, usage, about, group, says=says, asks=(asks[0], asks[1]) if asks else None, **further)


def nothing(call: Call) -> None:
    """What a broker of one node, without Erlang, has done already."""


def given_value(call: Call) -> dict[str, str]:
    return {"value": call.options["given"]}


NO_QUEUE = Missing("/api/queues/{vhost}/{0}", "Error:\nnot_found", 69)

COMMANDS = (
    simple(
        "stop_app",
        "",
        "Stops the RabbitMQ application, leaving the runtime (Erlang VM) running",
        "Nodes",
        "Stopping rabbit application on node {node} ...",
        run=lambda call: change_app(call, "stop-app", "stopped"),
        is_for_stopped=True,
    ),
    simple(
        "start_app",
        "",
        "Starts the RabbitMQ application but leaves the runtime (Erlang VM) running",
        "Nodes",
        "Starting node {node} ...",
        run=lambda call: change_app(call, "start-app", "running"),
        is_for_stopped=True,
    ),
    simple(
        "reset",
        "",
        "Instructs a RabbitMQ node to leave the cluster and return to its virgin state",
        "Nodes",
        "Resetting node {node} ...",
        *("POST", "/_broker/reset-node"),
        check=must_be_stopped,
        is_for_stopped=True,
    ),
    simple(
        "force_reset",
        "",
        "Forcefully returns a RabbitMQ node to its virgin state",
        "Cluster",
        "Forcefully resetting node {node} ...",
        *("POST", "/_broker/reset-node"),
        check=must_be_stopped,
        is_for_stopped=True,
    ),
    simple(
        "stop",
        "[--idempotent] [<pidfile>]",
        "Stops RabbitMQ and its runtime (Erlang VM). Requires a local node pid file path to monitor progress.",
        "Nodes",
        "Stopping and halting node {node} ...",
        check=maybe_idempotent,
        run=stop,
        is_for_stopped=True,
    ),
    Command(
        "shutdown",
        "[--wait] [--timeout <timeout>]",
        "Stops RabbitMQ and its runtime (Erlang VM). Monitors progress for local nodes. Does not require a PID file"
        " path.",
        "Nodes",
        run=shutdown,
        is_for_stopped=True,
    ),
    Command(
        "await_startup",
        "[--timeout <timeout>]",
        "Waits for the RabbitMQ application to start on the target node",
        "Nodes",
        run=await_startup,
        is_for_stopped=True,
        timeout_s=300.0,
    ),
    Command(
        "wait",
        "[<pidfile>] [--pid|-P <pid>] [--timeout <timeout>]",
        "Waits for RabbitMQ node startup by monitoring a local PID file. See also 'rabbitmqctl await_online_nodes'",
        "Nodes",
        run=wait,
        is_for_stopped=True,
        tools=BOTH,
        timeout_s=None,
    ),
    simple(
        "await_online_nodes",
        "<count> [--timeout <timeout>]",
        "Waits for <count> nodes to join the cluster",
        "Cluster",
        "Will wait for at least {0} nodes to join the cluster of {node}. Timeout: 300 seconds.",
        run=lambda call: None if call.arguments[0] == "1" else wait_for(call, lambda: False),
        timeout_s=300.0,
    ),
    simple(
        "rotate_logs",
        "",
        "Does nothing [deprecated]",
        "Nodes",
        "",
        run=lambda call: _raise(failed("This command does not rotate logs anymore [deprecated]")),
    ),
    simple(
        "force_boot",
        "",
        "Forces node to start even if it cannot contact or rejoin any of its previously known peers",
        "Cluster",
        "",
        run=nothing,
        is_for_stopped=True,
    ),
    simple(
        "force_gc",
        "[--timeout <timeout>]",
        "Makes all Erlang processes on the target node perform/schedule a full sweep garbage collection",
        OPERATIONS,
        "Will ask all processes on node {node} to schedule a full sweep GC",
        run=nothing,
    ),
    simple(
        "suspend_listeners",
        "",
        "Suspends client connection listeners so that no new client connections are accepted",
        OPERATIONS,
        "Will suspend client connection listeners on node {node}. The node will no longer accept client connections!",
        run=lambda call: change_listeners(call, False),
    ),
    simple(
        "resume_listeners",
        "",
        "Resumes client connection listeners making them accept client connections again",
        OPERATIONS,
        "Will resume client connection listeners on node {node}. The node will now accept client connections",
        run=lambda call: change_listeners(call, True),
    ),
    simple(
        "set_vm_memory_high_watermark",
        "<fraction> | absolute <value>",
        "Sets the vm_memory_high_watermark setting",
        CONFIGURATION,
        "Setting memory threshold on {node} to {shown} ...",
        *("PUT", "/_broker/memory-limit"),
        body=given_value,
        check=check_memory,
        counts=(1, 2),
    ),
    simple(
        "set_disk_free_limit",
        "<disk_limit> | mem_relative <fraction>",
        "Sets the disk_free_limit setting",
        CONFIGURATION,
        "Setting disk free limit on {node} to {shown} ...",
        *("PUT", "/_broker/disk-free-limit"),
        body=given_value,
        check=check_disk,
        counts=(1, 2),
    ),
    Command(
        "set_log_level",
        "<log_level>",
        "Sets log level in the running node",
        CONFIGURATION,
        run=lambda call: tell_and(call, f'Setting log level to "{call.arguments[-1]}" ...', set_log_level),
    ),
    simple(
        "set_cluster_name",
        "<name>",
        "Sets the cluster name",
        CONFIGURATION,
        "Setting cluster name to {0} ...",
        *("PUT", "/api/cluster-name"),
        body=lambda call: {"name": call.arguments[0]},
    ),
    simple(
        "export_definitions",
        '<file_path | "-"> [--format <json | erlang>] [--timeout <timeout>]',
        "Exports definitions in JSON or compressed Erlang Term Format.",
        "Definitions",
        "Exporting definitions in JSON to {what} ...",
        check=says_export,
        run=export_definitions,
        timeout_s=300.0,
    ),
    simple(
        "import_definitions",
        '<file_path | "-"> [--format <json | erlang>] [--skip-if-unchanged] [--timeout <timeout>]',
        "Imports definitions in JSON or compressed Erlang Term Format.",
        "Definitions",
        "Importing definitions in JSON from {what} ...",
        check=check_file,
        run=import_definitions,
        timeout_s=300.0,
    ),
    simple(
        "enable_feature_flag",
        "<all | feature_flag>",
        "Enables a feature flag or all supported feature flags on the target node",
        "Feature flags",
        "Enabling {what} ...",
        check=says_flags,
        run=enable_feature,
    ),
    simple(
        "close_connection",
        "<connection pid> <explanation>",
        "Instructs the broker to close the connection associated with the Erlang process id",
        OPERATIONS,
        "Closing connection {0}, reason: {1}...",
        run=close_connection,
    ),
    simple(
        "close_all_connections",
        "[--vhost <vhost> --limit <limit>] [-n <node> --global] [--per-connection-delay <delay>] <explanation>",
        "Instructs the broker to close all connections for the specified vhost or entire RabbitMQ node",
        OPERATIONS,
        "Closing all connections {where}, reason: {0}...",
        check=where_connections,
        run=close_all_connections,
        counts=(1, 1),
    ),
    simple(
        "close_all_user_connections",
        "<username> <explanation>",
        "Instructs the broker to close all connections of the specified user",
        OPERATIONS,
        "Closing connections of user {0}, reason: {1}...",
        run=close_all_user_connections,
    ),
    simple(
        "eval",
        "<expression>",
        "Evaluates a snippet of Erlang code on the target node",
        OPERATIONS,
        "",
        run=evaluate,
    ),
    simple(
        "delete_queue",
        "<queue_name> [--if-empty|-e] [--if-unused|-u] [--timeout <timeout>]",
        "Deletes a queue",
        "Queues",
        "Deleting queue '{0}' on vhost '{vhost}' {when}...",
        check=delete_conditions,
        run=delete_queue,
    ),
    simple(
        "purge_queue",
        "<queue> [--timeout <timeout>]",
        "Purges a queue (removes all messages in it)",
        "Queues",
        "Purging queue '{0}' in vhost '{vhost}' ...",
        run=purge_queue,
        missing=(NO_VHOST, NO_QUEUE),
    ),
)


def change_listeners(call: Call, is_open: bool) -> None:
    change_app(call, "resume-listeners" if is_open else "suspend-listeners", "running" if is_open else "suspended")


def tell_and(call: Call, text: str, verb: Callable[[Call], None]) -> None:
    """Check what is given before it is told."""
    if call.arguments[-1] in LOG_LEVELS and not call.is_quiet:
        print(text, flush=True)
    verb(call)


def _raise(failure: Failure) -> None:
    raise failure
