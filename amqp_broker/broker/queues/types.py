"""The types of queues, and the properties that each may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.queues import arguments
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.priority import PriorityQueue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.stream import StreamQueue

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.queue_surroundings import QueueOwner


def queue_class(arguments_: fields.Table) -> type[Queue]:
    """Return the class of a queue with these arguments."""
    queue_type = arguments.type_of(arguments_)
    if queue_type != "classic":
        return QuorumQueue if queue_type == "quorum" else StreamQueue
    return PriorityQueue if arguments_.get("x-max-priority") else ClassicQueue


def check_shape(
    resource: str, arguments_: fields.Table, is_durable: bool, is_auto_delete: bool, owner: QueueOwner | None
) -> None:
    """Raise PreconditionFailed for a property that a queue of its type cannot have, in RabbitMQ's order.

    The argument values have been checked. Source: rabbit_queue_type_util.erl; rabbit_stream_queue.erl, declare.
    """
    queue_type = arguments.type_of(arguments_)
    if queue_type == "classic":
        return
    wrong = {
        "non-durable": not is_durable and owner is None,
        "auto-delete": is_auto_delete,
        "exclusive-owner": owner is not None,
    }
    order = ("non-durable", "auto-delete", "exclusive-owner")
    if queue_type == "stream":
        order = ("auto-delete", "exclusive-owner", "non-durable")
    for name in order:
        if wrong[name]:
            raise PreconditionFailed(f"invalid property '{name}' for {resource}")
    if arguments_.get("x-stream-max-segment-size-bytes", 0) > arguments.SEGMENT_BYTES_MAX:
        raise PreconditionFailed("Exceeded max value for x-stream-max-segment-size-bytes")
    if not 16 <= arguments_.get("x-stream-filter-size-bytes", 16) <= 255:
        raise PreconditionFailed("Invalid value for  x-stream-filter-size-bytes")
