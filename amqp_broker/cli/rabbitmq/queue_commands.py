"""rabbitmq-queues and rabbitmq-streams: commands for replicated queues. They have one member here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from amqp_broker.cli.rabbitmq.columns import Atom
from amqp_broker.cli.rabbitmq.command import (
    DIAGNOSTICS,
    NO_OBJECT,
    QUEUES,
    STREAMS,
    Call,
    Command,
    Failure,
    Former,
    failed,
    pattern_of,
)
from amqp_broker.cli.rabbitmq.tool import Rows
from amqp_broker.cli.rabbitmq.words import Misuse
from amqp_broker.exit_codes import EX_DATAERR, EX_UNAVAILABLE

CHECKS = "Monitoring, observability and health checks"
CLUSTER, REPLICATION, OPERATIONS = "Cluster", "Replication", "Operations"
NO_QUEUE = "queue '{0}' was not found in virtual host '{vhost}'"
NO_TARGET = "Error:\nTarget queue was not found in virtual host '{vhost}'"
UNSUPPORTED = "{:unsupported, :rabbit_classic_queue}"
SINGLE = "this broker is a single node, which holds every member of each queue"
# The broker has no Raft log, so all positions in it are 0.
RAFT = (
    *("Node Name", "Raft State", "Membership", "Last Log Index", "Last Written", "Last Applied", "Commit Index"),
    *("Snapshot Index", "Term", "Machine Version"),
)


def queue_of(call: Call, missing: str, exit_code: int = EX_DATAERR) -> dict[str, Any]:
    """Return the queue that the first argument names. Raises Failure with the text `missing`."""
    found = call.ask("GET", call.fill("/api/queues/{vhost}/{0}", is_path=True))
    if found.status == 404:
        raise Failure(call.fill(missing), exit_code)
    queue: dict[str, Any] = found.value
    return queue


def queue_before_4(call: Call, kind: str) -> None:
    """Raise Failure unless the queue exists and is of this kind."""
    queue = queue_of(call, "Error:\nnot_found", EX_UNAVAILABLE)
    if queue.get("type") != kind:
        raise failed(f"Cannot get {kind} status of a {queue.get('type')} queue")


def boxed(call: Call, names: list[str], rows: list[list[Any]]) -> Rows:
    """Return a list that RabbitMQ prints with lines between its cells."""
    if not call.formatter:
        call.options["formatter"] = "pretty_table"
    return Rows(names, rows, is_whole=True)


def raft_status(call: Call) -> Rows:
    return boxed(call, list(RAFT), [[Atom(call.node), Atom("leader"), Atom("voter"), 0, 0, 0, 0, 0, 1, 0]])


def quorum_status(call: Call) -> Rows:
    if queue_of(call, NO_QUEUE).get("type") == "classic":
        raise failed(UNSUPPORTED)
    return raft_status(call)


def quorum_status_before_4(call: Call) -> Rows:
    queue_before_4(call, "quorum")
    return boxed(call, ["Node Name", "Raft State", "Term"], [[Atom(call.node), Atom("leader"), 1]])


def stream_status(call: Call) -> Rows:
    queue = queue_of(call, NO_OBJECT)
    if queue.get("type") != "stream":
        raise failed(f"Cannot get stream status of a {queue.get('type')} queue")
    if call.options.get("tracking"):
        return boxed(call, [], [])
    peeked = call.get(call.fill("/_broker/queues/{vhost}/{0}/peek?count=1&truncate=0", is_path=True))["messages"]
    first = peeked[0]["offset"] if peeked else 0
    last = first + queue.get("messages", 0) - 1
    names = ["role", "node", "epoch", "offset", "committed_offset", "committed_chunk_id", "first_offset", "readers"]
    row = [Atom("writer"), Atom(call.node), 1, last, last, last, first, queue.get("consumers", 0)]
    return boxed(call, [*names, "segments"], [[*row, queue.get("segments", 1)]])


def stream_status_before_4(call: Call) -> Rows:
    queue_before_4(call, "stream")
    return boxed(call, ["role", "node"], [[Atom("writer"), Atom(call.node)]])


def check_rebalanced(call: Call) -> None:
    if call.arguments[0] not in ("all", "quorum", "stream"):
        raise failed(f"type {call.arguments[0]} is not supported. Try one of all, quorum, stream.")


def rebalance(call: Call, names: tuple[str, str] = ("Number of quorum queues", "Number of streams")) -> Rows:
    kinds = [queue.get("type") for queue in call.get("/api/queues")]
    streams = kinds.count("stream") if "streams" in names[1] else 0
    return boxed(call, ["Node name", *names], [[Atom(call.node), kinds.count("quorum"), streams]])


def rebalance_before_4(call: Call) -> Rows:
    return rebalance(call, ("Number of quorum queues", "Number of replicated classic queues"))


def only_node(call: Call) -> NoReturn:
    raise failed(SINGLE)


def none(call: Call) -> Rows:
    """Return that no queue has changed: a single node has all members."""
    return Rows([], [], is_whole=True)


def is_here(call: Call, name: str) -> bool:
    return name == call.node


def must_be_member(index: int) -> Callable[[Call], None]:
    """Return a check that an argument names a node of the cluster."""

    def check(call: Call) -> None:
        name = call.arguments[index]
        if not is_here(call, name):
            raise Misuse(f"node {name} is not a member of the cluster", headline="Error")

    return check


def add_member(call: Call) -> None:
    """Do nothing, as the node is a member already."""
    if queue_of(call, NO_QUEUE).get("type") == "classic":
        raise failed(UNSUPPORTED)


def delete_member(call: Call) -> None:
    add_member(call)
    if is_here(call, call.arguments[1]):
        only_node(call)


def shrink(call: Call) -> NoReturn:
    if is_here(call, call.arguments[0]):
        only_node(call)
    raise failed(f"{{:node_not_running, :{call.arguments[0]}}}")


def shrink_streams(call: Call) -> Rows:
    if is_here(call, call.arguments[0]):
        only_node(call)
    return none(call)


def force_checkpoint(call: Call) -> Rows:
    """Return the quorum queues that match the patterns; there is no log to cut off."""
    vhost, name = (pattern_of(call.options.get(f"{what}_pattern", ".*")) for what in ("vhost", "queue"))
    found = [queue for queue in call.get("/api/queues") if queue.get("type") == "quorum"]
    matching = [queue for queue in found if vhost.search(queue["vhost"]) and name.search(queue["name"])]
    rows = [[queue["vhost"], queue["name"], Atom("{ok}")] for queue in matching]
    return Rows(["vhost", "name", "result"], rows, is_whole=True)


def transfer_leadership(call: Call) -> NoReturn:
    if queue_of(call, NO_QUEUE).get("type") != "quorum":
        raise failed("Cannot transfer leadership of a non-quorum queue")
    here = is_here(call, call.arguments[1])
    raise failed("The target node is already the leader of this queue" if here else "unknown_member")


def transfer_stream(call: Call) -> str:
    """Return the leader of a stream, which stays the only node."""
    must_be_stream(call, NO_QUEUE)
    return call.node


def reclaim_memory(call: Call) -> None:
    """Check the queue; there is no memory of Erlang's to reclaim."""
    if queue_of(call, NO_TARGET, EX_UNAVAILABLE).get("type") == "classic":
        raise failed("This operation is not applicable to classic queues")


