"""Direct reply-to: what stands for the queue that replies to a channel's requests go to.

A channel that consumes from `amq.rabbitmq.reply-to` gets a name of its own, which its requests carry. A message
published to that name through the default exchange goes to the channel.
Source: RabbitMQ, "Direct Reply-to".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.property_list import DIRECT_REPLY_TO
from amqp_broker.broker.counting.counters import VOLATILE
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.broker.queues.statistics import QueueStatistics

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.vhost import VHost


REPLY_TO: Final = DIRECT_REPLY_TO.decode("ascii")
REPLY_PREFIX: Final = REPLY_TO + "."
# Length of what follows the prefix.
UNIQUE_CHARACTERS: Final = 22


def is_reply_name(name: str) -> bool:
    """Return whether a name is reserved for direct replies."""
    return name == REPLY_TO or name.startswith(REPLY_PREFIX)


def was_reply_name(name: str) -> bool:
    """Return whether a name has the form of those that the broker gives."""
    return name.startswith(REPLY_PREFIX) and len(name) - len(REPLY_PREFIX) == UNIQUE_CHARACTERS


class ReplyQueue(ClassicQueue):
    """Hands replies to its one consumer. It keeps a reply only while that consumer's socket is full.

    `remove` is called when the consumer has gone.
    """

    takes_global_prefetch = False

    def __init__(self, vhost: VHost, name: str, remove: Callable[[ReplyQueue], None] | None = None) -> None:
        super().__init__(vhost, QueueDeclaration(name, {}))
        self._remove = remove
        # It has no row and no samples.
        self.is_changed = True
        broker = vhost.broker
        self.statistics = QueueStatistics(broker.now, vhost.counts.deliveries, broker.counters.deliveries[VOLATILE])

    def _update_extras(self) -> None:
        """Leave `has_extras` unset: replies do not expire, and the trace does not have their deliveries."""

    def push(self, message: Message) -> None:
        if self.consumers:
            super().push(message)

    def push_with_extras(self, message: Message, expiration_ms: int | None = None) -> None:
        self.push(message)

    def subscribe(self, consumer: Consumer) -> None:
        self.rotation.add(consumer)

    def unsubscribe(self, consumer: Consumer) -> None:
        self.rotation.remove(consumer)
        self.is_deleted = True
        if self._remove is not None:
            self._remove(self)
