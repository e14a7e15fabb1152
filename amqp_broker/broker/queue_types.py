"""The types of queues, and what a queue of each may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker import fields
from amqp_broker.broker import arguments
from amqp_broker.broker.priority_queue import PriorityQueue
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.quorum_queue import QuorumQueue
from amqp_broker.broker.stream_queue import StreamQueue
from amqp_broker.errors import PreconditionFailed

if TYPE_CHECKING:
    from amqp_broker.broker.connection import Connection


def queue_class(arguments_: fields.Table) -> type[Queue]:
    """The class of a queue with these arguments."""
    queue_type = arguments.type_of(arguments_)
    if queue_type != "classic":
        return QuorumQueue if queue_type == "quorum" else StreamQueue
    return PriorityQueue if arguments_.get("x-max-priority") else Queue


def check_shape(
    resource: str, arguments_: fields.Table, is_durable: bool, is_auto_delete: bool, owner: Connection | None
) -> None:
    """Raise PreconditionFailed for what a queue of its type cannot be, in RabbitMQ's order.

    The values of arguments have been checked. Source: rabbit_queue_type_util.erl; rabbit_stream_queue.erl, declare.
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
