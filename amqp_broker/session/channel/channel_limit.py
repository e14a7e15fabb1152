"""The limit of a channel for the unsettled deliveries of all its consumers (basic.qos with global).

As in RabbitMQ, the limit applies when it is a consumer's turn: one that is passed over waits. When the limit allows
deliveries again, the queues take turns, and the consumers of each are served in the order in which they began to wait.
RabbitMQ begins with a random queue, this broker with the one that has waited longest.
Sources: rabbit_limiter.erl, rabbit_queue_consumers.erl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel.channel import Channel


class ChannelLimit:
    """At most `total` deliveries of a channel are unsettled; `count` are.

    As in RabbitMQ, deliveries to consumers of quorum queues and streams do not count, but settling them does, so
    `count` may be below 0. Messages from basic.get that were unsettled when the limit began count until it ends.
    """

    __slots__ = ("_channel", "_has_opened", "_with_room", "count", "total", "waiting")

    def __init__(self, channel: Channel, total: int, count: int) -> None:
        self._channel = channel
        self.total = total
        self.count = count
        # The consumers of each queue that were passed over, because the limit was reached or that of their own.
        self.waiting: dict[Queue, dict[Consumer, None]] = {}
        # Set from the time when the limit allows deliveries again until the waiting consumers are served.
        self._has_opened = False
        # The queues of consumers that were full, and have room of their own again.
        self._with_room: dict[Queue, None] = {}
        for consumer in channel.consumers.values():
            self.add(consumer)
        self._collect_waiting()

    @property
    def is_reached(self) -> bool:
        """True if nothing more may be delivered."""
        return self.count >= self.total

    def add(self, consumer: Consumer) -> None:
        """Have a consumer of the channel follow the limit, unless those of its queue do not."""
        if consumer.queue.takes_global_prefetch:
            consumer.limit = self
            self._update(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Forget a consumer that leaves the channel."""
        consumer.limit = None
        waiting = self.waiting.get(consumer.queue)
        if waiting is not None:
            waiting.pop(consumer, None)
            if not waiting:
                del self.waiting[consumer.queue]

    def enter(self) -> None:
        """Count a delivery."""
        self.count += 1
        if self.is_reached:
            self._update_all()

    def leave(self, number: int) -> None:
        """Stop counting deliveries."""
        if self.count:
            self._change(self.total, self.count - number)

    def change_total(self, total: int) -> None:
        """Allow another number of deliveries."""
        self._change(total, self.count)

    def end(self) -> None:
        """Lift the limit."""
        for consumer in self._consumers():
            consumer.limit = None
            consumer.is_full = not consumer.has_room
        for queue in list(self.waiting):
            self._serve(queue)

    def wait(self, consumer: Consumer) -> None:
        """Note that a consumer was passed over."""
        self.waiting.setdefault(consumer.queue, {})[consumer] = None

    def note_settled(self, consumer: Consumer) -> None:
        """Note that a consumer has settled a delivery; it had room before, or has it from now on."""
        if consumer.in_flight == consumer.prefetch - 1:
            self._update(consumer)
            if not consumer.is_taking:
                self._with_room[consumer.queue] = None
                self._channel.session.freed_consumers.append(consumer)

    def resume(self) -> None:
        """Serve the consumers that wait, once for all that was settled."""
        with_room, self._with_room = self._with_room, {}
        if not self._has_opened:
            for queue in with_room:
                self._serve(queue)
            return
        self._has_opened = False
        self._share()

    def resume_all(self) -> None:
        """Serve all consumers: the socket takes more."""
        self._collect_waiting()
        self._share()

    def _change(self, total: int, count: int) -> None:
        was_reached = self.is_reached
        self.total, self.count = total, count
        if self.is_reached != was_reached:
            self._update_all()
            if was_reached and self.waiting:
                self._has_opened = True
                first = next(iter(self.waiting.values()))
                self._channel.session.freed_consumers.append(next(iter(first)))

    def _share(self) -> None:
        """Serve the waiting consumers: each queue in turn delivers one message that counts."""
        total, has_served = self.total, True
        while has_served and self.waiting:
            before = self.count
            for queue in list(self.waiting):
                self.total = total if len(self.waiting) == 1 else min(total, self.count + 1)
                self._update_all()
                if self.is_reached:
                    break
                self._serve(queue)
            has_served = self.count != before
        self.total = total
        self._update_all()

    def _consumers(self) -> list[Consumer]:
        return [consumer for consumer in self._channel.consumers.values() if consumer.limit is self]

    def _update(self, consumer: Consumer) -> None:
        consumer.is_full = self.is_reached or not consumer.has_room

    def _update_all(self) -> None:
        for consumer in self._consumers():
            self._update(consumer)

    def _collect_waiting(self) -> None:
        """Have all consumers wait that are not in line: they were suspended for another reason."""
        for consumer in self._consumers():
            if not consumer.is_taking:
                self.wait(consumer)

    def _serve(self, queue: Queue) -> None:
        """Line up the waiting consumers of a queue that have room of their own, then deliver."""
        for consumer in self.waiting.pop(queue, ()):
            if consumer.can_take():
                queue.rotation.make_ready(consumer)
            else:
                self.wait(consumer)
        if queue.ready_count:
            queue.drain()
