"""Metadata of a vhost: description, tags, default queue type and deletion protection.

Source: RabbitMQ, "Virtual Hosts": metadata, default queue type, deletion protection.
"""

from __future__ import annotations

from dataclasses import dataclass

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
