"""Queues and streams: lists, one, declaration and deletion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct, field

from amqp_broker.broker.admin.policies import effective_definition
from amqp_broker.broker.operations import authorized
from amqp_broker.broker.operations.authorized import stripped
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.quorum_order import HIGH_MIN
from amqp_broker.broker.queues.sizes import NOTHING, Sizes, memory_bytes, paged_count, ready_sizes, sizing_unacked
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.broker.vhost import check_reserved
from amqp_broker.management.api.consumers import channel_details, rows_of
from amqp_broker.management.api.statistics import GARBAGE_COLLECTION, RATE, Statistics, iso_time, with_details
from amqp_broker.management.documents.values import json_of_table
from amqp_broker.management.http.answers import CREATED, NO_CONTENT, Answer, bad_request, bad_term, no_such, not_found
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed
from amqp_broker.management.http.names import check_name
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Flag, Switch, Table, read_by
from amqp_broker.management.node.totals import lengths_of

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.delayed_retries import DelayedRetries
    from amqp_broker.broker.queues.queue import Queue

endpoints = Endpoints()


class NewQueue(Struct):
    """The properties of a queue; its type is the argument `x-queue-type`."""

    durable: Flag = False
    auto_delete: Flag = False
    arguments: Table = {}
    node: Any = None


class DeletionQuery(Struct):
    """Conditions for deleting a queue."""

    if_empty: Switch = field(default=False, name="if-empty")
    if_unused: Switch = field(default=False, name="if-unused")


def _mirror_action(name: str, value: Any) -> Any:
    if value not in ("sync", "cancel_sync"):
        raise bad_term("unknown", value)
    return value


class QueueAction(Struct):
    """An operation on the mirrors of a queue."""

    action: Annotated[str, read_by(_mirror_action, enum=["sync", "cancel_sync"])]


# Columns that RabbitMQ sorts by without statistics.
BRIEF_COLUMNS: Final = ("vhost", "name", "durable", "auto_delete", "exclusive", "type")
# Columns that need no statistics.
CHEAP_COLUMNS: Final = {*BRIEF_COLUMNS, "arguments", "node", "messages", "messages_ready", "messages_unacknowledged"}
# Messages whose sizes are averaged for the octets of a queue, in a list and alone.
SAMPLE_IN_LIST: Final = 20
SAMPLE_OF_ONE: Final = 1000


def basic_row(queue: Queue, node: str) -> dict[str, Any]:
    """Return the row of a queue without statistics."""
    row: dict[str, Any] = {
        "arguments": json_of_table(queue.arguments) if queue.arguments else {},
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
    if queue.vhost.broker.profile.release >= (4, 3):
        row["internal"] = row["internal_owner"] = False
    return row


def unchanging_row(queue: Queue, node: str) -> dict[str, Any]:
    """Return the row of a queue in a list without statistics."""
    row = basic_row(queue, node)
    if queue.vhost.broker.profile.release >= (4, 3):
        row.update(_policies_of(queue))
        if isinstance(queue, QuorumQueue):
            row["delivery_limit"] = _delivery_limit(queue)
    return row


def _policies_of(queue: Queue) -> dict[str, Any]:
    policy, operator_policy = queue.policy, queue.operator_policy
    return {
        "effective_policy_definition": effective_definition(queue) if policy or operator_policy else {},
        "operator_policy": operator_policy.name if operator_policy is not None else None,
        "policy": policy.name if policy is not None else None,
    }


def totals_row(queue: Queue, node: str) -> dict[str, Any]:
    """Return the row of a queue with only the numbers of its messages."""
    row = {**basic_row(queue, node), **lengths_of(queue)}
    return {name: value for name, value in row.items() if name not in ("internal", "internal_owner")}


def is_there(queue: Queue) -> bool:
    """Return whether a queue has not been deleted."""
    return not queue.is_deleted


class Rows:
    """Makes the rows of queues with statistics, for one answer, after `preparing`.

    `sample_max` is the number of ready messages of a queue whose sizes are averaged.
    """

    def __init__(self, request: Request, sample_max: int) -> None:
        self._broker = request.broker
        self._unacked: dict[Queue, Sizes] = {}
        self._sample_max = sample_max
        self._node = request.broker.node
        self._statistics = Statistics(request)
        self._release = request.broker.profile.release
        self._publishers: Counter[Exchange] = Counter()

    def preparing(self) -> Steps[Rows]:
        """Look at all channels, and return this object."""
        self._unacked = yield from sizing_unacked(self._broker.channels())
        for channel in list(self._broker.channels()):
            self._publishers.update(channel.counts.publishes.keys())
            yield
        return self

    def brief(self, queue: Queue) -> dict[str, Any]:
        """Return the row of a queue in a list: RabbitMQ 4 leaves out what is not set."""
        row = self.row(queue)
        if self._release >= (4, 0):
            row = {name: value for name, value in row.items() if value is not None}
            row.pop("garbage_collection", None)
        return row

    def detailed(self, queue: Queue) -> dict[str, Any]:
        """Return the row of a queue in the detailed list, where RabbitMQ shows no collections of a stream."""
        row = self.row(queue)
        if isinstance(queue, StreamQueue):
            del row["garbage_collection"]
        return row

    def row(self, queue: Queue) -> dict[str, Any]:
        """Return the row of a queue."""
        row = basic_row(queue, self._node)
        row["consumers"] = queue.reported_consumer_count
        row.update(_policies_of(queue))
        row["garbage_collection"] = GARBAGE_COLLECTION
        row["idle_since"] = iso_time(queue.idle_since_ms)
        row.update(self._statistics.of(queue.statistics, "lengths", lengths_of(queue)))
        row["reductions"], row["reductions_details"] = 0, RATE
        if stats := self._statistics.of(queue.statistics, "message_stats", queue.statistics.message_stats()):
            row["message_stats"] = stats
        if isinstance(queue, StreamQueue):
            row["memory"] = memory_bytes(queue, NOTHING)
            row["readers"] = {row["node"]: len(queue.consumers)}
            _add_stream_columns(row, queue, self._release)
            return row
        # Without a consumer RabbitMQ's 0 is an integer.
        capacity = queue.rotation.capacity if queue.consumers else 0
        row["consumer_capacity"] = row["consumer_utilisation"] = capacity
        ready_size, unacked_size = ready_sizes(queue, self._sample_max), self._unacked.get(queue, NOTHING)
        row["memory"] = memory_bytes(queue, ready_size)
        row["message_bytes"] = ready_size.octets + unacked_size.octets
        row["message_bytes_ready"] = ready_size.octets
        row["message_bytes_unacknowledged"] = unacked_size.octets
        if isinstance(queue, QuorumQueue):
            _add_quorum_columns(row, queue, self._release)
            if self._release >= (4, 0):
                row["publishers"] = sum(self._publishers[exchange] for exchange in queue.statistics.published_from)
        else:
            _add_classic_columns(row, queue, ready_size, unacked_size)
            if self._release >= (4, 3):
                del row["messages_paged_out"], row["message_bytes_paged_out"]
        return row


def _active_tag(queue: Queue) -> str | None:
    active = queue.rotation.active_consumer
    return active.tag if active is not None else None


def _delivery_limit(queue: QuorumQueue) -> int | str:
    limit = queue.delivery_limit
    return "unlimited" if limit is None else limit


def _add_stream_columns(row: dict[str, Any], queue: StreamQueue, release: tuple[int, int]) -> None:
    log = queue.log
    if release >= (4, 0):
        row["segments"] = queue.segment_count
    if release >= (4, 3):
        row["first_timestamp"] = log.head_at(log.first).timestamp_ms if log.count else 0


def _add_quorum_columns(row: dict[str, Any], queue: QuorumQueue, release: tuple[int, int]) -> None:
    row["delivery_limit"] = _delivery_limit(queue)
    row["open_files"] = {row["node"]: 0}
    row["single_active_consumer_tag" if release >= (4, 0) else "single_active_consumer_ctag"] = _active_tag(queue)
    by_level = queue.backlog.level_counts()
    if release >= (4, 0):
        row["messages_ready_returned"] = queue.backlog.returned_count
    if release >= (4, 3):
        row["delayed_retry"] = str(queue.settings.retry_delay or "disabled")
        _add_delayed(row, queue.retries)
        row["messages_by_priority"] = {str(level): count for level, count in by_level.items()}
        row["messages_active_priorities"] = len(by_level)
    elif release >= (4, 0):
        row["messages_ready_high"] = sum(count for level, count in by_level.items() if level >= HIGH_MIN)
        row["messages_ready_normal"] = sum(by_level.values()) - row["messages_ready_high"]
    row["message_bytes"] += queue.dead_letters.octets
    # All messages are on the disk, and RabbitMQ counts none as in memory.
    row["messages_persistent"] = queue.message_count
    row["message_bytes_persistent"] = row["message_bytes"]
    row["messages_ram"] = row["message_bytes_ram"] = 0
    row["messages_dlx"], row["message_bytes_dlx"] = len(queue.dead_letters), queue.dead_letters.octets


def _add_delayed(row: dict[str, Any], retries: DelayedRetries) -> None:
    row["messages_delayed"] = len(retries)
    span_ms = retries.span_ms
    if span_ms is not None:
        row["next_delayed_at"], row["last_delayed_at"] = span_ms
    row["message_bytes"] += retries.octets
    row["message_bytes_ready"] += retries.octets


def _add_classic_columns(row: dict[str, Any], queue: Queue, ready_size: Sizes, unacked_size: Sizes) -> None:
    ready, unacked = queue.ready_count, queue.unacked_count
    exclusive, head = queue.rotation.exclusive_consumer, next(queue.messages(), None) if ready else None
    paged = min(ready, paged_count(queue))
    paged_bytes = ready_size.scaled(paged).octets if paged else 0
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
    row["single_active_consumer_tag"] = _active_tag(queue)
    row["storage_version"] = 2


@endpoints.on("GET /api/queues", "GET /api/queues/{vhost}", tag=MANAGEMENT, query=ListQuery)
def all_queues(request: Request) -> Steps[Any]:
    """List queues and streams, of one vhost or of all."""
    return _listed(request, (queue for vhost in request.vhosts for queue in vhost.queues.values()))


@endpoints.on("GET /api/users/{user}/queues", tag=MANAGEMENT, query=ListQuery)
def queues_of_user(request: Request) -> Steps[Any]:
    """List the queues and streams that a user has declared."""
    name = request.path["user"]
    return _listed(
        request, (queue for vhost in request.vhosts for queue in vhost.queues.values() if queue.creator == name)
    )


def _listed(request: Request, queues: Iterable[Queue]) -> Steps[Any]:
    """Return the rows of queues with the statistics that the request asks for."""
    brief, totals = partial(unchanging_row, node=request.broker.node), partial(totals_row, node=request.broker.node)
    if not request.wants_stats:
        with_totals = request.query.get("enable_queue_totals") == "true"
        return (yield from listed(request, queues, totals if with_totals else brief, is_there=is_there))
    asked = {request.query.get("sort", ""), *request.query.get("columns", "").split(",")} - {""}
    if asked and asked <= CHEAP_COLUMNS and "columns" in request.query:
        return (yield from listed(request, queues, totals, is_there=is_there))
    rows = yield from Rows(request, SAMPLE_IN_LIST).preparing()
    return (yield from listed(request, queues, rows.brief, is_there=is_there, brief=brief, brief_columns=BRIEF_COLUMNS))


@endpoints.on("GET /api/queues/detailed", tag=MANAGEMENT, query=ListQuery)
def detailed_queues(request: Request) -> Steps[Any]:
    """List queues and streams of all vhosts with all columns."""
    queues = (queue for vhost in request.vhosts for queue in vhost.queues.values())
    rows = yield from Rows(request, SAMPLE_IN_LIST).preparing()
    return (yield from listed(request, queues, rows.detailed, is_there=is_there))


def _queue(request: Request) -> Queue:
    """Return the queue in the path. Raise Refusal."""
    queue = request.vhost.queues.get(request.path["name"])
    if queue is None:
        raise not_found()
    return queue


@endpoints.on("GET /api/queues/{vhost}/{name}", tag=MANAGEMENT)
def one(request: Request) -> Steps[dict[str, Any]]:
    """Return a queue with its consumers, and its counters by channel and exchange."""
    queue, node = _queue(request), request.broker.node
    if not request.wants_stats:
        return basic_row(queue, node)
    row = (yield from Rows(request, SAMPLE_OF_ONE).preparing()).row(queue)
    if queue.owner is not None:
        row["owner_pid_details"] = {
            "name": queue.owner.name,
            "peer_host": queue.owner.peer_host,
            "peer_port": queue.owner.peer_port,
        }
    consumers = yield from rows_of(queue, request.broker)
    return {
        **row,
        "consumer_details": [row for _, row in consumers],
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
            for exchange, count in queue.statistics.published_from.items()
        ],
    }


@endpoints.on("PUT /api/queues/{vhost}/{name}", tag=MANAGEMENT, body=NewQueue)
def declare(request: Request) -> Any:
    """Declare a queue."""
    vhost, name = request.vhost, stripped(request.path["name"])
    given = request.read(NewQueue)
    check_name("queue", name)
    if given.node not in (None, request.broker.node):
        is_newer = request.broker.profile.release >= (4, 3)
        raise bad_request(f"Node {given.node} {'is not a cluster member' if is_newer else 'could not be contacted'}")
    check_reserved("queue", name)
    is_new = name not in vhost.queues
    # There is no connection that an exclusive queue could belong to.
    declaration = QueueDeclaration(name, given.arguments, given.durable, given.auto_delete)
    authorized.declare_queue(request.user, vhost, declaration, None)
    return CREATED if is_new else NO_CONTENT


@endpoints.on("DELETE /api/queues/{vhost}/{name}", tag=MANAGEMENT, query=DeletionQuery)
def delete(request: Request) -> Steps[Answer]:
    """Delete a queue; with `if-empty=true` or `if-unused=true` only one without messages or consumers."""
    named, vhost, query = _queue(request), request.vhost, request.read_query(DeletionQuery)
    queue = authorized.queue_to_delete(
        request.user,
        vhost,
        named.name,
        None,
        if_unused=query.if_unused,
        if_empty=query.if_empty,
    )
    if queue is not None:
        yield from vhost.deletions.of_queue(queue)
    return NO_CONTENT


@endpoints.on("POST /api/queues/{vhost}/{queue}/actions", tag=MANAGEMENT, body=QueueAction)
def act_on_mirrors(request: Request) -> Answer:
    """Do nothing with RabbitMQ 3: queues have no mirrors. RabbitMQ 4 knows no actions (400)."""
    release = request.broker.profile.release
    if request.path["queue"] not in request.vhost.queues:
        raise no_such("queue_not_found") if release >= (4, 0) else not_found()
    action = request.read(QueueAction).action
    if release >= (4, 0):
        raise bad_term("unknown", action)
    return NO_CONTENT
