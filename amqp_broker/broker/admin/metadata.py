"""Metadata of a vhost: description, tags, default queue type and deletion protection.

Source: RabbitMQ, "Virtual Hosts": metadata, default queue type, deletion protection.
"""

from __future__ import annotations

from dataclasses import dataclass

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter


@dataclass(frozen=True)
class Metadata:
    """Metadata of a vhost; `default_queue_type` is classic, quorum or stream, or None without a default."""

    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    is_protected_from_deletion: bool = False

    def check(self) -> None:
        """Raise InvalidParameter for an unknown queue type."""
        if self.default_queue_type not in (None, "classic", "quorum", "stream"):
            raise InvalidParameter(f"unsupported queue type '{self.default_queue_type}'")


def with_queue_type(
    arguments_: fields.Table, default: str | None, *, is_durable: bool, is_exclusive: bool, is_auto_delete: bool
) -> fields.Table:
    """Return the arguments of a declared queue with the `default` type added, if it applies.

    It applies to queues without a type, except those that can only be classic: transient, exclusive and auto-delete
    ones. Source: rabbit_amqqueue.erl, augment_declare_args; is_compatible of each type. RabbitMQ also adds the type
    `classic`; a queue without a type is the same, and is exported as it was declared.
    """
    if default in (None, "classic") or arguments_.get("x-queue-type", "undefined") != "undefined":
        return arguments_
    is_classic = not is_durable or is_exclusive or is_auto_delete
    return arguments_ if is_classic else {**arguments_, "x-queue-type": default}