def check_position(call: Call) -> None:
    text = call.arguments[1]
    if not text.isdecimal() or int(text) < 1:
        raise Misuse('"position value must be a positive integer"')


def peek(call: Call) -> Rows:
    kind = queue_of(call, NO_TARGET, EX_UNAVAILABLE).get("type")
    if kind != "quorum":
        raise failed("Cannot peek into a classic queue" if kind == "classic" else "not_quorum_queue")
    offset = int(call.arguments[1]) - 1
    target = "/_broker/queues/{vhost}/{0}/peek?count=1&truncate=64&offset="
    messages = call.get(call.fill(target, is_path=True) + str(offset))["messages"]
    if not messages:
        raise failed("Target queue does not have a message at that position")
    message = messages[0]
    properties = dict(message["properties"])
    headers = {**properties.pop("headers", {}), "x-delivery-count": message.get("delivery_count", 0)}
    rows: list[list[Any]] = [[name, value] for name, value in properties.items()]
    rows += [["routing_keys", message["routing_key"]], ["exchange", message["exchange"]]]
    rows += [["payload (max 64 bytes)", message["payload"]]]
    return boxed(call, ["keys", "values"], rows + [[f"header.{name}", value] for name, value in headers.items()])


def must_be_stream(call: Call, missing: str = NO_OBJECT) -> None:
    kind = queue_of(call, missing).get("type")
    if kind != "stream":
        raise failed(f"{{:not_supported_for_type, :rabbit_{kind}_queue}}")


