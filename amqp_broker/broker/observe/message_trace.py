"""The trace of a vhost's messages, as the parts of the broker report to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from amqp_broker.amqp.message import Message, NumberedMessage, Properties
from amqp_broker.broker.queues.queue_trace import QueueTrace

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.broker.clients.peer import Peer
    from amqp_broker.broker.lab.publish_faults import Discard
    from amqp_broker.broker.queues.queue import Queue

TRACE_EXCHANGE: Final = "amq.rabbitmq.trace"


@mypyc_attr(allow_interpreted_subclasses=True)
class MessageTrace(QueueTrace):
    """Receives the events of a vhost's messages, in the order of a message's life."""

    @abstractmethod
    def numbered(self, message: Message, origin: Message | None = None) -> Message:
        """Return the message with a number if events need one; `origin` is the message it was dead-lettered from."""

    @abstractmethod
    def published(
        self,
        connection: Peer,
        channel: int,
        message: Message,
        queues: Iterable[Queue],
        mandatory: bool = False,
        discard: Discard | None = None,
    ) -> None:
        """Report a message that is about to go to its queues, unless a fault (`discard`) keeps it from them."""

    def published_in_transaction(
        self, connection: Peer, channel: int, message: Message, queues: Iterable[Queue], mandatory: bool
    ) -> None:
        """Report a message that goes to its queues when the transaction of its channel is committed."""

    def committed(
        self,
        connection: Peer,
        channel: int,
        message: Message,
        queues: Iterable[Queue],
        mandatory: bool,
        discard: Discard | None,
    ) -> None:
        """Report a message of a transaction that is about to go to its queues."""
        self.published(connection, channel, message, queues, mandatory, discard)

    def rolled_back(self, connection: Peer, channel: int, message: Message, reason: str) -> None:
        """Report a message of a transaction that goes nowhere."""

    @abstractmethod
    def returned(self, connection: Peer, channel: int, message: Message, code: int, text: str) -> None:
        """Report a mandatory message without a queue."""

    @abstractmethod
    def confirmed(self, connection: Peer, channel: int, message: Message, tag: int, is_ack: bool) -> None:
        """Report the confirm of a message, an ack or a nack."""

    def confirmed_all(self, connection: Peer, channel: int, messages: dict[int, Message]) -> None:
        """Report that messages were confirmed by acks, given by their publish numbers."""
        for tag, message in messages.items():
            self.confirmed(connection, channel, message, tag, True)

    @abstractmethod
    def nacked(self, queue: Queue, message: Message, requeue: bool, connection: Peer, channel: int) -> None:
        """Report a message that was rejected, or requeued by basic.recover."""

    @abstractmethod
    def dead_lettered(self, queue: Queue, message: Message, dead: Message, reason: str, targets: list[Queue]) -> None:
        """Report `message`, which is about to go to its next queues as `dead`."""

    def kept_back(self, exchange: str, message: Message) -> None:
        """Note that a delayed exchange keeps a message; the report of its publish or its death follows."""

    def dropped_duplicate(self, exchange: str, message: Message) -> None:
        """Note that an exchange drops a duplicate; the report of its publish or its death follows."""

    def take_unacked(self, queue: Queue) -> list[Message]:
        """Return the unacked messages of a queue that was deleted, for a report of each."""
        return []

    def routed(self, exchange: str, message: Message, queues: list[Queue], *, is_due: bool) -> None:
        """Report a message that an exchange sends because it is due, or once more from its history."""

    def discarded(self, exchange: str, message: Message) -> None:
        """Report a message that was deleted with the delayed exchange that kept it."""

    def moved(self, queue: Queue, message: Message, targets: list[Queue]) -> None:
        """Report a message that an administrator moves from its queue to others."""

    def faulted(self, connection: str, facts: fields.Table, message: Message | None, queue: str | None) -> None:
        """Report a fault that has hit a message, at a queue or at its exchange, or (None) a connection."""


def is_own(message: Message, properties: Properties | None = None) -> bool:
    """Return True for a message of the trace, dead-lettered ones included."""
    if message.exchange == TRACE_EXCHANGE:
        return True
    if isinstance(message, NumberedMessage) and message.number:
        return False
    headers = (properties or message.properties()).headers or {}
    return headers.get("x-first-death-exchange") == TRACE_EXCHANGE


def death_count(dead: Message) -> int:
    """Return the number of deaths with the latest queue and reason, the first entry of x-death."""
    deaths = (dead.properties().headers or {}).get("x-death")
    return int(deaths[0]["count"]) if isinstance(deaths, list) else 1


def user_name(connection: Peer) -> str:
    return connection.user.name if connection.user is not None else ""
