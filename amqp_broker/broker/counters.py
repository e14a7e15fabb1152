"""What is counted: what was published and delivered, settled and given up, and what came and went.

The hot path counts where it costs next to nothing: a channel its publishes, a consumer its deliveries. Once per
question, `Counters.collect` carries that to the channel's statistics, to queue, exchange, vhost and node. What is rare
is counted everywhere at once. Nothing here ever decreases: what a closed channel or a deleted queue has counted stays
in the totals.
Source: rabbit_core_metrics.erl, rabbit_channel.erl (INCR_STATS), rabbit_global_counters.erl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker

QUEUE_TYPES: Final = ("classic", "quorum", "stream")
STRATEGIES: Final = ("at_most_once", "disabled")
REASONS: Final = ("expired", "rejected", "maxlen", "delivery_limit")


class PublishCounts:
    """Messages published to one exchange, or to all of a vhost or node: from one channel, or from all.

    `publish` is how many there were, `routed` how many copies of them went to queues. `confirm` counts acks and no
    nacks. `return_unroutable` and `drop_unroutable` are those that found no queue: mandatory ones, and the others.
    """

    __slots__ = ("confirm", "drop_unroutable", "publish", "return_unroutable", "routed")

    def __init__(self) -> None:
        self.publish = 0
        self.routed = 0
        self.confirm = 0
        self.return_unroutable = 0
        self.drop_unroutable = 0

    def count(self, messages: int, queues: int, mandatory: bool) -> None:
        """So many messages were published, each to so many queues."""
        self.publish += messages
        self.routed += messages * queues
        if not queues and mandatory:
            self.return_unroutable += messages
        elif not queues:
            self.drop_unroutable += messages

    def add(self, other: PublishCounts) -> None:
        for name in PublishCounts.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def stats(self) -> dict[str, int]:
        """What RabbitMQ's `message_stats` have of it, by their names; nothing before the first publish."""
        names = ("publish", "confirm", "return_unroutable", "drop_unroutable")
        return {name: getattr(self, name) for name in names} if self.publish else {}

    def exchange_stats(self) -> dict[str, int]:
        """The `message_stats` of an exchange: what came in, and what went out of it to queues."""
        counts = {"publish_in": self.publish, "publish_out": self.routed}
        return {name: count for name, count in counts.items() if count}


class DeliveryCounts:
    """Messages that went out: of one queue, or of all of a vhost or a type; to one channel, or to all.

    `deliver` and `get` have to be settled, `deliver_no_ack` and `get_no_ack` have not. `redeliver` counts what these
    have counted, too. `ack` is basic.ack alone.
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
        """All that left a queue for a client, however."""
        return self.deliver + self.deliver_no_ack + self.get + self.get_no_ack

    def add(self, other: DeliveryCounts) -> None:
        for name in DeliveryCounts.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def stats(self) -> dict[str, int]:
        """What RabbitMQ's `message_stats` have of it, by their names.

        They have all of these as soon as one of them has happened, and none before.
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
    """What a node has counted since it was started. Call `collect` before reading anything, here or elsewhere."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.publishes = PublishCounts()
        # Publishes on channels in confirm mode.
        self.received_confirm = 0
        # By type of queue.
        self.deliveries = {kind: DeliveryCounts() for kind in QUEUE_TYPES}
        # What queues gave up, by type of queue, strategy and reason; without a dead-letter exchange the strategy is
        # "disabled".
        self.dead_lettered = {
            (kind, strategy, reason): 0 for kind in QUEUE_TYPES for strategy in STRATEGIES for reason in REASONS
        }
        self.connections_created = self.connections_closed = 0
        self.channels_created = self.channels_closed = 0
        self.queues_declared = self.queues_created = self.queues_deleted = 0

    def collect(self) -> None:
        """Bring all counts up to date: a few microseconds for each open channel, and for each route in use."""
        for channel in self._broker.channels():
            channel.collect()
        for vhost in self._broker.vhosts.values():
            vhost.count_routes()

    def churn(self) -> dict[str, int]:
        """The `churn_rates` of a node."""
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
        """The `message_stats` of a node."""
        deliveries = DeliveryCounts()
        for counts in self.deliveries.values():
            deliveries.add(counts)
        return {**self.publishes.stats(), **deliveries.stats()}