def add_replica(call: Call) -> None:
    kind = queue_of(call, NO_OBJECT).get("type")
    if kind != "stream":
        raise failed(f"Cannot add replicas to {kind} queues")
    if not is_here(call, call.arguments[1]):
        raise failed("node_not_running")


def delete_replica(call: Call) -> NoReturn:
    kind = queue_of(call, NO_OBJECT).get("type")
    if kind != "stream":
        raise failed(f"Cannot delete replicas from a {kind} queue")
    raise failed("Cannot delete the last member of a stream")


def restart_stream(call: Call) -> str:
    """Return the leader of a stream; a single node has nothing to elect."""
    must_be_stream(call)
    return call.node


def command(
    name: str, usage: str, about: str, says: str, run: Callable[[Call], Any], group: str = CHECKS, **further: Any
) -> Command:
    return Command(name, usage, about, group, says=says, run=run, **{"tools": (QUEUES,), **further})


PATTERNS = "[--vhost-pattern <pattern>] [--queue-pattern <pattern>]"
MEMBERSHIP = "[--membership <promotable|voter>]"
MEMBERS = (
    command(
        "add_member",
        f"[--vhost <vhost>] <queue> <node> {MEMBERSHIP} [--timeout <timeout>]",
        "Adds a queue member/replica on the given node.",
        "Adding a member for queue {0} on node {1}...",
        add_member,
        REPLICATION,
        check=must_be_member(1),
        former=Former(
            (4, 0), {"run": only_node, "check": None, "says": "Adding a replica for queue {0} on node {1}..."}
        ),
    ),
    command(
        "delete_member",
        "[--vhost <vhost>] <queue> <node>",
        "Removes a queue member (replica) on the given node.",
        "Removing a replica of queue {0} on node {1}...",
        delete_member,
        REPLICATION,
        former=Former((4, 0), {"run": only_node}),
    ),
    command(
        "grow",
        f"<node> <all | even> {PATTERNS} {MEMBERSHIP}",
        "Grows all matching queues by adding a member (replica) on the specified node",
        "Growing {1} queues on {0}...",
        none,
        CLUSTER,
        check=must_be_member(0),
        former=Former((4, 0), {"run": only_node, "check": None, "says": "Growing {1} quorum queues on {0}..."}),
    ),
    command(
        "grow_to_count",
        f"<node_count> <all | even> {PATTERNS} {MEMBERSHIP}",
        "Grows quorum queue clusters by adding member replicas on the specified number of nodes for all matching"
        " queues",
        "Growing {1} quorum queues on {0} nodes...",
        none,
        CLUSTER,
    ),
    command(
        "shrink",
        "<node> [--errors-only]",
        "Shrinks queue clusters by removing any members (replicas) on the given node.",
        "Shrinking queues on {0}...",
        shrink,
        CLUSTER,
        former=Former((4, 0), {"run": only_node, "says": "Shrinking quorum queues on {0}..."}),
    ),
)
STREAM_MEMBERS = (
    command(
        "add_replica",
        "[--vhost <vhost>] <stream> <node> [--timeout <timeout>]",
        "Adds a stream replica on the given node",
        "Adding a replica for stream {0} on node {1}...",
        add_replica,
        REPLICATION,
        tools=(STREAMS,),
    ),
    command(
        "delete_replica",
        "[--vhost <vhost>] <queue> <node>",
        "Removes a stream queue replica on the given node.",
        "Removing a replica of queue {0} on node {1}...",
        delete_replica,
        REPLICATION,
        tools=(STREAMS,),
    ),
    command(
        "restart_stream",
        "[--vhost <vhost>] <stream> [--preferred-leader-node <node>]",
        "Restarts a stream.",
        "Restarting stream {0}...",
        restart_stream,
        REPLICATION,
        tools=(STREAMS,),
    ),
    command(
        "transfer_leadership",
        "[--vhost <vhost>] <stream> <node> [--timeout <timeout>]",
        "Transfers the leadership of a stream to the given node.",
        "Transferring leadership of stream {0} to node {1}...",
        transfer_stream,
        REPLICATION,
        tools=(STREAMS,),
    ),
    command(
        "grow",
        f"<node> <all | even> {PATTERNS} [--errors-only]",
        "Grows stream clusters by adding a replica on the specified node for all matching streams",
        "Growing {1} streams on {0}...",
        none,
        CLUSTER,
        tools=(STREAMS,),
    ),
    command(
        "shrink",
        "<node> [--errors-only]",
        "Shrinks stream clusters by removing any replicas on the given node.",
        "Shrinking streams on {0}...",
        shrink_streams,
        CLUSTER,
        tools=(STREAMS,),
    ),
)
COMMANDS = (
    *MEMBERS,
    *STREAM_MEMBERS,
    command(
        "quorum_status",
        "[--vhost <vhost>] <queue>",
        "Displays the quorum status of a queue",
        "Status of queue {0} on node {node} ...",
        quorum_status,
        tools=(DIAGNOSTICS, QUEUES),
        former=Former((4, 0), {"run": quorum_status_before_4, "says": "Status of quorum queue {0} on node {node} ..."}),
    ),
    command(
        "stream_status",
        "[--vhost <vhost>] [--tracking] <stream>",
        "Displays the status of a stream",
        "Status of stream {0} on node {node} ...",
        stream_status,
        tools=(DIAGNOSTICS, QUEUES, STREAMS),
        former=Former((4, 0), {"run": stream_status_before_4}),
    ),
    command(
        "coordinator_status",
        "",
        "Displays raft status of the stream coordinator",
        "Status of stream coordinator ...",
        raft_status,
        tools=(DIAGNOSTICS, STREAMS),
    ),
    command(
        "metadata_store_status",
        "",
        "Displays quorum status of Khepri metadata store",
        "Status of metadata store on node {node} ...",
        raft_status,
        tools=(DIAGNOSTICS,),
    ),
    command(
        "rebalance",
        f"<all | quorum | stream> {PATTERNS}",
        "Re-balances leaders of replicated queues across up-and-running cluster nodes",
        "Re-balancing leaders of {0} queues...",
        rebalance,
        CLUSTER,
        check=check_rebalanced,
        former=Former((4, 0), {"run": rebalance_before_4, "check": None}),
    ),
    command(
        "force_checkpoint",
        PATTERNS,
        "Forces checkpoints for all matching quorum queues",
        "Forcing checkpoint for all matching quorum queues...",
        force_checkpoint,
        REPLICATION,
    ),
    command(
        "transfer_leadership",
        "[--vhost <vhost>] <queue> <node> [--timeout <timeout>]",
        "Transfers the leadership of a quorum queue to the given node.",
        "Transferring leadership of quorum queue {0} to node {1}...",
        transfer_leadership,
        REPLICATION,
    ),
    command(
        "reclaim_quorum_memory",
        "[--vhost <vhost>] <quorum queue>",
        "Requests a full sweep GC on all of a quorum queue's Erlang processes",
        "Will garbage collect quorum queue {0} ...",
        reclaim_memory,
        OPERATIONS,
        tools=(DIAGNOSTICS, QUEUES),
    ),
    command(
        "peek",
        "[--vhost <vhost>] <queue> <position> [--timeout <timeout>]",
        "Peeks at the given position of a quorum queue",
        "Peeking at quorum queue {0} at position {1} on node {node} ...",
        peek,
        check=check_position,
    ),
)
