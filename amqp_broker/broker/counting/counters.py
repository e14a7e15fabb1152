"""Counts of messages published, delivered, settled and given up, and of objects created and deleted.

The hot path counts where that costs next to nothing: a channel counts its publishes, a consumer its deliveries. Before
counts are read, `Broker.collect_counts` adds them to those of channel, queue, exchange, vhost and node. Rare events are
counted everywhere at once. No count ever decreases: the counts of a closed channel or a deleted queue stay in the
totals.
Source: rabbit_core_metrics.erl, rabbit_channel.erl (INCR_STATS), rabbit_global_counters.erl.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.broker.counting.history import History

QUEUE_TYPES: Final = ("classic", "quorum", "stream")
# The type under which RabbitMQ 4.2 and later count direct replies.
VOLATILE: Final = "volatile"
AT_LEAST_ONCE: Final = "at_least_once"
AT_MOST_ONCE: Final = "at_most_once"
NO_DEAD_LETTERS: Final = "disabled"
CONFIRMED: Final = "confirmed"
# Counts of the messages that queues have given up: the type of queue, the strategy, and the reason or CONFIRMED.
DEAD_LETTERED: Final = (
    *[
        (kind, strategy, reason)
        for kind in ("classic", "quorum")
        for strategy in (AT_MOST_ONCE, NO_DEAD_LETTERS)
        for reason in ("expired", "rejected", "maxlen")
    ],
    *[("quorum", strategy, "delivery_limit") for strategy in (AT_LEAST_ONCE, AT_MOST_ONCE, NO_DEAD_LETTERS)],
    *[("quorum", AT_LEAST_ONCE, reason) for reason in ("expired", "rejected", CONFIRMED)],
    (VOLATILE, NO_DEAD_LETTERS, "maxlen"),
)


class PublishCounts:
    """Counts of messages published to an exchange, or to all of a vhost or node, by one channel or all.

    `publish` counts messages, `routed` their copies in queues. `confirm` counts acks and no nacks.
    `return_unroutable` and `drop_unroutable` count messages without a queue: mandatory ones, and the others.
    """

    __slots__ = ("confirm", "drop_unroutable", "publish", "return_unroutable", "routed")

    def __init__(self) -> None:
        self.publish = 0
        self.routed = 0
        self.confirm = 0
        self.return_unroutable = 0
        self.drop_unroutable = 0

    def count(self, messages: int, queues: int, mandatory: bool) -> None:
        """Count published messages, each of which was routed to this number of queues."""
        self.publish += messages
        self.routed += messages * queues
        if not queues and mandatory:
            self.return_unroutable += messages
        elif not queues:
            self.drop_unroutable += messages

    def add(self, other: PublishCounts) -> None:
        self.publish += other.publish
        self.routed += other.routed
        self.confirm += other.confirm
        self.return_unroutable += other.return_unroutable
        self.drop_unroutable += other.drop_unroutable

    def stats(self) -> dict[str, int]:
        """Return the counts under their names in `message_stats`; empty before the first publish."""
        names = ("publish", "confirm", "return_unroutable", "drop_unroutable")
        return {name: getattr(self, name) for name in names} if self.publish else {}

    def exchange_stats(self) -> dict[str, int]:
        """Return the `message_stats` of an exchange: messages in, and copies out to queues."""
        counts = {"publish_in": self.publish, "publish_out": self.routed}
        return {name: count for name, count in counts.items() if count}

    def unroutable_stats(self) -> dict[str, int]:
        """Return how many messages of an exchange had no queue, which RabbitMQ shows of channels alone."""
        counts = {"return_unroutable": self.return_unroutable, "drop_unroutable": self.drop_unroutable}
        return {name: count for name, count in counts.items() if count}


class DeliveryCounts:
    """Counts of deliveries from one queue, or from all of a vhost or a type, to one channel or to all.

    `deliver` and `get` have to be settled, `deliver_no_ack` and `get_no_ack` have not. `redeliver` counts the
    redelivered ones among these four. `ack` counts basic.ack alone.
    """

    __slots__ = ("ack", "deliver", "deliver_no_ack", "get", "get_empty", "get_no_ack", "redeliver")

    def __init__(self) -> None:
        self.deliver = 0
        self.deliver_no_ack = 0
        self.get = 0
        self.get_no_ack = 0
        self.get_empty = 0
        self.redeliver = 0
        self.ack = 0

    @property
    def deliver_get(self) -> int:
        """All messages sent to clients, whether by basic.deliver or basic.get."""
        return self.deliver + self.deliver_no_ack + self.get + self.get_no_ack

    def add(self, other: DeliveryCounts) -> None:
        self.deliver += other.deliver
        self.deliver_no_ack += other.deliver_no_ack
        self.get += other.get
        self.get_no_ack += other.get_no_ack
        self.get_empty += other.get_empty
        self.redeliver += other.redeliver
        self.ack += other.ack

    def stats(self) -> dict[str, int]:
        """Return the counts under their names in `message_stats`.

        As soon as one count is not 0, all are included; before that, none is.
        """
        if not self.deliver_get and not self.ack and not self.get_empty:
            return {}
        return {
            "ack": self.ack,
            "deliver": self.deliver,
            "deliver_no_ack": self.deliver_no_ack,
            "get": self.get,
            "get_empty": self.get_empty,
            "get_no_ack": self.get_no_ack,
            "redeliver": self.redeliver,
            "deliver_get": self.deliver_get,
        }


class Counters:
    """The counts of a node since its start. Call `Broker.collect_counts` before reading any counts."""

    def __init__(self) -> None:
        self.history: History | None = None
        self.publishes = PublishCounts()
        # Publishes on channels in confirm mode.
        self.received_confirm = 0
        # By type of queue.
        self.deliveries = {kind: DeliveryCounts() for kind in (*QUEUE_TYPES, VOLATILE)}
        self.dead_lettered = Counter(dict.fromkeys(DEAD_LETTERED, 0))
        self.connections_created = self.connections_closed = 0
        self.channels_created = self.channels_closed = 0
        self.queues_declared = self.queues_created = self.queues_deleted = 0

    def churn(self) -> dict[str, int]:
        """Return the `churn_rates` of the node."""
        return {
            "connection_created": self.connections_created,
            "connection_closed": self.connections_closed,
            "channel_created": self.channels_created,
            "channel_closed": self.channels_closed,
            "queue_declared": self.queues_declared,
            "queue_created": self.queues_created,
            "queue_deleted": self.queues_deleted,
        }

    def message_stats(self) -> dict[str, int]:
        """Return the `message_stats` of the node."""
        deliveries = DeliveryCounts()
        for counts in self.deliveries.values():
            deliveries.add(counts)
        return {**self.publishes.stats(), **deliveries.stats()}
