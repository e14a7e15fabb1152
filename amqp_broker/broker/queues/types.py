"""The types of queues, and the declarations that each of them accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.deduplication_key import header_name
from amqp_broker.amqp.errors import InternalError, PreconditionFailed
from amqp_broker.broker.admin.policies import SEGMENT_BYTES_MAX
from amqp_broker.broker.queues import arguments
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.deduplicated import DeduplicatedPriorityQueue, DeduplicatedQueue
from amqp_broker.broker.queues.ownership import check_same_owner
from amqp_broker.broker.queues.priority import PriorityQueue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.stream import StreamQueue

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
    from amqp_broker.settings.profiles import Profile

FILTER_BYTES_MIN: Final = 16
FILTER_BYTES_MAX: Final = 255
DEDUPLICATION: Final = "x-message-deduplication"


def queue_class(arguments_: fields.Table) -> type[Queue]:
    """Return the class of a queue with these arguments."""
    queue_type = arguments.type_of(arguments_)
    if queue_type != "classic":
        return QuorumQueue if queue_type == "quorum" else StreamQueue
    has_priorities = bool(arguments_.get("x-max-priority"))
    if arguments_.get(DEDUPLICATION) is True:
        return DeduplicatedPriorityQueue if has_priorities else DeduplicatedQueue
    return PriorityQueue if has_priorities else ClassicQueue


def with_default_type(declaration: QueueDeclaration, default: str | None, *, adds_classic: bool) -> QueueDeclaration:
    """Return the declaration with the `default` type added, if it has no type.

    Transient, exclusive and auto-delete queues can only be classic. RabbitMQ 4 adds this type, too (`adds_classic`),
    and sorts the arguments of what it adds a type to. Source: rabbit_amqqueue.erl, augment_declare_args; is_compatible
    of each type.
    """
    table = declaration.arguments
    if table.get("x-queue-type", "undefined") != "undefined":
        return declaration
    if not declaration.is_durable or declaration.owner is not None or declaration.is_auto_delete:
        default = "classic"
    if default in (None, "classic") and not adds_classic:
        return declaration
    typed = {**table, "x-queue-type": default or "classic"}
    return declaration._replace(arguments=dict(sorted(typed.items())) if adds_classic else typed)


def check_shape(declaration: QueueDeclaration, profile: Profile, resource: str) -> None:
    """Raise PreconditionFailed for a property that a queue of its type cannot have, in RabbitMQ's order.

    The argument values have been checked. Source: rabbit_queue_type_util.erl; rabbit_stream_queue.erl, declare.
    """
    table = declaration.arguments
    queue_type = arguments.type_of(table)
    if queue_type == "classic":
        _check_deduplication(table, resource)
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
    if table.get("x-stream-max-segment-size-bytes", 0) > SEGMENT_BYTES_MAX:
        raise PreconditionFailed("Exceeded max value for x-stream-max-segment-size-bytes")
    if queue_type == "stream":
        _check_filter_size(table.get("x-stream-filter-size-bytes", FILTER_BYTES_MIN), profile)


def _check_deduplication(table: fields.Table, resource: str) -> None:
    """Raise PreconditionFailed for a wrong argument of deduplication. The plugin takes all but false for true."""
    value = table.get(DEDUPLICATION, False)
    if not isinstance(value, bool):
        raise PreconditionFailed(
            f"invalid arg '{DEDUPLICATION}' for {resource}: {{unacceptable_type,{fields.type_name(value)}}}"
        )
    if value:
        header_name(table)


def _check_filter_size(value: Any, profile: Profile) -> None:
    """Raise PreconditionFailed for a size that no stream's filter can have.

    RabbitMQ 4.3 has checked the type before (pull request 16284); elder versions take a value of another type as large.
    """
    if not fields.is_integer(value) or not FILTER_BYTES_MIN <= value <= FILTER_BYTES_MAX:
        gap = " " if profile.release >= (4, 3) else "  "
        raise PreconditionFailed(f"Invalid value for{gap}x-stream-filter-size-bytes")


# Uses of deprecated features, as predicates of a queue. Where they are not permitted, an import leaves it out.
NOT_PERMITTED: Final = {
    "transient_nonexcl_queues": "is neither durable nor exclusive",
    "queue_master_locator": "has the argument x-queue-master-locator",
}


def check_deprecated(declaration: QueueDeclaration, profile: Profile) -> None:
    """Raise InternalError for a queue that uses a feature that is not permitted."""
    feature = deprecated_feature(declaration, profile)
    if feature:
        raise _deprecated(feature, profile)


def deprecated_feature(declaration: QueueDeclaration, profile: Profile) -> str:
    """Return the name of a deprecated feature that a queue uses and that is not permitted, "" for none."""
    if not declaration.is_durable and declaration.owner is None and not profile.has_transient_queues:
        return "transient_nonexcl_queues"
    is_classic = arguments.type_of(declaration.arguments) == "classic"
    if is_classic and "x-queue-master-locator" in declaration.arguments and not profile.has_master_locator:
        return "queue_master_locator"
    return ""


def _deprecated(feature: str, profile: Profile) -> InternalError:
    """Return the error with the text of rabbit_deprecated_features.erl."""
    permit = f"deprecated_features.permit.{feature}"
    if feature in profile.denied_features:
        reason = (
            "Its use is not permitted per the configuration (overriding the default, which is permitted):\n"
            f'    "{permit} = false"\n'
            "Its use will not be permitted by default in a future minor RabbitMQ version and the feature will be "
            "removed from a future major RabbitMQ version; actual versions to be determined."
        )
    else:
        reason = (
            "By default, this feature is not permitted anymore.\n"
            "The feature will be removed from a future major RabbitMQ version, regardless of the configuration; "
            "actual version to be determined."
        )
    return InternalError(
        f"Feature `{feature}` is deprecated.\n{reason}\nTo continue using this feature when it is not permitted by "
        f'default, set the following parameter in your configuration:\n    "{permit} = true"'
    )


def check_equivalent(queue: Queue, declaration: QueueDeclaration) -> None:
    """Check another declaration of a queue, in RabbitMQ's order. Raises PreconditionFailed and ResourceLocked."""
    resource = str(queue)
    check_same_owner(queue, declaration.owner)
    arguments.require_equal(resource, "durable", queue.is_durable, declaration.is_durable)
    arguments.require_equal(resource, "auto_delete", queue.is_auto_delete, declaration.is_auto_delete)
    tables, profile = [queue.arguments, declaration.arguments], queue.vhost.broker.profile
    if profile.compares_age_in_ms:
        tables = [arguments.with_age_in_ms(table) for table in tables]
    arguments.require_equivalent(resource, arguments.known_by_queue(queue.type, profile.release), *tables)
