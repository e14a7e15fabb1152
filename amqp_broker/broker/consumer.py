"""Seam: who receives from a queue. The broker decides whose turn it is; a session knows how to send."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker import fields
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.counters import DeliveryCounts
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message


class Consumer:
    """A subscription to a queue. It stands in `queue.takers` exactly while `is_taking`.

    `number` is its channel's. `prefetch` is how many unacked deliveries it may have (0: any number), `in_flight` how
    many it has; `is_full` says that these are equal. `delivered` is how many it has got since it was there.
    """

    __slots__ = (
        "_told_acked",
        "_told_delivered",
        "_told_redelivered",
        "arguments",
        "connection",
        "counts",
        "delivered",
        "in_flight",
        "is_exclusive",
        "is_full",
        "is_taking",
        "late_count",
        "no_ack",
        "number",
        "prefetch",
        "priority",
        "queue",
        "redelivered",
        "refused",
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
        # How many of these are late by a fault, and not delivered yet.
        self.late_count = 0
        self.is_taking = False
        self.is_full = False
        # How many it got, again, and how many it gave back or refused; who counts them, and what these know.
        self.delivered = self.redelivered = self.refused = 0
        self.counts: tuple[DeliveryCounts, ...] = ()
        self._told_delivered = self._told_redelivered = self._told_acked = 0

    def can_take(self) -> bool:
        """Whether a message may be delivered now."""
        raise NotImplementedError

    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        """Send a message. If it can take no other after this one, it `is_full` or calls `queue.suspend(self)`."""
        raise NotImplementedError

    def reserve(self) -> None:
        """A message for it is late by a fault: until it is here, or is not to come, it counts as one that it has."""

    def deliver_reserved(self, message: Message, position: int, redelivered: bool) -> None:
        """Send a message that was late, whatever else the consumer could take."""
        self.deliver(message, position, redelivered)

    def release(self) -> None:
        """A message that was late is not to come: it counts no more."""

    def deliver_again(self, message: Message) -> None:
        """Send a message that it has got already once more; whatever becomes of this copy does not matter."""
        raise NotImplementedError

    @property
    def acked(self) -> int:
        """How many of its deliveries were acknowledged: what is settled, and was not refused."""
        return 0 if self.no_ack else self.delivered - (self.in_flight - self.late_count) - self.refused

    @property
    def is_active(self) -> bool:
        """Whether it gets messages: all do, but those that wait behind a single active consumer."""
        queue = self.queue
        return not queue.is_single_active or queue.active_consumer is self

    @property
    def activity_status(self) -> str:
        """RabbitMQ's name for that: "up", "single_active" or "waiting"."""
        if not self.queue.is_single_active:
            return "up"
        return "single_active" if self.is_active else "waiting"

    def collect(self) -> bool:
        """Tell its counts to all that have to know them; returns whether anything was new."""
        delivered, acked = self.delivered - self._told_delivered, self.acked - self._told_acked
        if not delivered and not acked:
            return False
        redelivered = self.redelivered - self._told_redelivered
        for counts in self.counts:
            if self.no_ack:
                counts.deliver_no_ack += delivered
            else:
                counts.deliver += delivered
                counts.ack += acked
            counts.redeliver += redelivered
        self._told_delivered += delivered
        self._told_acked += acked
        self._told_redelivered += redelivered
        return True

    def on_queue_deleted(self) -> None:
        """The queue is gone, and this subscription with it."""
        raise NotImplementedError
