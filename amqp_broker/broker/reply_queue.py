"""Direct reply-to: a queue that is none, for the answers to what a channel asks.

A channel that consumes from `amq.rabbitmq.reply-to` gets a name of its own, which goes out with its questions; who
publishes to that name through the default exchange reaches the channel, and nobody but it.
Source: RabbitMQ, "Direct Reply-to".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqp_broker.broker.consumer import Consumer
from amqp_broker.broker.queue import Queue
from amqp_broker.message import Message

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost

REPLY_TO: Final = "amq.rabbitmq.reply-to"
REPLY_PREFIX: Final = REPLY_TO + "."


def is_reply_name(name: str) -> bool:
    """Whether a queue of that name could only be one for direct replies."""
    return name == REPLY_TO or name.startswith(REPLY_PREFIX)


class ReplyQueue(Queue):
    """Hands answers to its one consumer; keeps only what that one's full socket has no room for, and else nothing."""

    def __init__(self, vhost: VHost, name: str) -> None:
        super().__init__(vhost, name, is_durable=False, is_auto_delete=False, owner=None, arguments={})

    def _update_extras(self) -> None:
        """Nothing is extra: answers do not expire, and the firehose does not see them delivered."""

    def push(self, message: Message) -> None:
        if self.consumers:
            super().push(message)

    def push_with_extras(self, message: Message, expiration_ms: int | None = None) -> None:
        self.push(message)

    def subscribe(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)

    def unsubscribe(self, consumer: Consumer) -> None:
        self.suspend(consumer)
        self.clogged.discard(consumer)
        self.consumers.remove(consumer)
        self.is_deleted = True
        self.vhost.remove_reply_queue(self)
