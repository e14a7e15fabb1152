"""A subscription to a queue. The queue decides whose turn it is; a session sends the messages."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.clients.peer import Peer
    from amqp_broker.broker.counting.counters import DeliveryCounts
    from amqp_broker.broker.counting.history import History
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.queue_trace import Run
    from amqp_broker.session.channel.channel_limit import ChannelLimit


class ConsumerAttributes(NamedTuple):
    """The attributes that a client gives a consumer; `prefetch` is the channel's (0: no limit)."""

    tag: str
    arguments: fields.Table
    no_ack: bool = False
    is_exclusive: bool = False
    prefetch: int = 0
    priority: int = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Consumer:
    """A subscription to a queue; it is among the ready consumers of the queue exactly while `is_taking`.

    `number` is that of its channel. `prefetch` is the number of unacked deliveries that it may have (0 for any number),
    `in_flight` the number that it has; `is_full` is set while they are equal, while its channel's `limit` for all
    consumers is reached (None if there is none), and while a quorum queue quiesces: settling must wake it. Ask
    `has_room` whether it is at its own prefetch. `channel_prefetch` is the prefetch that its channel had for it, even
    if it has no acknowledgements. `delivered` counts all its deliveries.
    """

    __slots__ = (
        "_collected_acked",
        "_collected_delivered",
        "_collected_redelivered",
        "ack_run",
        "arguments",
        "channel_prefetch",
        "connection",
        "counts",
        "delivered",
        "delivery_run",
        "history",
        "in_flight",
        "is_exclusive",
        "is_full",
        "is_leaving",
        "is_taking",
        "limit",
        "no_ack",
        "number",
        "prefetch",
        "priority",
        "queue",
        "redelivered",
        "refused",
        "reserved_count",
        "sequence",
        "tag",
        "timed_out_tags",
        "timeout_ms",
    )

    def __init__(self, connection: Peer, queue: Queue, attributes: ConsumerAttributes) -> None:
        self.connection = connection
        # Its own time to settle a delivery; None for that of the queue.
        self.timeout_ms: int | None = None
        # Deliveries that have timed out and are not settled yet: until they are, the consumer gets nothing.
        self.timed_out_tags: set[int] | None = None
        self.limit: ChannelLimit | None = None
        self.queue = queue
        self.tag = attributes.tag
        self.no_ack = attributes.no_ack
        self.is_exclusive = attributes.is_exclusive
        self.channel_prefetch = attributes.prefetch
        self.prefetch = 0 if attributes.no_ack else attributes.prefetch
        self.priority = attributes.priority
        self.arguments = attributes.arguments
        self.number = 0
        # Its number among the subscriptions of its channel.
        self.sequence = 0
        self.in_flight = 0
        # Part of `in_flight`: deliveries that a fault rule still holds back.
        self.reserved_count = 0
        self.is_taking = False
        self.is_full = False
        # Set when its channel has ended, until it has left its queue.
        self.is_leaving = False
        # Totals since the subscription. `counts` are the counters that they are added to; `_collected_*` is what has
        # been added.
        self.delivered = self.redelivered = self.refused = 0
        self.counts: tuple[DeliveryCounts, ...] = ()
        self._collected_delivered = self._collected_redelivered = self._collected_acked = 0
        self.history: History | None = None
        # The last runs in a trace.
        self.delivery_run: Run | None = None
        self.ack_run: Run | None = None

    @property
    def has_room(self) -> bool:
        """True if its own prefetch allows a delivery."""
        return not self.prefetch or self.in_flight < self.prefetch

    @abstractmethod
    def can_take(self) -> bool:
        """Return whether it may line up for messages. A shared `limit` applies only when it is its turn."""

    @abstractmethod
    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        """Send a message. A consumer that can take no other afterwards sets `is_full` or suspends itself."""

    @abstractmethod
    def reserve(self) -> None:
        """Count a message that a fault delays as in flight, until it is delivered or released."""

    def deliver_reserved(self, message: Message, position: int, redelivered: bool) -> None:
        """Send a message that was delayed, even if the consumer can take no other."""
        self.deliver(message, position, redelivered)

    @abstractmethod
    def release(self) -> None:
        """Stop counting a delayed message, which will not be delivered."""

    @abstractmethod
    def deliver_again(self, message: Message) -> None:
        """Send a duplicate of a message that was delivered; settling it changes nothing in the queue."""

    def take_over(self, count: int) -> None:
        """Take over unsettled deliveries of a cancelled consumer before any own ones."""
        self.in_flight = count
        # They are counted where they were delivered.
        self.delivered = self._collected_delivered = count
        if self.prefetch:
            self.prefetch = max(self.prefetch, count) if self.queue.keeps_leavers else self.prefetch + count
            self.is_full = self.prefetch == count

    @property
    def acked(self) -> int:
        """Number of deliveries that were acknowledged: those settled, without the rejected ones."""
        return 0 if self.no_ack else self.delivered - (self.in_flight - self.reserved_count) - self.refused

    def totals(self) -> dict[str, int]:
        """Return the numbers of deliveries and of acks since the subscription."""
        return {"delivered": self.delivered, "acked": self.acked}

    @property
    def is_active(self) -> bool:
        """True if it gets messages; consumers behind a single active one do not."""
        rotation = self.queue.rotation
        return not rotation.is_single_active or rotation.active_consumer is self

    @property
    def activity_status(self) -> str:
        """RabbitMQ's word for `is_active`: "up", "single_active" or "waiting"."""
        if not self.queue.rotation.is_single_active:
            return "up"
        return "single_active" if self.is_active else "waiting"

    def collect(self) -> bool:
        """Add what is new to all counts; return whether there was anything."""
        delivered, acked = self.delivered - self._collected_delivered, self.acked - self._collected_acked
        if not delivered and not acked:
            return False
        redelivered = self.redelivered - self._collected_redelivered
        for counts in self.counts:
            if self.no_ack:
                counts.deliver_no_ack += delivered
            else:
                counts.deliver += delivered
                counts.ack += acked
            counts.redeliver += redelivered
        self.queue.note_change()
        self._collected_delivered += delivered
        self._collected_acked += acked
        self._collected_redelivered += redelivered
        return True

    @abstractmethod
    def on_queue_deleted(self) -> None:
        """End the subscription; the queue was deleted."""
