"""The order in which a queue's consumers are served."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.queues.consumer import Consumer


class ConsumerRotation:
    """The consumers of one queue.

    `consumers` has all subscriptions. `ready_consumers` has those that can take a message now, in the order of their
    turns, higher priorities first. `backpressured` has those that could take one if their sockets were not full. Queues
    share these three with their rotation, so they are never replaced.
    """

    def __init__(self, *, is_single_active: bool) -> None:
        # In the order of their subscriptions.
        self.consumers: dict[Consumer, None] = {}
        self.ready_consumers: deque[Consumer] = deque()
        self.backpressured: set[Consumer] = set()
        self.has_priorities = False
        self.exclusive_consumer: Consumer | None = None
        self.is_single_active = is_single_active
        # The next active consumer is one of the highest priority, not the first of all.
        self.activates_by_priority = True
        # The only consumer that gets messages, if only one may be active.
        self.active_consumer: Consumer | None = None

    def add(self, consumer: Consumer) -> None:
        """Add a consumer; it is not ready yet."""
        self.consumers[consumer] = None
        self.has_priorities = self.has_priorities or consumer.priority != 0
        if self.is_single_active and self.active_consumer is None:
            self.active_consumer = consumer

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer. If it was the active one, `activate_next` chooses another."""
        self.suspend(consumer)
        self.backpressured.discard(consumer)
        del self.consumers[consumer]
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None

    def reserve(self, consumer: Consumer) -> bool:
        """Return whether the consumer may be added, and keep all others out if it is exclusive."""
        is_shared = bool(self.consumers) or self.is_single_active
        if self.exclusive_consumer is not None or (consumer.is_exclusive and is_shared):
            return False
        if consumer.is_exclusive:
            self.exclusive_consumer = consumer
        return True

    def activate_next(self) -> Consumer | None:
        """Make the longest subscribed consumer the active one, among those of the highest priority; return it."""
        staying = (consumer for consumer in self.consumers if not consumer.is_leaving)
        if self.has_priorities and self.activates_by_priority:
            self.active_consumer = max(staying, key=lambda consumer: consumer.priority, default=None)
        else:
            self.active_consumer = next(staying, None)
        return self.active_consumer

    @property
    def capacity(self) -> float:
        """RabbitMQ's consumer capacity: 1.0 if a consumer would take a message now, else 0.0."""
        return float(any(not consumer.is_full for consumer in self.ready_consumers))

    def make_ready(self, consumer: Consumer) -> bool:
        """Line a consumer up behind those of its priority; return False if it is ready already or must wait."""
        if consumer.is_taking or (self.is_single_active and consumer is not self.active_consumer):
            return False
        consumer.is_taking = True
        self._line_up(consumer)
        return True

    def suspend(self, consumer: Consumer) -> None:
        """Take a consumer out of the ready ones, if it is one."""
        if consumer.is_taking:
            consumer.is_taking = False
            if self.ready_consumers[0] is consumer:
                self.ready_consumers.popleft()
            elif self.ready_consumers[-1] is consumer:
                self.ready_consumers.pop()
            else:
                self.ready_consumers.remove(consumer)

    def suspend_all(self, consumers: set[Consumer]) -> None:
        """Take consumers out of the ready ones, among which they are."""
        staying = [consumer for consumer in self.ready_consumers if consumer not in consumers]
        self.ready_consumers.clear()
        self.ready_consumers.extend(staying)
        for consumer in consumers:
            consumer.is_taking = False

    def skip_full(self) -> bool:
        """Suspend full consumers at the front of the line; return whether a ready one is left.

        They lose their turn only now that a message is there: until then they keep it, in case they get credit before,
        as in RabbitMQ.
        """
        ready_consumers = self.ready_consumers
        while ready_consumers and ready_consumers[0].is_full:
            self.pass_over(ready_consumers[0])
        return bool(ready_consumers)

    def pass_over(self, consumer: Consumer) -> None:
        """Suspend a consumer that cannot take a message."""
        self.suspend(consumer)
        if consumer.limit is not None:
            consumer.limit.wait(consumer)

    def end_turn(self) -> None:
        """Move the consumer at the front behind the others of its priority."""
        if self.has_priorities:
            self._line_up(self.ready_consumers.popleft())
        else:
            self.ready_consumers.rotate(-1)

    def _line_up(self, consumer: Consumer) -> None:
        ready_consumers = self.ready_consumers
        if self.has_priorities:
            for index, other in enumerate(ready_consumers):
                if other.priority < consumer.priority:
                    ready_consumers.insert(index, consumer)
                    return
        ready_consumers.append(consumer)
