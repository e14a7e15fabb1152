"""Commands for the node: start and stop, limits, and names."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NoReturn

from amqp_broker.cli.rabbitmq.command import BOTH, OPERATIONS, Call, Command, Failure, failed, octets_of, simple
from amqp_broker.cli.rabbitmq.words import Misuse, is_number
from amqp_broker.cli.shared.node_finder import NotRunning
from amqp_broker.exit_codes import EX_DATAERR

CONFIGURATION = "Configuration and Environment"
LOG_LEVELS = ("debug", "info", "warning", "error", "critical", "none")
UNITS = ("", "k", "m", "g", "t", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib")
# Seconds between checks of the state of a node.
POLL_S = 0.02


# Start and stop


def wait_for(call: Call, is_reached: Callable[[], bool]) -> None:
    """Wait for a condition. Raises Failure after the timeout of the command."""
    deadline = None if call.timeout_s is None else time.monotonic() + call.timeout_s
    while not is_reached():
        if deadline is not None and time.monotonic() > deadline:
            raise call.timed_out()
        time.sleep(POLL_S)


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
    """Let `stop --idempotent` succeed for a node that is down."""
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
    except (ProcessLookupError, OverflowError):
        return False
    return True


def check_count(call: Call) -> None:
    if not call.arguments[0].isdecimal():
        raise Misuse("Target count must be a positive number")


def await_startup(call: Call) -> None:
    """Wait until a node runs and is started."""

    def is_started() -> bool:
        try:
            return call.find(str(call.options.get("node", ""))).is_started
        except NotRunning:
            return False

    wait_for(call, is_started)


def wait(call: Call) -> str:
    """Wait for a node whose process id is given, directly or in a file."""
    if not call.arguments and "pid" not in call.options:
        raise Misuse('"No pid or pidfile specified"')
    pid, name = str(call.options.get("pid", "")), call.wanted_node()
    if not pid:
        path = call.arguments[0]
        print(f"Waiting for pid file '{path}' to appear", flush=True)
        wait_for(call, lambda: os.path.exists(path))  # noqa: PTH110
        pid = octets_of(path).decode("utf-8", "replace").strip()
        print(f"pid is {pid}", flush=True)
    print(f"Waiting for erlang distribution on node '{name}' while OS process '{pid}' is running", flush=True)
    print(f"Waiting for applications 'rabbit_and_plugins' to start on node '{name}'", flush=True)
    if not pid.isdecimal() or not is_alive(int(pid)):
        raise failed("process_not_running")
    await_startup(call)
    return f"Applications 'rabbit_and_plugins' are running on node '{name}'"


# Limits


def is_amount(text: str) -> bool:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return digits.isdecimal() and text[len(digits) :].lower() in UNITS


def in_octets(amount: str) -> str:
    """Return an amount with its unit."""
    return f"{amount}B" if amount.isdecimal() else amount


def share_of(number: str) -> str:
    """Return a number with digits on both sides of its point."""
    return f"0{number}0" if "." in number else f"{number}.0"


def check_memory(call: Call) -> None:
    words = call.arguments
    if words[0] == "absolute" and len(words) == 2 and is_amount(words[1]):
        call.options["shown"], call.options["given"] = f"{words[1]} bytes", in_octets(words[1])
    elif len(words) == 1 and is_number(words[0]):
        if float(words[0]) > 1:
            raise Misuse("Bad argument: The threshold should be a fraction between 0.0 and 1.0", EX_DATAERR)
        call.options["shown"], call.options["given"] = words[0], share_of(words[0])
    elif words == ["absolute"]:
        raise Misuse("not enough arguments.")
    else:
        raise Misuse("Bad argument.", EX_DATAERR)


def check_disk(call: Call) -> None:
    words = call.arguments
    if words[0] == "mem_relative" and len(words) == 2 and is_number(words[1]):
        call.options["shown"], call.options["given"] = f"{words[1]} times the total RAM", share_of(words[1])
    elif len(words) == 1 and is_amount(words[0]):
        call.options["shown"], call.options["given"] = f"{words[0]} bytes", in_octets(words[0])
    else:
        raise Misuse("Bad argument.", EX_DATAERR)


def set_log_level(call: Call) -> None:
    level = call.arguments[-1]
    if level not in LOG_LEVELS:
        raise failed(f"level {level} is not supported. Try one of {', '.join(LOG_LEVELS)}")
    # The broker has no level above error.
    call.request("PUT", "/_broker/log-level", {"value": "error" if level in ("critical", "none") else level})


def nothing(call: Call) -> None:
    """Do nothing, as a single node without Erlang needs no action."""


def given_value(call: Call) -> dict[str, str]:
    return {"value": call.options["given"]}


def change_listeners(call: Call, is_open: bool) -> None:
    change_app(call, "resume-listeners" if is_open else "suspend-listeners", "running" if is_open else "suspended")


def announce_level(call: Call, text: str, verb: Callable[[Call], None]) -> None:
    """Announce the change only if the level is valid."""
    if call.arguments[-1] in LOG_LEVELS and not call.is_quiet:
        print(text, flush=True)
    verb(call)


def rotate_logs(call: Call) -> NoReturn:
    raise failed("This command does not rotate logs anymore [deprecated]")


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
        timeout_s=10.0,
    ),
    simple(
        "await_online_nodes",
        "<count> [--timeout <timeout>]",
        "Waits for <count> nodes to join the cluster",
        "Cluster",
        "Will wait for at least {0} nodes to join the cluster of {node}. Timeout: 300 seconds.",
        check=check_count,
        # The only node answers.
        run=lambda call: wait_for(call, lambda: int(call.arguments[0]) <= 1),
        timeout_s=300.0,
    ),
    simple(
        "rotate_logs",
        "",
        "Does nothing [deprecated]",
        "Nodes",
        "",
        run=rotate_logs,
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
        run=lambda call: announce_level(call, f'Setting log level to "{call.arguments[-1]}" ...', set_log_level),
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
)
