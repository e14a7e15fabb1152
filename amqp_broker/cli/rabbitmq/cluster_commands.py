"""Commands for clusters and their upgrades, at a broker that is a single node."""

from __future__ import annotations

from typing import Any, NoReturn

from amqp_broker.cli.rabbitmq.command import CTL, DIAGNOSTICS, PLUGINS, QUEUES, UPGRADE, Call, Command, failed
from amqp_broker.cli.rabbitmq.node_commands import change_listeners, must_be_stopped, nothing
from amqp_broker.cli.rabbitmq.words import path_of

CLUSTER, NODES, UPGRADES, DEPRECATED = "Cluster", "Nodes", "Upgrade", "Deprecated"
NO_RAFT = "incompatible with Raft-based features such as quorum queues, streams, Khepri. "
RENAME = f"DEPRECATED. This command is a no-op. Node renaming is {NO_RAFT}"
UPDATE = f"DEPRECATED. This command is a no-op. Node update is {NO_RAFT}"


def join(call: Call) -> NoReturn:
    raise failed("this broker is a single node, which joins no cluster")


def forget(call: Call) -> NoReturn:
    if call.arguments[0] == call.node:
        raise failed("this broker is a single node, which cannot be removed")
    raise failed('{:not_a_cluster_node, ~c"The node selected is not in the cluster."}')


def check_offline(call: Call) -> None:
    if call.options.get("offline"):
        must_be_down(call)


def must_be_down(call: Call) -> None:
    """Raise Misuse, as the node runs."""
    from amqp_broker.cli.rabbitmq.words import Misuse

    if call.node:
        raise Misuse("this command requires the target node to be stopped.", headline="Error")


def drain(call: Call) -> None:
    """Accept no connections, and close those that are open."""
    change_listeners(call, False)
    for connection in call.get("/api/connections"):
        call.ask(
            "DELETE", f"/api/connections/{path_of(connection['name'])}", X_Reason="Node was put into maintenance mode"
        )


def post_upgrade(call: Call) -> str:
    kinds = [queue.get("type") for queue in call.get("/api/queues")]
    quorum, streams = kinds.count("quorum"), kinds.count("stream")
    counts = f'{{"Number of quorum queues", {quorum}}}, {{"Number of streams", {streams}}}'
    return f'[{{"Node name", :{call.node}}}, {counts}]'


def complete(call: Call) -> str | None:
    """Return the commands of the tool that begin with a text."""
    from amqp_broker.cli.rabbitmq.tool_main import commands_of

    prefix = "".join(call.arguments)
    return "\n".join(sorted(name for name in commands_of(call.tool) if name.startswith(prefix))) or None


def upgrade(name: str, about: str, says: str, run: Any, **further: Any) -> Command:
    return Command(name, "", about, UPGRADES, says=says, run=run, **{"tools": (UPGRADE,), **further})


COMMANDS = (
    Command(
        "autocomplete",
        "[<prefix>] [--timeout <timeout>]",
        "Provides command name autocomplete variants",
        "Help",
        run=complete,
        tools=(CTL, DIAGNOSTICS, PLUGINS, QUEUES),
        is_for_stopped=True,
    ),
    Command(
        "force_standalone_khepri_boot",
        "",
        "Forces node to start as a standalone node",
        CLUSTER,
        run=nothing,
        is_for_stopped=True,
    ),
    Command(
        "forget_cluster_node",
        "[--offline] <existing_cluster_member_node>",
        "Removes a node from the cluster",
        CLUSTER,
        says="Removing node {0} from the cluster",
        check=check_offline,
        run=forget,
        is_for_stopped=True,
    ),
    Command(
        "join_cluster",
        "[--disc] <existing_cluster_member>",
        "Instructs the node to become a member of the cluster that the specified node is in",
        CLUSTER,
        says="Clustering node {node} with {0}",
        run=join,
        is_for_stopped=True,
    ),
    Command(
        "rename_cluster_node",
        "<oldnode1> <newnode1> [oldnode2] [newnode2] ...",
        RENAME,
        DEPRECATED,
        says=RENAME,
        run=nothing,
        is_for_stopped=True,
    ),
    Command(
        "update_cluster_nodes",
        "<seed_node>",
        UPDATE,
        DEPRECATED,
        says=UPDATE,
        check=must_be_stopped,
        run=nothing,
        is_for_stopped=True,
    ),
    upgrade(
        "has_reached_target_cluster_size",
        "Health check that exits with a non-zero code if the cluster has not yet reached its target size",
        "Checking if target cluster size has been reached on node {node} ...",
        lambda call: f"Target cluster size has been reached on node {call.node}",
        tools=(CTL, DIAGNOSTICS, UPGRADE),
    ),
    upgrade(
        "await_online_quorum_plus_one",
        "Waits for all quorum queues and streams to have an above minimum online quorum. This makes sure that no"
        " queues/streams would lose their quorum if the target node is shut down",
        "Will wait for a quorum + 1 of nodes to be online for all quorum queues and streams for 120 seconds...",
        lambda call: "Target node seems to be the only one in a single node cluster, the command does not apply",
    ),
    upgrade(
        "drain",
        "Puts the node in maintenance mode. Such nodes will not serve any client traffic or host any primary queue"
        " replicas",
        "Will put node {node} into maintenance mode. The node will no longer serve any client traffic!",
        drain,
    ),
    upgrade(
        "revive",
        "Puts the node out of maintenance and into regular operating mode. Such nodes will again serve client traffic"
        " and host primary queue replicas",
        "Will put node {node} back into regular operating mode. The node will again serve client traffic and host"
        " primary queue replicas.",
        lambda call: change_listeners(call, True),
    ),
    upgrade(
        "post_upgrade",
        "Runs post-upgrade tasks",
        "Executing post upgrade tasks...\nRebalancing queue masters...",
        post_upgrade,
    ),
)
