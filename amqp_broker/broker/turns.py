"""Whose turn it is: the consumers of a queue, and those among them that can take a message now."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.consumer import Consumer


class Turns:
    """The consumers of one queue: the part of a queue that knows no messages.

    `consumers` are all subscriptions; `takers` those that can take a message now, next in turn first, those of higher
    priority before others.
    """

    def __init__(self, *, is_single_active: bool) -> None:
        self.consumers: list[Consumer] = []
        self.takers: deque[Consumer] = deque()
        self.has_priorities = False
        self.exclusive_consumer: Consumer | None = None
        self.is_single_active = is_single_active
        # With a single active consumer: the one that gets messages.
        self.active_consumer: Consumer | None = None
        # Consumers that would take more, were their sockets not full.
        self.clogged: set[Consumer] = set()

    def suspend(self, consumer: Consumer) -> None:
        """The consumer can take nothing for now."""
        if consumer.is_taking:
            consumer.is_taking = False
            if self.takers[0] is consumer:
                self.takers.popleft()
            else:
                self.takers.remove(consumer)

    def _next_active(self) -> Consumer | None:
        """The longest subscribed consumer, of those with the highest priority."""
        return max(self.consumers, key=lambda consumer: consumer.priority, default=None)

    def _pass_over_full(self) -> bool:
        """A message is there, but who has the turn has no room: it loses its place. Returns whether anybody is left.

        Until then it keeps the place, in case it gets room before the next message comes, as in RabbitMQ.
        """
        takers = self.takers
        while takers and takers[0].is_full:
            self.suspend(takers[0])
        return bool(takers)

    def _give_turn(self) -> None:
        """The first of the takers has had its turn."""
        if self.has_priorities:
            self._line_up(self.takers.popleft())
        else:
            self.takers.rotate(-1)

    def _line_up(self, consumer: Consumer) -> None:
        takers = self.takers
        if self.has_priorities:
            for index, other in enumerate(takers):
                if other.priority < consumer.priority:
                    takers.insert(index, consumer)
                    return
        takers.append(consumer)
