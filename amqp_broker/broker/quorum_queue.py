"""A queue of type quorum, on the one node there is: durable, with a count of deliveries and a limit to it.

Source: RabbitMQ, "Quorum Queues"; rabbit_quorum_queue.erl, rabbit_fifo.erl.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from amqp_broker import fields
from amqp_broker.broker.consumer import Consumer
from amqp_broker.broker.dead_letter import DELIVERY_LIMIT
from amqp_broker.broker.journal import Stored
from amqp_broker.broker.line import Line
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.quorum_order import LEVELS, PRIORITY_DEFAULT, quorum_order
from amqp_broker.broker.settings import QueueSettings
from amqp_broker.broker.window import END, Window
from amqp_broker.errors import NotImplemented_, ResourceLocked
from amqp_broker.message import Message

if TYPE_CHECKING:
    from amqp_broker.broker.snapshot import Kept
    from amqp_broker.broker.vhost import VHost


class QuorumQueue(Queue):
    """A quorum queue. `return_counts` has the positions whose messages came back, and how often.

    `failure_counts` has how often that was a failure; kept only where the version tells the two apart (4.3).
    What comes back is served before all else, in the order in which it came back; without a delivery limit it goes
    behind all else, to a position of its own.
    """

    type: ClassVar[str] = "quorum"
    takes_global_prefetch = False

    def __init__(self, vhost: VHost, name: str, **attributes: Any) -> None:
        self._profile = vhost.broker.profile
        self._use_lines([Line(self) for _ in range(LEVELS)])
        self.return_counts: dict[int, int] = {}
        self.failure_counts: dict[int, int] = {}
        # Messages in flight whose copies tell the count, as they are without it.
        self._originals: dict[int, Message] = {}
        self._came_back: deque[tuple[int, Message]] = deque()
        # Whether the single active consumer gets nothing more, since one of higher priority waits for it to be idle.
        self.is_quiescing = False
        super().__init__(vhost, name, **attributes)

    @property
    def ready_count(self) -> int:
        return self._in_lines + len(self._came_back)

    @property
    def range_count(self) -> int:
        return LEVELS

    @property
    def windows(self) -> list[Window]:
        return [line for line in self._lines if isinstance(line, Window)]

    def keep(self, range_id: int) -> None:
        self.range_id = range_id
        journal = self.vhost.broker.journal
        windows = [Window(self, journal, range_id + level, keeps_all=True) for level in range(LEVELS)]
        self._use_lines(windows)
        self.head = -(-max(window.next for window in windows) // LEVELS)

    def on_recovered(self, position: int, stored: Stored) -> None:
        if position < self._line_of(position).redelivered_before or stored.returns:
            # What was told includes that it came back when the process ended in good order. Only what was never told
            # to have come back must have been with somebody when it was killed.
            self.return_counts[position] = stored.returns or 1
            if self._profile.counts_failures and stored.returns:
                self.failure_counts[position] = stored.returns

    def _use_lines(self, lines: Sequence[Line | Window]) -> None:
        self._lines = lines
        self._in_lines = sum(map(len, lines))
        self._order = quorum_order(self._profile.quorum_priority_levels, lines)

    def _line_of(self, position: int) -> Line | Window:
        return self._lines[position % LEVELS]

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
            return self._profile.delivery_limit
        # A negative limit is none.
        return limit if limit >= 0 else None

    def messages(self) -> Iterator[Message]:
        for _, message in self._came_back:
            yield message
        yield from self._order

    def items(self) -> Iterator[tuple[int, Message, bool]]:
        for position, message in self._came_back:
            yield position, message, True
        for position, message in self._order.items():
            yield position, message, False

    def level_of(self, position: int) -> int:
        """The line of a position, which stands for its priority."""
        return position % LEVELS

    @property
    def turn(self) -> int:
        """How far the order is in the turns that its lines take."""
        return self._order.turn

    def original(self, position: int, message: Message) -> Message:
        """A message in flight, without the counts that its consumer was told."""
        return self._originals.get(position, message)

    def refill(self, returned: Sequence[Kept], others: Sequence[Kept], turn: int = 0) -> None:
        for kept in returned:
            self._keep_again(kept)
        taken = {position: message for message, position, _ in [self._pop_head() for _ in returned]}
        # Positions tell the order of arrival; that of coming back was the one in which they were put in.
        self._came_back.extend(sorted(taken.items(), key=lambda item: item[0] // LEVELS))
        for kept in others:
            self._keep_again(kept)
        self._order.turn = turn
        self._count_anew()

    def _keep_again(self, kept: Kept) -> None:
        position = self._add(self._new_position(kept.level), kept.message, kept.deadline_ms)
        if kept.returns:
            self.return_counts[position] = kept.returns
            if self.range_id is not None:
                self._window_of(position).rewrite(position, Stored(kept.message, kept.deadline_ms, kept.returns))
        if kept.failures:
            self.failure_counts[position] = kept.failures

    def _count_ready_bytes(self) -> int:
        in_lines = sum(line.ready_bytes for line in self._lines)
        return in_lines + sum(message.body_bytes for _, message in self._came_back)

    def _window_of(self, position: int) -> Window:
        window = self._line_of(position)
        assert isinstance(window, Window)
        return window

    def _new_position(self, priority: int | None) -> int:
        """The next one: positions tell the line by what is left when they are divided by the number of lines."""
        position = self.head * LEVELS + self._order.level(priority)
        self.head += 1
        return position

    def _append(self, message: Message, deadline_ms: int | None) -> int:
        return self._add(self._new_position(message.priority), message, deadline_ms)

    def _add(self, position: int, message: Message, deadline_ms: int | None) -> int:
        self._line_of(position).append(position, message, deadline_ms)
        self._in_lines += 1
        return position

    def _skip(self, message: Message, deadline_ms: int | None) -> int:
        position = self._new_position(message.priority)
        if self.range_id is not None:
            self._window_of(position).hand_on(position, message, deadline_ms)
        # In RabbitMQ it goes through the queue like any other.
        self._order.count()
        return position

    def _head_position(self) -> int:
        return self._came_back[0][0] if self._came_back else self._order.next().head_position()

    def _pop_head(self) -> tuple[Message, int, bool]:
        if self._came_back:
            position, message = self._came_back.popleft()
        else:
            position, message = self._order.next().popleft()
            self._order.count()
            self._in_lines -= 1
        return message, position, position in self.return_counts

    def _clear(self) -> None:
        for position, message in self._came_back:
            self.forget(position, message)
        self._came_back.clear()
        # What is unacked stands before what is ready in its line.
        first = {level: line.head_position() for level, line in enumerate(self._lines) if line}
        for position in [at for at in self.return_counts if at >= first.get(at % LEVELS, END)]:
            del self.return_counts[position]
            self.failure_counts.pop(position, None)
        for line in self._lines:
            line.clear()
        self._in_lines = 0

    def _put_back(self, position: int, message: Message) -> int:
        if self.delivery_limit is not None:
            self._came_back.append((position, message))
            return position
        deadline = self.deadlines.get(position)
        returns, failures = self.return_counts[position], self.failure_counts.get(position)
        self.forget(position, message)
        # Its own priority is lost on the way.
        position = self._add(self._new_position(PRIORITY_DEFAULT), message, deadline)
        self.return_counts[position] = returns
        if self.range_id is not None:
            self._window_of(position).rewrite(position, Stored(message, deadline, returns))
        if failures is not None:
            self.failure_counts[position] = failures
        return position

    def _put_back_first(self, position: int, message: Message) -> None:
        self._came_back.appendleft((position, message))

    def as_delivered(self, message: Message, position: int) -> Message:
        returns = self.return_counts.get(position)
        if returns is None:
            return message
        self._originals[position] = message
        counts = {"x-delivery-count": returns}
        if self._profile.counts_failures:
            counts = {"x-acquired-count": returns}
            if (failures := self.failure_counts.get(position)) is not None:
                counts["x-delivery-count"] = failures
        properties = message.properties()
        told = {name: fields.Long(count) for name, count in counts.items()}
        properties.headers = {**(properties.headers or {}), **told}
        return message.with_properties(properties)

    def forget(self, position: int, message: Message) -> None:
        super().forget(position, message)
        self.return_counts.pop(position, None)
        self.failure_counts.pop(position, None)
        self._originals.pop(position, None)

    def note_failure(self, position: int) -> None:
        if self._profile.counts_failures:
            self.failure_counts[position] = self.failure_counts.get(position, 0) + 1

    def requeue(self, position: int, message: Message) -> int:
        message = self._originals.pop(position, message)
        count = self.return_counts[position] = self.return_counts.get(position, 0) + 1
        if self._profile.counts_failures:
            count = self.failure_counts.get(position, 0)
        limit = self.delivery_limit
        if limit is None or count <= limit:
            if self.range_id is not None:
                self._window_of(position).rewrite(position, Stored(message, self.deadlines.get(position), count))
            return super().requeue(position, message)
        self.unacked_count -= 1
        self.forget(position, message)
        self.given_up[DELIVERY_LIMIT] += 1
        self.give_up(message, DELIVERY_LIMIT)
        return position

    def reject(self, position: int, message: Message) -> None:
        super().reject(position, self._originals.pop(position, message))

    def pull(self) -> tuple[Message, int, bool] | None:
        if self.is_single_active:
            raise ResourceLocked(
                f"cannot obtain access to locked {self}. basic.get operations are not supported by "
                "quorum queues with single active consumer"
            )
        return super().pull()

    def subscribe(self, consumer: Consumer) -> None:
        super().subscribe(consumer)
        active = self.active_consumer
        if active is not None and self._profile.priority_takes_over and consumer.priority > active.priority:
            self.suspend(active)
            self.is_quiescing = True
            self._end_quiescing(active)

    def unsubscribe(self, consumer: Consumer) -> None:
        if consumer is self.active_consumer:
            self.is_quiescing = False
        super().unsubscribe(consumer)

    def resume(self, consumer: Consumer) -> None:
        if self.is_quiescing and consumer is self.active_consumer:
            self._end_quiescing(consumer)
        else:
            super().resume(consumer)

    def _end_quiescing(self, active: Consumer) -> None:
        """Let the next consumer be the active one, if the one that is has settled all that it got."""
        if active.in_flight:
            # A full consumer asks to be resumed as soon as it settles something.
            active.is_full = True
            return
        self.is_quiescing = False
        self.active_consumer = following = self._next_active()
        if following is not None and following.can_take():
            self.resume(following)

    def _check_exclusive(self, consumer: Consumer) -> None:
        """Nobody has a quorum queue alone, whatever he asks for."""

    def check_deletable(self, *, if_unused: bool, if_empty: bool) -> None:
        flag = "if-unused" if if_unused else "if-empty"
        if if_unused or if_empty:
            raise NotImplemented_(
                f"cannot delete {self}. queue.delete operations with {flag} flag set are not supported by quorum queues"
            )
