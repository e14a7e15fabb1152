"""Queues: lists, one, its declaration and deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker import topology
from amqp_broker.broker.policies import effective_definition
from amqp_broker.broker.queue_sizes import NOTHING, memory_bytes, paged_count, ready_sizes, unacked_sizes
from amqp_broker.broker.quorum_queue import QuorumQueue
from amqp_broker.broker.stream_queue import StreamQueue
from amqp_broker.broker.topology import stripped
from amqp_broker.broker.vhost import check_reserved
from amqp_broker.management import json
from amqp_broker.management.access import MANAGEMENT
from amqp_broker.management.body import boolean
from amqp_broker.management.consumers import channel_details, consumer_row
from amqp_broker.management.listing import listed
from amqp_broker.management.names import check_name
from amqp_broker.management.request import CREATED, NO_CONTENT, Request, Resource, bad_request, not_found
from amqp_broker.management.stats import GARBAGE_COLLECTION, RATE, Statistics, iso_time, with_details
from amqp_broker.management.values import json_of

if TYPE_CHECKING:
    from amqp_broker.broker.queue import Queue

# What RabbitMQ sorts by without asking for statistics.
BRIEF_COLUMNS: Final = ("vhost", "name", "durable", "auto_delete", "exclusive", "type")
# What is told without statistics.
CHEAP_COLUMNS: Final = {*BRIEF_COLUMNS, "arguments", "node", "messages", "messages_ready", "messages_unacknowledged"}
# How many messages are looked at to tell the octets of a queue in a list, and of one alone.
LOOK_IN_LIST: Final = 20
LOOK_AT_ONE: Final = 1000


def basic_row(queue: Queue) -> dict[str, Any]:
    """A queue without statistics."""
    node = queue.vhost.broker.node
    row: dict[str, Any] = {
        "arguments": json_of(queue.arguments) if queue.arguments else {},
        "auto_delete": queue.is_auto_delete,
        "durable": queue.is_durable,
        "exclusive": queue.owner is not None,
        "name": queue.name,
        "node": node,
        "state": "running",
        "type": queue.type,
        "vhost": queue.vhost.name,
    }
    if queue.type != "classic":
        row["leader"] = node
        row["members"] = row["online"] = [node]
    return row


def totals_row(queue: Queue) -> dict[str, Any]:
    """A queue without statistics but the numbers of its messages."""
    return {**basic_row(queue), **lengths_of(queue)}


def lengths_of(queue: Queue) -> dict[str, int]:
    ready, unacked = queue.ready_count, queue.unacked_count
    return {"messages": ready + unacked, "messages_ready": ready, "messages_unacknowledged": unacked}


def message_stats_of(queue: Queue) -> dict[str, int]:
    return queue.message_stats()


class Rows:
    """Makes rows of queues with statistics, for one answer."""

    def __init__(self, request: Request, look: int) -> None:
        self._unacked = unacked_sizes(request.broker)
        self._look = look
        self._statistics = Statistics(request)

    def row(self, queue: Queue) -> dict[str, Any]:
        """A queue as lists have it."""
        ready, unacked = queue.ready_count, queue.unacked_count
        policy, operator_policy = queue.policy, queue.operator_policy
        row = basic_row(queue)
        row["consumers"] = len(queue.consumers)
        row["effective_policy_definition"] = effective_definition(queue) if policy or operator_policy else {}
        row["garbage_collection"] = GARBAGE_COLLECTION
        row["idle_since"] = iso_time(queue.idle_since_ms)
        row.update(self._statistics.of(queue, "lengths", lengths_of))
        row["operator_policy"] = operator_policy.name if operator_policy is not None else None
        row["policy"] = policy.name if policy is not None else None
        row["reductions"], row["reductions_details"] = 0, RATE
        if stats := self._statistics.of(queue, "message_stats", message_stats_of):
            row["message_stats"] = stats
        if isinstance(queue, StreamQueue):
            row["memory"] = memory_bytes(queue, NOTHING)
            row["readers"] = {row["node"]: len(queue.consumers)}
            return row
        capacity = queue.consumer_capacity
        row["consumer_capacity"] = row["consumer_utilisation"] = capacity
        active = queue.active_consumer
        active_tag = active.tag if active is not None else None
        ready_size, unacked_size = ready_sizes(queue, self._look), self._unacked.get(queue, NOTHING)
        row["memory"] = memory_bytes(queue, ready_size)
        row["message_bytes"] = ready_size.body_bytes + unacked_size.body_bytes
        row["message_bytes_ready"] = ready_size.body_bytes
        row["message_bytes_unacknowledged"] = unacked_size.body_bytes
        if isinstance(queue, QuorumQueue):
            limit = queue.delivery_limit
            row["delivery_limit"] = "unlimited" if limit is None else limit
            row["open_files"] = {row["node"]: 0}
            row["single_active_consumer_ctag"] = active_tag
            # All that is in one is written to the disk, and nothing is said to be kept in memory.
            row["messages_persistent"], row["message_bytes_persistent"] = ready + unacked, row["message_bytes"]
            for name in ("messages_ram", "message_bytes_ram", "messages_dlx", "message_bytes_dlx"):
                row[name] = 0
            return row
        exclusive, head = queue.exclusive_consumer, queue.head_message() if ready else None
        paged = min(ready, paged_count(queue))
        paged_bytes = ready_size.scaled(paged).body_bytes if paged else 0
        row["exclusive_consumer_tag"] = exclusive.tag if exclusive is not None else None
        row["head_message_timestamp"] = head.timestamp if head is not None else None
        row["message_bytes_paged_out"] = paged_bytes
        row["message_bytes_persistent"] = ready_size.persistent_bytes + unacked_size.persistent_bytes
        row["message_bytes_ram"] = row["message_bytes"] - paged_bytes
        row["messages_paged_out"] = paged
        row["messages_persistent"] = ready_size.persistent_count + unacked_size.persistent_count
        row["messages_ram"] = ready + unacked - paged
        row["messages_ready_ram"] = ready - paged
        row["messages_unacknowledged_ram"] = unacked
        row["single_active_consumer_tag"] = active_tag
        row["storage_version"] = 2
        return row


def all_queues(request: Request) -> Any:
    queues = (queue for vhost in request.vhosts for queue in vhost.queues.values())
    if not request.wants_stats:
        with_totals = request.query.get("enable_queue_totals") == "true"
        return listed(request, queues, totals_row if with_totals else basic_row)
    asked = {request.query.get("sort", ""), *request.query.get("columns", "").split(",")} - {""}
    if asked and asked <= CHEAP_COLUMNS and "columns" in request.query:
        return listed(request, queues, totals_row)
    rows = Rows(request, LOOK_IN_LIST)
    return listed(request, queues, rows.row, brief=basic_row, brief_columns=BRIEF_COLUMNS)


def _named(request: Request) -> Queue:
    queue = request.vhost.queues.get(request.path["name"])
    if queue is None:
        raise not_found()
    return queue


def one(request: Request) -> dict[str, Any]:
    queue, node = _named(request), request.broker.node
    if not request.wants_stats:
        return basic_row(queue)
    row = Rows(request, LOOK_AT_ONE).row(queue)
    if queue.owner is not None:
        row["owner_pid_details"] = {
            "name": queue.owner.name,
            "peer_host": queue.owner.peer_host,
            "peer_port": queue.owner.peer_port,
        }
    return {
        **row,
        "consumer_details": [consumer_row(consumer, node) for consumer in queue.consumers],
        "deliveries": [
            {
                "channel_details": channel_details(channel.connection, channel.number, node),
                "stats": with_details(stats),
            }
            for channel in request.broker.channels()
            if queue in channel.counts.deliveries and (stats := channel.counts.deliveries[queue].stats())
        ],
        "incoming": [
            {
                "exchange": {"name": exchange.name, "vhost": exchange.vhost},
                "stats": with_details({"publish": count}),
            }
            for exchange, count in queue.published_from.items()
        ],
    }


def declare(request: Request) -> Any:
    vhost, name, body = request.vhost, stripped(request.path["name"]), request.json()
    check_name("queue", name)
    node = body.get("node")
    if node is not None and node != request.broker.node:
        raise bad_request(f"Node {node} could not be contacted")
    arguments = json.to_table(body.get("arguments"))
    is_durable, is_auto_delete = boolean(body, "durable") or False, boolean(body, "auto_delete") or False
    check_reserved("queue", name)
    is_new = name not in vhost.queues
    # `exclusive` means nothing here: there is no connection that the queue could live with.
    topology.declare_queue(
        request.user,
        vhost,
        name,
        is_durable=is_durable,
        is_auto_delete=is_auto_delete,
        is_exclusive=False,
        connection=None,
        arguments=arguments,
    )
    return CREATED if is_new else NO_CONTENT


def delete(request: Request) -> Any:
    named, vhost = _named(request), request.vhost
    queue = topology.queue_to_delete(
        request.user,
        vhost,
        named.name,
        None,
        if_unused=request.query.get("if-unused") == "true",
        if_empty=request.query.get("if-empty") == "true",
    )
    if queue is not None:
        vhost.remove_queue(queue)
    return NO_CONTENT


RESOURCES = (
    Resource("/api/queues", MANAGEMENT, {"GET": all_queues}),
    Resource("/api/queues/{vhost}", MANAGEMENT, {"GET": all_queues}),
    Resource("/api/queues/{vhost}/{name}", MANAGEMENT, {"GET": one, "PUT": declare, "DELETE": delete}),
)
