"""Replicas of quorum queues, of which there is one: on this node.

Source: rabbit_mgmt_wm_quorum_queue_status.erl, rabbit_mgmt_wm_quorum_queue_replicas_*.erl; answers of RabbitMQ 4.3.6.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.management.http.answers import NO_CONTENT, Answer, Refusal, bad_request, not_found
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

endpoints = Endpoints()


class Replica(Struct):
    """The node of a replica."""

    node: Annotated[Any, Meta(extra_json_schema={"type": "string"})]


class Growth(Struct):
    """The queues that get a replica."""

    vhost_pattern: Annotated[Any, Meta(extra_json_schema={"type": "string"})]
    queue_pattern: Annotated[Any, Meta(extra_json_schema={"type": "string"})]
    strategy: Annotated[Any, Meta(extra_json_schema={"enum": ["all", "even"]})]


def _unavailable(reason: str) -> Refusal:
    return Refusal(503, "service_unavailable", reason)


def _problem(queue: Queue) -> str:
    """Return RabbitMQ's word for a queue that has no replicas; "" for a quorum queue."""
    return "" if isinstance(queue, QuorumQueue) else f"{queue.type}_queue_not_supported"


@endpoints.on("GET /api/queues/quorum/{vhost}/{queue}/status", tag=MANAGEMENT)
def status(request: Request) -> Any:
    """Return the replicas of a quorum queue; the numbers of their log are 0."""
    queue = request.vhost.queues.get(request.path["queue"])
    if queue is None:
        raise not_found()
    if problem := _problem(queue):
        return Answer(503, {"status": "failed", "reason": problem})
    indexes = ("Last Log Index", "Last Written", "Last Applied", "Commit Index")
    return [
        {
            "Node Name": request.broker.node,
            "Raft State": "leader",
            "Membership": "voter",
            **dict.fromkeys(indexes, 0),
            "Snapshot Index": -1,
            "Term": 1,
            "Machine Version": 8,
        }
    ]


def _require_replica(request: Request) -> None:
    """Raise Refusal unless the body names this node, and the path a quorum queue."""
    node = request.read(Replica).node
    queue = request.vhost.queues.get(request.path["queue"])
    if queue is None:
        raise _unavailable("not_found")
    if problem := _problem(queue):
        raise _unavailable(problem)
    if node != request.broker.node:
        raise bad_request("Node is not a cluster member")


@endpoints.on("POST /api/queues/quorum/{vhost}/{queue}/replicas/add", tag=ADMINISTRATOR, body=Replica)
def add_replica(request: Request) -> Answer:
    """Do nothing: the one node has a replica already."""
    _require_replica(request)
    return NO_CONTENT


@endpoints.on("DELETE /api/queues/quorum/{vhost}/{queue}/replicas/delete", tag=ADMINISTRATOR, body=Replica)
def delete_replica(request: Request) -> Answer:
    """Refuse to delete the last replica."""
    _require_replica(request)
    raise _unavailable("last_node")


@endpoints.on("POST /api/queues/quorum/replicas/on/{node}/grow", tag=ADMINISTRATOR, body=Growth)
def grow(request: Request) -> Answer:
    """Do nothing: the one node has replicas of all quorum queues."""
    request.require_node()
    request.read(Growth)
    return NO_CONTENT


@endpoints.on("DELETE /api/queues/quorum/replicas/on/{node}/shrink", tag=ADMINISTRATOR, statuses=(202,))
def shrink(request: Request) -> Answer:
    """Do nothing: the replicas of the one node are the last ones."""
    request.require_node()
    return Answer(202)
