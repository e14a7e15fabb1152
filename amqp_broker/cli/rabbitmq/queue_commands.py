"""rabbitmq-queues: commands for replicated queues, which have a single member here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from amqp_broker.cli.rabbitmq.columns import Atom
from amqp_broker.cli.rabbitmq.command import DIAGNOSTICS, QUEUES, Call, Command, failed
from amqp_broker.cli.rabbitmq.tool import Rows

GROUP = "Monitoring, observability and health checks"


def queue_of(call: Call, kind: str) -> dict[str, Any]:
    """Return a queue of this kind. Raises Failure for another kind."""
    found = call.ask("GET", call.fill("/api/queues/{vhost}/{0}", is_path=True))
    if found.status == 404:
        raise failed("not_found")
    queue: dict[str, Any] = found.value
    if queue.get("type") != kind:
        raise failed(f"Cannot get {kind} status of a {queue.get('type')} queue")
    return queue


def quorum_status(call: Call) -> Rows:
    queue_of(call, "quorum")
    call.options.setdefault("formatter", "pretty_table")
    return Rows(["Node Name", "Raft State", "Term"], [[Atom(call.node), Atom("leader"), 1]])


def stream_status(call: Call) -> Rows:
    queue_of(call, "stream")
    call.options.setdefault("formatter", "pretty_table")
    return Rows(["role", "node"], [[Atom("writer"), Atom(call.node)]])


def rebalance(call: Call) -> Rows:
    kinds = [queue.get("type") for queue in call.get("/api/queues")]
    call.options.setdefault("formatter", "pretty_table")
    names = ["Node name", "Number of quorum queues", "Number of replicated classic queues"]
    return Rows(names, [[Atom(call.node), kinds.count("quorum"), 0]])


def only_node(call: Call) -> NoReturn:
    raise failed("this broker is a single node, which holds every member of each queue")


def command(
    name: str, usage: str, about: str, says: str, run: Callable[[Call], Rows], tools: tuple[str, ...] = (QUEUES,)
) -> Command:
    return Command(name, usage, about, GROUP, says=says, run=run, tools=tools)


COMMANDS = (
    command(
        "quorum_status",
        "[--vhost <vhost>] <queue>",
        "Displays quorum status of a quorum queue",
        "Status of quorum queue {0} on node {node} ...",
        quorum_status,
        (DIAGNOSTICS, QUEUES),
    ),
    command(
        "stream_status",
        "[--vhost <vhost>] [--tracking] <stream>",
        "Displays the status of a stream",
        "Status of stream {0} on node {node} ...",
        stream_status,
        (DIAGNOSTICS, QUEUES),
    ),
    command(
        "rebalance",
        "<all|classic|quorum> [--vhost-pattern <pattern>] [--queue-pattern <pattern>]",
        "Re-balances leaders of replicated queues across up-and-running cluster nodes",
        "Re-balancing leaders of {0} queues...",
        rebalance,
    ),
    command(
        "add_member",
        "[--vhost <vhost>] <queue> <node> [--timeout <timeout>]",
        "Adds a quorum queue member (replica) on the given node.",
        "Adding a replica for queue {0} on node {1}...",
        only_node,
    ),
    command(
        "delete_member",
        "[--vhost <vhost>] <queue> <node>",
        "Removes a quorum queue member (replica) on the given node.",
        "Removing a replica of queue {0} on node {1}...",
        only_node,
    ),
    command(
        "grow",
        "<node> <all|even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>]",
        "Grows quorum queue clusters by adding a member (replica) on the specified node for all matching queues",
        "Growing {1} quorum queues on {0}...",
        only_node,
    ),
    command(
        "shrink",
        "<node> [--errors-only]",
        "Shrinks quorum queue clusters by removing any members (replicas) on the given node.",
        "Shrinking quorum queues on {0}...",
        only_node,
    ),
)
