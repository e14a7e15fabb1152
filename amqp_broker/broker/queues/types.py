"""The types of queues, and the declarations that each of them accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InternalError, PreconditionFailed
from amqp_broker.broker.queues import arguments
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.ownership import check_same_owner
from amqp_broker.broker.queues.priority import PriorityQueue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.stream import StreamQueue

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
    from amqp_broker.settings.profiles import Profile


def queue_class(arguments_: fields.Table) -> type[Queue]:
    """Return the class of a queue with these arguments."""
    queue_type = arguments.type_of(arguments_)
    if queue_type != "classic":
        return QuorumQueue if queue_type == "quorum" else StreamQueue
    return PriorityQueue if arguments_.get("x-max-priority") else ClassicQueue


def with_default_type(declaration: QueueDeclaration, default: str | None) -> QueueDeclaration:
    """Return the declaration with the `default` type added, if it applies.

    It applies to queues without a type, except those that can only be classic: transient, exclusive and auto-delete
    ones. Source: rabbit_amqqueue.erl, augment_declare_args; is_compatible of each type. RabbitMQ also adds the type
    `classic`; a queue without a type is the same, and is exported as it was declared.
    """
    table = declaration.arguments
    if default in (None, "classic") or table.get("x-queue-type", "undefined") != "undefined":
        return declaration
    if not declaration.is_durable or declaration.owner is not None or declaration.is_auto_delete:
        return declaration
    return declaration._replace(arguments={**table, "x-queue-type": default})


def check_shape(declaration: QueueDeclaration, resource: str) -> None:
    """Raise PreconditionFailed for a property that a queue of its type cannot have, in RabbitMQ's order.

    The argument values have been checked. Source: rabbit_queue_type_util.erl; rabbit_stream_queue.erl, declare.
    """
    table = declaration.arguments
    queue_type = arguments.type_of(table)
    if queue_type == "classic":
        return
    wrong = {
        "non-durable": not declaration.is_durable and declaration.owner is None,
        "auto-delete": declaration.is_auto_delete,
        "exclusive-owner": declaration.owner is not None,
    }
    order = ("non-durable", "auto-delete", "exclusive-owner")
    if queue_type == "stream":
        order = ("auto-delete", "exclusive-owner", "non-durable")
    for name in order:
        if wrong[name]:
            raise PreconditionFailed(f"invalid property '{name}' for {resource}")
    if table.get("x-stream-max-segment-size-bytes", 0) > arguments.SEGMENT_BYTES_MAX:
        raise PreconditionFailed("Exceeded max value for x-stream-max-segment-size-bytes")
    if not 16 <= table.get("x-stream-filter-size-bytes", 16) <= 255:
        raise PreconditionFailed("Invalid value for  x-stream-filter-size-bytes")


def check_deprecated(declaration: QueueDeclaration, profile: Profile) -> None:
    """Raise InternalError for a queue that uses a feature that RabbitMQ 4.3 no longer permits."""
    if "x-queue-master-locator" in declaration.arguments and not profile.has_master_locator:
        raise _deprecated("queue_master_locator")
    if not declaration.is_durable and declaration.owner is None and not profile.has_transient_queues:
        raise _deprecated("transient_nonexcl_queues")


def _deprecated(feature: str) -> InternalError:
    return InternalError(
        f"Feature `{feature}` is deprecated. By default, this feature is not permitted anymore.", method_id=0
    )


def check_equivalent(queue: Queue, declaration: QueueDeclaration) -> None:
    """Check another declaration of a queue, in RabbitMQ's order. Raises PreconditionFailed and ResourceLocked."""
    resource = str(queue)
    arguments.require_equal(resource, "durable", queue.is_durable, declaration.is_durable)
    arguments.require_equal(resource, "auto_delete", queue.is_auto_delete, declaration.is_auto_delete)
    check_same_owner(queue, declaration.owner)
    arguments.require_equivalent(resource, arguments.COMPARED[queue.type], queue.arguments, declaration.arguments)
