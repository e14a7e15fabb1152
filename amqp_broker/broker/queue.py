"""A queue: messages in the order of their positions, and the consumers that take turns at them.

A message's position is its place in the order of arrival, from 0. `ready` holds those that were never delivered, the
first at position `head`; `returned` those that came back, always from positions before `head`, so serving `returned`
first restores the original order. What is delivered and not settled is kept by the channel that has to settle it.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Final

from amqp_broker.errors import AccessRefused, ResourceLocked

if TYPE_CHECKING:
    from amqp_broker import fields
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.exchange import Binding
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.message import Message

# A backlog is handed out in portions, with the sockets flushed in between: about one socket buffer each.
DRAIN_BYTES_MAX: Final = 256 * 1024
DRAIN_MESSAGES_MAX: Final = 2048


class Queue:
    """A classic queue. `ready_count` and `unacked_count` are exact at any time.

    `consumers` are all subscriptions; `takers` those that can take a message now, next in turn first, those of
    higher priority before others. Takers and ready messages never wait for each other, but for a drain that stopped
    at its portion, and for takers that have become full since they had their turn.
    """

    def __init__(
        self,
        vhost: VHost,
        name: str,
        *,
        is_durable: bool,
        is_auto_delete: bool,
        owner: Connection | None,
        arguments: fields.Table,
    ) -> None:
        self.vhost = vhost
        self.name = name
        self.is_durable = is_durable
        self.is_auto_delete = is_auto_delete
        self.owner = owner
        self.arguments = arguments
        self.incoming: dict[Binding, None] = {}
        self.is_deleted = False

        self.ready: deque[Message] = deque()
        self.head = 0
        self.returned: list[tuple[int, Message]] = []
        self.unacked_count = 0

        self.length_max: int | None = arguments.get("x-max-length")
        self.bytes_max: int | None = arguments.get("x-max-length-bytes")
        self.is_limited = self.length_max is not None or self.bytes_max is not None
        self.rejects_publish = self.is_limited and arguments.get("x-overflow", "drop-head") != "drop-head"
        # Body octets of what is ready; kept only where there is a limit to them.
        self.ready_bytes = 0

        self.consumers: list[Consumer] = []
        self.takers: deque[Consumer] = deque()
        self.has_priorities = False
        self.exclusive_consumer: Consumer | None = None
        # Whether a drain stopped at its portion, and goes on when the sockets were flushed.
        self.is_undrained = False
        # Consumers that would take more, were their sockets not full.
        self.clogged: set[Consumer] = set()

        self.journal = vhost.broker.journal if is_durable and vhost.broker.is_durable else None

    def __str__(self) -> str:
        return f"queue '{self.name}' in vhost '{self.vhost.name}'"

    @property
    def ready_count(self) -> int:
        """How many messages wait for a consumer."""
        return len(self.ready) + len(self.returned)

    # Messages

    def push(self, message: Message) -> None:
        """Take a message: hand it to the consumer whose turn it is, or keep it."""
        if self.journal is not None and message.is_persistent:
            self.journal.put(self, self.head + len(self.ready), message)
        takers = self.takers
        if takers and not self.ready and not self.returned and (not takers[0].is_full or self._pass_over_full()):
            position = self.head
            self.head = position + 1
            taker = takers[0]
            taker.deliver(message, position, False)
            if len(takers) > 1 and takers[0] is taker:
                self._give_turn()
        else:
            self.ready.append(message)
            if self.is_limited:
                self._count_bytes(message)
                self._drop_overflow()
            if self.clogged or self.is_undrained:
                self.vhost.broker.is_congested = True

    def will_reject(self, message: Message) -> bool:
        """Whether the message is one too many for a queue that says so to its publisher (x-overflow)."""
        if not self.rejects_publish:
            return False
        is_too_long = self.length_max is not None and self.ready_count + 1 > self.length_max
        return is_too_long or (self.bytes_max is not None and self.ready_bytes + message.body_bytes > self.bytes_max)

    def _drop_overflow(self) -> None:
        """Drop from the head what is beyond the limits, unless publishers are to be refused instead."""
        if self.rejects_publish:
            return
        while self.ready_count and (
            (self.length_max is not None and self.ready_count > self.length_max)
            or (self.bytes_max is not None and self.ready_bytes > self.bytes_max)
        ):
            pulled = self.pull()
            assert pulled is not None
            self.forget(pulled[1], pulled[0])

    def _count_bytes(self, message: Message) -> None:
        if self.bytes_max is not None:
            self.ready_bytes += message.body_bytes

    def _discount_bytes(self, message: Message) -> None:
        if self.bytes_max is not None:
            self.ready_bytes -= message.body_bytes

    def pull(self) -> tuple[Message, int, bool] | None:
        """Take the next message out: it, its position, and whether it was delivered before. None if there is none."""
        if self.returned:
            position, message = heapq.heappop(self.returned)
            redelivered = True
        elif self.ready:
            message, position = self.ready.popleft(), self.head
            self.head = position + 1
            redelivered = False
        else:
            return None
        if self.is_limited:
            self._discount_bytes(message)
        return message, position, redelivered

    def drain(self) -> None:
        """Hand out ready messages while somebody takes them, a portion at a time."""
        takers, ready, returned = self.takers, self.ready, self.returned
        bytes_left, messages_left = DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
        while takers:
            if not returned and not ready:
                return
            if takers[0].is_full:
                self.suspend(takers[0])
                continue
            if returned:
                position, message = heapq.heappop(returned)
                redelivered = True
            else:
                message, position = ready.popleft(), self.head
                self.head = position + 1
                redelivered = False
            if self.is_limited:
                self._discount_bytes(message)
            taker = takers[0]
            taker.deliver(message, position, redelivered)
            if len(takers) > 1 and takers[0] is taker:
                self._give_turn()
            bytes_left -= len(message.content)
            messages_left -= 1
            if bytes_left < 0 or not messages_left:
                if not self.is_undrained:
                    self.is_undrained = True
                    self.vhost.broker.undrained.append(self)
                return

    def drain_on(self) -> None:
        """Hand out the next portion."""
        self.is_undrained = False
        if not self.is_deleted:
            self.drain()

    def forget(self, position: int, message: Message) -> None:
        """A message that left the queue will not come back."""
        if self.journal is not None and message.is_persistent:
            self.journal.remove(self, position)

    def requeue(self, position: int, message: Message) -> None:
        """A delivered message comes back to its place; the caller drains when all have come."""
        self.unacked_count -= 1
        if not self.is_deleted:
            heapq.heappush(self.returned, (position, message))
            if self.is_limited:
                self._count_bytes(message)
                self._drop_overflow()

    def purge(self) -> int:
        """Drop what is ready; returns how many that were."""
        count = self.ready_count
        if self.journal is not None:
            for position, message in (*self.returned, *enumerate(self.ready, self.head)):
                self.forget(position, message)
        self.head += len(self.ready)
        self.ready.clear()
        self.returned.clear()
        self.ready_bytes = 0
        return count

    # Consumers

    def check_owner(self, connection: Connection | None) -> None:
        """Raise ResourceLocked if the queue is exclusive to another connection."""
        if self.owner is not None and self.owner is not connection:
            raise self.locked()

    def locked(self) -> ResourceLocked:
        return ResourceLocked(
            f"cannot obtain exclusive access to locked {self}. It could be originally declared on another "
            "connection or the exclusive property value does not match that of the original declaration."
        )

    def subscribe(self, consumer: Consumer) -> None:
        """Add a consumer, which gets nothing until `resume`. Raises AccessRefused where one has the queue alone."""
        is_shared = bool(self.consumers) or self.arguments.get("x-single-active-consumer") is True
        if self.exclusive_consumer is not None or (consumer.is_exclusive and is_shared):
            raise AccessRefused(f"{self} in exclusive use")
        if consumer.is_exclusive:
            self.exclusive_consumer = consumer
        self.consumers.append(consumer)
        self.has_priorities = self.has_priorities or consumer.priority != 0

    def unsubscribe(self, consumer: Consumer) -> None:
        """Remove a consumer; an auto-delete queue goes with its last one."""
        self.suspend(consumer)
        self.clogged.discard(consumer)
        self.consumers.remove(consumer)
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None
        if self.is_auto_delete and not self.consumers and not self.is_deleted:
            self.vhost.remove_queue(self)

    def suspend(self, consumer: Consumer) -> None:
        """The consumer can take nothing for now."""
        if consumer.is_taking:
            consumer.is_taking = False
            if self.takers[0] is consumer:
                self.takers.popleft()
            else:
                self.takers.remove(consumer)

    def resume(self, consumer: Consumer) -> None:
        """The consumer can take messages (again): it queues up behind those of its priority."""
        if not consumer.is_taking:
            consumer.is_taking = True
            self._line_up(consumer)
            if self.ready or self.returned:
                self.drain()

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
