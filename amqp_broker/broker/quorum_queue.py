"""A queue of type quorum, on the one node there is: durable, with a count of deliveries and a limit to it.

Source: RabbitMQ, "Quorum Queues"; rabbit_quorum_queue.erl, rabbit_fifo.erl.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from amqp_broker import fields
from amqp_broker.broker.consumer import Consumer
from amqp_broker.broker.dead_letter import DELIVERY_LIMIT
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.settings import QueueSettings
from amqp_broker.errors import NotImplemented_, ResourceLocked
from amqp_broker.message import Message


class QuorumQueue(Queue):
    """A quorum queue. `delivery_counts` has the positions whose messages came back, and how often.

    What comes back is served before all else, in the order in which it came back; without a delivery limit it goes
    behind all else, to a position of its own.
    """

    type: ClassVar[str] = "quorum"
    takes_global_prefetch = False

    def __init__(self, *args: Any, **attributes: Any) -> None:
        self.delivery_counts: dict[int, int] = {}
        # Messages in flight whose copies tell the count, as they are without it.
        self._originals: dict[int, Message] = {}
        self._came_back: deque[tuple[int, Message]] = deque()
        super().__init__(*args, **attributes)

    @property
    def ready_count(self) -> int:
        return len(self.ready) + len(self._came_back)

    def _update_extras(self) -> None:
        self.has_extras = True

    def apply(self, settings: QueueSettings) -> None:
        # Unlike classic queues they cannot dead-letter what they refuse, and drop instead.
        if settings.overflow == "reject-publish-dlx":
            settings = replace(settings, overflow="drop-head")
        super().apply(settings)

    @property
    def delivery_limit(self) -> int | None:
        limit = self.settings.delivery_limit
        if limit is None:
            return self.vhost.broker.profile.delivery_limit
        # A negative limit is none.
        return limit if limit >= 0 else None

    def messages(self) -> Iterator[Message]:
        for _, message in self._came_back:
            yield message
        yield from self.ready

    def _head_position(self) -> int:
        return self._came_back[0][0] if self._came_back else self.head

    def _pop_head(self) -> tuple[Message, int, bool]:
        if self._came_back:
            position, message = self._came_back.popleft()
        else:
            position, message = self.head, self.ready.popleft()
            self.head = position + 1
        return message, position, position in self.delivery_counts

    def _put_back(self, position: int, message: Message) -> None:
        if self.delivery_limit is not None:
            self._came_back.append((position, message))
            return
        deadline = self.deadlines.get(position)
        count = self.delivery_counts[position]
        self.forget(position, message)
        position = self._append(message)
        self.delivery_counts[position] = count
        if deadline is not None:
            self.deadlines[position] = deadline
        if self.journal is not None and message.is_persistent:
            self.journal.put(self, position, message)

    def as_delivered(self, message: Message, position: int) -> Message:
        count = self.delivery_counts.get(position)
        if count is None:
            return message
        self._originals[position] = message
        properties = message.properties()
        properties.headers = {**(properties.headers or {}), "x-delivery-count": fields.Long(count)}
        return message.with_properties(properties)

    def forget(self, position: int, message: Message) -> None:
        super().forget(position, message)
        self.delivery_counts.pop(position, None)
        self._originals.pop(position, None)

    def requeue(self, position: int, message: Message) -> None:
        message = self._originals.pop(position, message)
        count = self.delivery_counts.get(position, 0) + 1
        limit = self.delivery_limit
        if limit is None or count <= limit:
            self.delivery_counts[position] = count
            super().requeue(position, message)
        else:
            self.unacked_count -= 1
            self.forget(position, message)
            self.give_up(message, DELIVERY_LIMIT)

    def reject(self, position: int, message: Message) -> None:
        super().reject(position, self._originals.pop(position, message))

    def pull(self) -> tuple[Message, int, bool] | None:
        if self.is_single_active:
            raise ResourceLocked(
                f"cannot obtain access to locked {self}. basic.get operations are not supported by "
                "quorum queues with single active consumer"
            )
        return super().pull()

    def _check_exclusive(self, consumer: Consumer) -> None:
        """Nobody has a quorum queue alone, whatever he asks for."""

    def check_deletable(self, *, if_unused: bool, if_empty: bool) -> None:
        flag = "if-unused" if if_unused else "if-empty"
        if if_unused or if_empty:
            raise NotImplemented_(
                f"cannot delete {self}. queue.delete operations with {flag} flag set are not supported by quorum queues"
            )
