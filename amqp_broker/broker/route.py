"""A route: what a publisher's method frame means while the topology stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.exchange import Exchange
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Address


class Route:
    """What a publish with this exchange, routing key and flags leads to.

    `is_plain` means that the queues are all there is to it: no exchange that looks at more than the key, nobody to tell
    if there are no queues, and no queue that might refuse. `count` is how many messages took it that
    `VHost.count_routes` does not know of yet. `only_queue` is the queue where there is just one.
    """

    __slots__ = ("address", "count", "exchange", "is_plain", "mandatory", "only_queue", "queues")

    def __init__(
        self, address: Address, exchange: Exchange, mandatory: bool, queues: tuple[Queue, ...], is_plain: bool
    ) -> None:
        self.address = address
        self.exchange = exchange
        self.mandatory = mandatory
        self.queues = queues
        self.only_queue = queues[0] if len(queues) == 1 else None
        self.is_plain = is_plain
        self.count = 0
