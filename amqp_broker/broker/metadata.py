"""What an administrator notes about a vhost, and what of it the vhost obeys.

Source: RabbitMQ, "Virtual Hosts": metadata, default queue type, deletion protection.
"""

from __future__ import annotations

from dataclasses import dataclass

from amqp_broker import fields
from amqp_broker.errors import InvalidParameter


@dataclass(frozen=True)
class Metadata:
    """Metadata of a vhost; `default_queue_type` is classic, quorum or stream, or None: what queues say."""

    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    is_protected_from_deletion: bool = False

    def check(self) -> None:
        """Raise InvalidParameter for a type of queues that there is not."""
        if self.default_queue_type not in (None, "classic", "quorum", "stream"):
            raise InvalidParameter(f"unsupported queue type '{self.default_queue_type}'")


def with_queue_type(
    arguments_: fields.Table, default: str | None, *, is_durable: bool, is_exclusive: bool, is_auto_delete: bool
) -> fields.Table:
    """The arguments of a queue that is declared where a type of queues is the `default`.

    A queue that names no type gets that one, unless it is what only classic queues can be: transient, exclusive or
    deleted by itself. Source: rabbit_amqqueue.erl, augment_declare_args; is_compatible of each type. There a queue
    that becomes a classic one is told so, too; without a type it is the same, and comes back from an export as it was.
    """
    if default in (None, "classic") or arguments_.get("x-queue-type", "undefined") != "undefined":
        return arguments_
    is_classic = not is_durable or is_exclusive or is_auto_delete
    return arguments_ if is_classic else {**arguments_, "x-queue-type": default}
