"""A route: the meaning of a publisher's method frame until the topology changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amqp_broker.amqp.message import Address, Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.refused_publishers import Publisher


def offer(broker: Broker, message: Message, queues: Iterable[Queue], publisher: Publisher | None = None) -> bool:
    """Offer a message to queues; return False if one refused it, while the others have it nevertheless.

    Dead letters wait until all queues have the message. A quorum queue refuses only a `publisher`.
    """
    is_taken = True
    with broker.dead_letters_held():
        for queue in queues:
            if not queue.offer(message, publisher):
                is_taken = False
    return is_taken


class Route:
    """The result of publishing with an exchange, routing key and flags.

    `is_plain` means that only the queues matter: no exchange needs more than the key, no publisher waits for a return
    if there are no queues, and no queue can refuse. `count` is the number of messages that `VHostCounts.collect` has
    not counted yet. `only_queue` is the queue if there is only one, and `is_narrow` means that it has no dead letters,
    each of which may have many targets. `is_recorded` means that a recorder is to learn of each publish.
    `holds_dead_letters` means that dead letters of one queue wait until all have the message.
    """

    __slots__ = (
        "address",
        "count",
        "exchange",
        "holds_dead_letters",
        "is_narrow",
        "is_plain",
        "is_recorded",
        "mandatory",
        "only_queue",
        "queues",
    )

    def __init__(
        self,
        address: Address,
        exchange: Exchange,
        mandatory: bool,
        queues: tuple[Queue, ...],
        is_plain: bool,
        is_recorded: bool = False,
    ) -> None:
        self.address = address
        self.exchange = exchange
        self.mandatory = mandatory
        self.queues = queues
        self.is_plain = is_plain
        self.is_recorded = is_recorded
        self.count = 0
        has_dead_letters = any(queue.settings.dead_letter_exchange is not None for queue in queues)
        self.only_queue = queues[0] if len(queues) == 1 else None
        self.is_narrow = len(queues) == 1 and not has_dead_letters
        self.holds_dead_letters = len(queues) > 1 and has_dead_letters

    def push(self, message: Message, expiration_ms: int | None) -> None:
        """Push a message to its queues; the route is plain."""
        if self.holds_dead_letters:
            with self.queues[0].vhost.broker.dead_letters_held():
                self._push(message, expiration_ms)
        else:
            self._push(message, expiration_ms)

    def _push(self, message: Message, expiration_ms: int | None) -> None:
        if expiration_ms is not None:
            for queue in self.queues:
                queue.push_with_extras(message, expiration_ms)
        else:
            for queue in self.queues:
                queue.push(message)
