"""Seam: who receives from a queue. The broker decides whose turn it is; a session knows how to send."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker import fields
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message


class Consumer:
    """A subscription to a queue. It stands in `queue.takers` exactly while `is_taking`.

    `number` is its channel's. `prefetch` is how many unacked deliveries it may have (0: any number), `in_flight` how
    many it has; `is_full` says that these are equal.
    """

    __slots__ = (
        "arguments",
        "connection",
        "in_flight",
        "is_exclusive",
        "is_full",
        "is_taking",
        "no_ack",
        "number",
        "prefetch",
        "priority",
        "queue",
        "tag",
    )

    def __init__(
        self,
        connection: Connection,
        queue: Queue,
        tag: str,
        *,
        no_ack: bool,
        is_exclusive: bool,
        prefetch: int,
        priority: int,
        arguments: fields.Table,
    ) -> None:
        self.connection = connection
        self.queue = queue
        self.tag = tag
        self.no_ack = no_ack
        self.is_exclusive = is_exclusive
        self.prefetch = 0 if no_ack else prefetch
        self.priority = priority
        self.arguments = arguments
        self.number = 0
        self.in_flight = 0
        self.is_taking = False
        self.is_full = False

    def can_take(self) -> bool:
        """Whether a message may be delivered now."""
        raise NotImplementedError

    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        """Send a message. If it can take no other after this one, it `is_full` or calls `queue.suspend(self)`."""
        raise NotImplementedError

    def on_queue_deleted(self) -> None:
        """The queue is gone, and this subscription with it."""
        raise NotImplementedError
