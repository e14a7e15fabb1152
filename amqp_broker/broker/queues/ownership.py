"""Exclusive queues: only the connection that declared one may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.amqp.errors import ResourceLocked

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.queues.queue import Queue


def check_owner(queue: Queue, connection: Connection | None) -> None:
    """Raise ResourceLocked if a queue is exclusive to another connection than this one; None is no connection."""
    if queue.owner is not None and queue.owner is not connection:
        raise _locked(queue)


def check_same_owner(queue: Queue, owner: Connection | None) -> None:
    """Raise ResourceLocked unless a queue belongs to this owner; None is a queue that is not exclusive."""
    if queue.owner is not owner:
        raise _locked(queue)


def _locked(queue: Queue) -> ResourceLocked:
    return ResourceLocked(
        f"cannot obtain exclusive access to locked {queue}. It could be originally declared on another "
        "connection or the exclusive property value does not match that of the original declaration."
    )
