"""The trace of a vhost's messages, as far as queues and their consumers take part in it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Address, Message, NumberedMessage
    from amqp_broker.broker.clients.peer import Peer
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.stream import StreamQueue

# `Run.following` of a run whose numbers are listed.
LISTED: Final = -1


class Run:
    """Events of one kind, place, address and time, as a row of a record (broker/observe/record.py).

    `index` counts the rows of a broker. `first` is the number of its first message. While the numbers are consecutive,
    `following` is the one after the last; later `numbers` has all. `sizes` has the size of the body of each delivery, 8
    octets each, `tags` the publish number of each confirm.
    """

    __slots__ = (
        "address",
        "first",
        "following",
        "index",
        "numbers",
        "place",
        "redelivered",
        "sizes",
        "tags",
        "time_us",
        "value",
    )

    def __init__(
        self, index: int, time_us: int, place: int, address: Address, first: int, value: int, redelivered: bool = False
    ) -> None:
        self.index = index
        self.time_us = time_us
        self.place = place
        self.address = address
        self.first = first
        self.following = first + 1
        self.value = value
        self.redelivered = redelivered
        self.numbers: list[int] | None = None
        self.sizes: list[bytes] | None = None
        self.tags: list[int] | None = None

    @property
    def count(self) -> int:
        """Number of events."""
        return self.following - self.first if self.numbers is None else len(self.numbers)

    def take(self, message: NumberedMessage) -> None:
        """Add an event of a message, whose last row this becomes."""
        message.row = self.index
        number = message.number
        if number == self.following:
            self.following = number + 1
            return
        if self.numbers is None:
            self.numbers = list(range(self.first, self.following))
            self.following = LISTED
        self.numbers.append(number)


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueTrace:
    """Receives what happens to messages in queues, in the order of a message's life."""

    @abstractmethod
    def delivered(
        self, queue: Queue, message: Message, redelivered: bool, connection: Peer, channel: int, no_ack: bool
    ) -> None:
        """Report a message that was sent to a consumer or in answer to basic.get."""

    def delivered_to(self, consumer: Consumer, message: Message, redelivered: bool) -> None:
        """Report a message that was sent to a consumer."""
        self.delivered(consumer.queue, message, redelivered, consumer.connection, consumer.number, consumer.no_ack)

    @abstractmethod
    def acked(self, queue: Queue, message: Message, connection: Peer, channel: int) -> None:
        """Report a message that was settled."""

    def acked_by(self, consumer: Consumer, message: Message) -> None:
        """Report a message that was settled, which a consumer had."""
        self.acked(consumer.queue, message, consumer.connection, consumer.number)

    @abstractmethod
    def given_up(self, queue: Queue, message: Message, reason: str, *, is_refused: bool = False) -> None:
        """Report a message that a queue has expired or dropped, or (`is_refused`) not taken."""

    # The following change the place of a message without any method of a client. A recorder has no rows for them.

    def requeued(self, queue: Queue, message: Message, reason: str) -> None:
        """Report a message that is ready again although no client has returned it."""

    def delayed(self, queue: Queue, message: Message) -> None:
        """Report a message that came back, and that its queue keeps from consumers for a while."""

    def stored(self, queue: StreamQueue, offset: int, message: Message) -> None:
        """Report a message that a stream has taken; the stream reports when it drops it."""
