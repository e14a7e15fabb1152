"""A queue: messages in the order of their positions, and the consumers that take turns at them.

A message's position is its place in the order of arrival, from 0. `ready` holds those that were never delivered, the
first at position `head`; `returned` those that came back, always from positions before `head`, so serving `returned`
first restores the original order. What is delivered and not settled is kept by the channel that has to settle it.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from amqp_broker.broker.counters import DeliveryCounts
from amqp_broker.broker.dead_letter import EXPIRED, MAXLEN, REJECTED
from amqp_broker.broker.overflow import Overflow
from amqp_broker.broker.policies import Policy, definition_of
from amqp_broker.broker.settings import QueueSettings, effective
from amqp_broker.broker.turns import Turns
from amqp_broker.broker.window import ENTRY_BYTES, PORTION_BYTES, Window
from amqp_broker.errors import AccessRefused, PreconditionFailed, ResourceLocked
from amqp_broker.message import Message, SpecialMessage

if TYPE_CHECKING:
    from amqp_broker import fields
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.exchange import Binding, Exchange
    from amqp_broker.broker.journal import Stored
    from amqp_broker.broker.snapshot import Kept
    from amqp_broker.broker.timers import Timer
    from amqp_broker.broker.vhost import VHost

# A backlog is handed out in portions, with the sockets flushed in between: about one socket buffer each.
DRAIN_BYTES_MAX: Final = 256 * 1024
DRAIN_MESSAGES_MAX: Final = 2048


class Queue(Turns):
    """A classic queue. `ready_count` and `unacked_count` are exact at any time.

    `consumers` are all subscriptions; `takers` those that can take a message now, next in turn first, those of
    higher priority before others. Takers and ready messages never wait for each other, but for a drain that stopped
    at its portion, and for takers that have become full since they had their turn.
    """

    # What RabbitMQ calls this kind of queue.
    type: ClassVar[str] = "classic"

    # Whether anybody counts what is got from it: not what a fault makes up.
    is_counted = True
    # Whether a channel's limit (basic.qos global) may hold for its consumers.
    takes_global_prefetch = True
    # Whether its single active consumer gets nothing more, and another is waiting for it to have settled all.
    is_quiescing = False

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
        super().__init__(is_single_active=arguments.get("x-single-active-consumer") is True)
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

        self.settings = QueueSettings()
        self.policy: Policy | None = None
        self.operator_policy: Policy | None = None
        # When messages expire, by position: ready and unacked ones. Only those that do stand here.
        self.deadlines: dict[int, int] = {}
        self._expiry_timer: Timer | None = None
        self._unused_timer: Timer | None = None
        self._last_used_ms = vhost.broker.now
        # Body octets of what is ready; kept only where there is a limit to them.
        self.ready_bytes = 0

        # Whether a drain stopped at its portion, and goes on when the sockets were flushed.
        self.is_undrained = False

        # Where the messages of a durable queue are, if anything here is durable; `ready` is empty then. That of a
        # transient queue has what came when memory was short, all of it behind `ready`.
        self.window: Window | None = None
        self.range_id: int | None = None
        # What clients published that came here, and to which exchanges; `VHost.count_routes` brings it up to date.
        self.published = 0
        self.published_from: dict[Exchange, int] = {}
        self.deliveries = DeliveryCounts()
        # All that has to count a delivery from here.
        self.delivery_counts = (self.deliveries, vhost.deliveries, vhost.broker.counters.deliveries[self.type])
        # How many messages left without being acknowledged, by reason: dead_letter's, and "purged".
        self.given_up: Counter[str] = Counter()
        # When it was last seen to have got or delivered something.
        self._active_at_ms = vhost.broker.now
        # Whether there is more to a message than being handed on: the one question that the plain path asks.
        self.has_extras = False
        # Whether a fault may concern what it delivers, or acks of it.
        self.is_faulty = vhost.broker.faults.concerns_queue(vhost.name, name)
        self.apply(effective(arguments, {}, {}))

    def __str__(self) -> str:
        return f"queue '{self.name}' in vhost '{self.vhost.name}'"

    @property
    def ready_count(self) -> int:
        """How many messages wait for a consumer."""
        window = self.window
        return len(self.returned) + len(self.ready) + (0 if window is None else len(window))

    @property
    def range_count(self) -> int:
        """How many ranges of the journal the messages of a durable queue take."""
        return 1

    @property
    def windows(self) -> list[Window]:
        """Where its messages are in the journal."""
        return [] if self.window is None else [self.window]

    def keep(self, range_id: int) -> None:
        """Keep messages in the journal, from this range on; what is there already is in the queue then."""
        self.range_id = range_id
        self.window = Window(self, self.vhost.broker.journal, range_id, keeps_all=False)
        self._update_extras()

    def page(self) -> bool:
        """Memory is short: what comes from now on goes to the journal. Returns whether that starts now.

        Only for a queue without a window, with a backlog that is worth it; what is in memory stays there.
        """
        ready = self.ready
        if self.window is not None or not ready or len(ready) * (len(ready[0].content) + ENTRY_BYTES) < PORTION_BYTES:
            return False
        self.window = Overflow(self, self.vhost.broker.journal.new_ranges(1), self.head + len(ready))
        self._update_extras()
        return True

    def end_paging(self) -> bool:
        """Memory is not short any more: keep all in it again. Returns False if the journal still has something."""
        window = self.window
        if window is None or self.is_deleted:
            return True
        if len(window):
            return False
        if not self.ready:
            self.head = window.next
        window.drop()
        self.window = None
        self._update_extras()
        return True

    def drop_windows(self) -> None:
        """The queue is deleted, and the journal need not keep anything of it."""
        for window in self.windows:
            window.drop()

    def on_restored(self) -> None:
        """After a restart, when all objects are there: look at what the queue has."""
        for window in self.windows:
            window.fill(1)
        self.apply(self.settings)

    def catch_up(self) -> None:
        """After a restart, when all queues have looked: give up what is too much by now, and what has expired."""
        if self.settings.drops_head:
            self._drop_beyond_limits()
        self.expire()

    def follow(self, policy: Policy | None, operator_policy: Policy | None) -> bool:
        """These policies apply to the queue from now on; returns whether others did before."""
        if (policy, operator_policy) == (self.policy, self.operator_policy):
            return False
        self.policy, self.operator_policy = policy, operator_policy
        # A queue is as good as used when its time to be unused changes.
        self._last_used_ms = self.vhost.broker.now
        self.apply(effective(self.arguments, definition_of(policy), definition_of(operator_policy)))
        return True

    def apply(self, settings: QueueSettings) -> None:
        """Follow other settings from now on: at declaration, and when a policy changes.

        What is in the queue keeps the time to live that it came with; a limit to the length counts at once. Source:
        rabbit_amqqueue_process.erl, process_args_policy, where a new limit meets the old overflow before the new one:
        unless it was and is to reject, the queue drops.
        """
        drops = "drop-head" in (self.settings.overflow, settings.overflow)
        self.settings = settings
        self._update_extras()
        if settings.bytes_max is not None:
            self.ready_bytes = self._count_ready_bytes()
        # While a restart goes on, what would be given up could not go where it must.
        is_restoring = self.vhost.broker.journal.is_restoring
        if drops and not is_restoring:
            self._drop_beyond_limits()
        if self.deadlines and not is_restoring:
            # Another message may have come to the head.
            self.expire()
        self._start_unused_timer()

    def _update_extras(self) -> None:
        settings = self.settings
        self.has_extras = (
            self.window is not None
            or self.vhost.trace is not None
            or self.is_faulty
            or bool(self.deadlines)
            or settings.message_ttl_ms is not None
            or settings.length_max is not None
            or settings.bytes_max is not None
        )

    def follow_faults(self) -> None:
        """The rules of faults have changed."""
        self.is_faulty = self.vhost.broker.faults.concerns_queue(self.vhost.name, self.name)
        self._update_extras()

    # Messages

    # Counting

    def count_publishes(self, exchange: Exchange | None, count: int) -> None:
        """Clients published so many messages that came here; None is an exchange that is no more."""
        self.published += count
        if exchange is not None and not self.is_deleted:
            self.published_from[exchange] = self.published_from.get(exchange, 0) + count
        self.note_activity()

    def note_activity(self) -> None:
        """Something came or went since the last look."""
        self._active_at_ms = self.vhost.broker.now

    @property
    def idle_since_ms(self) -> int:
        """When something last came or went, or somebody used the queue (ms since the epoch).

        As exact as statistics are asked for often: what happened since the last look is found at the next.
        """
        return max(self._active_at_ms, self._last_used_ms)

    @property
    def consumer_capacity(self) -> float:
        """1.0 if somebody would take a message that came now, else 0.0: RabbitMQ's of a very short time."""
        return float(any(not taker.is_full for taker in self.takers))

    def head_message(self) -> Message | None:
        """The message that will be delivered next, if there is any."""
        if self.returned:
            return self.returned[0][1]
        return next(self.messages(), None)

    def message_stats(self) -> dict[str, int]:
        """The `message_stats` of a queue."""
        stats = self.deliveries.stats()
        return {"publish": self.published, **stats} if self.published else stats

    # Messages in and out

    def messages(self) -> Iterator[Message]:
        """What is ready, in the order in which it will be delivered."""
        for _, message in sorted(self.returned):
            yield message
        yield from self.ready
        if self.window is not None:
            yield from self.window

    def peek(self) -> Iterator[tuple[Message, bool]]:
        """What is ready, as `messages`, and whether each was delivered before; nothing of that changes."""
        return ((message, redelivered) for _, message, redelivered in self.items())

    def items(self) -> Iterator[tuple[int, Message, bool]]:
        """The same with positions."""
        for position, message in sorted(self.returned):
            yield position, message, True
        for position, message in enumerate(self.ready, self.head):
            yield position, message, False
        if self.window is not None:
            for position, message in self.window.items():
                yield position, message, position < self.window.redelivered_before

    def _count_ready_bytes(self) -> int:
        return (
            sum(message.body_bytes for message in self.ready)
            + sum(message.body_bytes for _, message in self.returned)
            + (self.window.ready_bytes if self.window is not None else 0)
        )

    def push(self, message: Message) -> None:
        """Take a message: hand it to the consumer whose turn it is, or keep it."""
        if self.has_extras:
            self.push_with_extras(message)
            return
        takers = self.takers
        taker = takers[0] if takers and not self.ready and not self.returned else None
        if taker is not None and taker.is_full:
            taker = takers[0] if self._pass_over_full() else None
        if taker is not None:
            position = self.head
            self.head = position + 1
            taker.deliver(message, position, False)
            if len(takers) > 1 and takers[0] is taker:
                self._give_turn()
        else:
            self.ready.append(message)
            if self.clogged or self.is_undrained:
                self.vhost.broker.is_congested = True

    def push_with_extras(self, message: Message, expiration_ms: int | None = None) -> None:
        """Take a message that may expire, that the journal must know of, or that may be one too many."""
        if self.deadlines:
            self.expire()
        if self.takers and self._hand_on(message, expiration_ms):
            return
        position = self._append(message, self._deadline(expiration_ms))
        if self.settings.bytes_max is not None:
            self.ready_bytes += message.body_bytes
        has_moved = bool(self.takers)
        if has_moved:
            self.drain(with_expired=True)
        if self.settings.drops_head:
            has_moved = True
            self._drop_beyond_limits()
        # If nothing left and the new message is not the first, the head is the one that was looked at above.
        if self.deadlines and (has_moved or self._head_position() == position):
            self.expire()
        if self.clogged and self.ready_count:
            self.vhost.broker.is_congested = True

    def _hand_on(self, message: Message, expiration_ms: int | None) -> bool:
        """Deliver a new message at once, if nothing waits before it, somebody takes it, and nobody else must know.

        It counts against no limit then, and may expire only if it comes back. Returns False if it has to wait.
        """
        takers = self.takers
        if self.ready_count or self.vhost.trace is not None or self.is_faulty:
            return False
        if takers[0].is_full and not self._pass_over_full():
            return False
        deadline_ms = self._deadline(expiration_ms)
        position = self._skip(message, deadline_ms)
        taker = takers[0]
        if deadline_ms is not None and not taker.no_ack:
            self.deadlines[position] = deadline_ms
            self.has_extras = True
        taker.deliver(message, position, False)
        if len(takers) > 1 and takers[0] is taker:
            self._give_turn()
        return True

    def _deadline(self, expiration_ms: int | None) -> int | None:
        """When a new message expires (ms since the epoch), if it does."""
        ttl_ms = self.settings.message_ttl_ms
        if expiration_ms is not None:
            ttl_ms = expiration_ms if ttl_ms is None else min(ttl_ms, expiration_ms)
        return None if ttl_ms is None else self.vhost.broker.now + ttl_ms

    def accept(self, message: Message) -> bool:
        """Take a message unless the queue is full and says so; a message's own expiration counts.

        Returns False if it was refused.
        """
        if self.settings.rejects_publish and self.will_reject(message):
            if self.settings.overflow == "reject-publish-dlx":
                self.give_up(message, MAXLEN)
            return False
        if isinstance(message, SpecialMessage) and message.expiration_ms is not None:
            self.push_with_extras(message, message.expiration_ms)
        else:
            self.push(message)
        return True

    def will_reject(self, message: Message) -> bool:
        """Whether the message is one too many for a queue that says so to its publisher (x-overflow)."""
        settings = self.settings
        if not settings.rejects_publish:
            return False
        is_too_long = settings.length_max is not None and self.ready_count + 1 > settings.length_max
        return is_too_long or (
            settings.bytes_max is not None and self.ready_bytes + message.body_bytes > settings.bytes_max
        )

    def _drop_beyond_limits(self) -> None:
        """Drop from the head what is beyond the limits."""
        length_max, bytes_max = self.settings.length_max, self.settings.bytes_max
        if length_max is not None:
            while self.ready_count > length_max:
                self._give_up_head(MAXLEN)
        if bytes_max is not None:
            while self.ready_bytes > bytes_max:
                self._give_up_head(MAXLEN)

    def pull(self) -> tuple[Message, int, bool] | None:
        """Take the next message out: it, its position, and whether it was delivered before. None if there is none."""
        if self.deadlines:
            self.expire()
        if not self.ready_count:
            return None
        pulled = self._take_head()
        if self.deadlines:
            # What stood behind it may have expired before: it goes uncounted.
            self.expire()
        return pulled

    def untake(self, position: int, message: Message) -> None:
        """What was pulled just now goes back to the head; nobody has had it."""
        self._put_back_first(position, message)
        if self.settings.bytes_max is not None:
            self.ready_bytes += message.body_bytes

    def refill(self, returned: Sequence[Kept], others: Sequence[Kept]) -> None:
        """Have what a snapshot has: what was delivered before, and what was not (`snapshot.kept_in`).

        The queue is new, and nobody takes from it. No limit holds: what is too much goes with the next message.
        """
        for kept in returned:
            self._append(kept.message, kept.deadline_ms)
        # All of them, before one goes back: what goes back stands at the head.
        for message, position, _ in [self._take_head() for _ in returned]:
            self._put_back(position, message)
        for kept in others:
            self._append(kept.message, kept.deadline_ms)
        self._count_anew()

    def _count_anew(self) -> None:
        if self.settings.bytes_max is not None:
            self.ready_bytes = self._count_ready_bytes()
        self._update_extras()
        if self.deadlines:
            self.expire()

    # The order of what is ready: those that a queue with another order has its own of

    def _window_of(self, position: int) -> Window:
        """Where the journal has the message at a position, if it has any."""
        assert self.window is not None
        return self.window

    def _append(self, message: Message, deadline_ms: int | None) -> int:
        """Put a new message behind the others; returns its position."""
        if self.window is not None:
            position = self.window.next
            self.window.append(position, message, deadline_ms)
            return position
        self.ready.append(message)
        position = self.head + len(self.ready) - 1
        if deadline_ms is not None:
            self.deadlines[position] = deadline_ms
            self.has_extras = True
        return position

    def _skip(self, message: Message, deadline_ms: int | None) -> int:
        """Give a new message its position, and take it at once; nothing is ready."""
        window = self.window
        if window is None:
            position = self.head
            self.head = position + 1
            return position
        position = window.next
        window.hand_on(position, message, deadline_ms)
        return position

    def _head_position(self) -> int:
        if self.returned:
            return self.returned[0][0]
        return self.head if self.ready or self.window is None else self.window.head_position()

    def _pop_head(self) -> tuple[Message, int, bool]:
        if self.returned:
            position, message = heapq.heappop(self.returned)
            return message, position, True
        if self.window is not None and not self.ready:
            position, message = self.window.popleft()
            return message, position, position < self.window.redelivered_before
        position = self.head
        self.head = position + 1
        message = self.ready.popleft()
        if self.window is not None and not self.ready:
            self.window.fill()
        return message, position, False

    def _clear(self) -> None:
        """Forget all that is ready."""
        for position, message in self.returned:
            self.forget(position, message)
        self.returned.clear()
        if self.window is not None:
            self.window.clear()
        if self.deadlines:
            for position in range(self.head, self.head + len(self.ready)):
                self.deadlines.pop(position, None)
        self.head += len(self.ready)
        self.ready.clear()

    def _put_back(self, position: int, message: Message) -> int:
        """What was taken is ready again; returns where, which may be elsewhere."""
        heapq.heappush(self.returned, (position, message))
        return position

    def _put_back_first(self, position: int, message: Message) -> None:
        """The same, for what was at the head: what waits in `returned` counts as delivered before."""
        self._put_back(position, message)

    def _take_head(self) -> tuple[Message, int, bool]:
        message, position, redelivered = self._pop_head()
        if self.settings.bytes_max is not None:
            self.ready_bytes -= message.body_bytes
        return message, position, redelivered

    def drain(self, with_expired: bool = False) -> None:
        """Hand out ready messages while somebody takes them, a portion at a time.

        What has expired is given up instead, but for a message that comes just now (`with_expired`).
        """
        if self.has_extras:
            self._drain_with_extras(with_expired)
            return
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
            taker = takers[0]
            taker.deliver(message, position, redelivered)
            if len(takers) > 1 and takers[0] is taker:
                self._give_turn()
            bytes_left -= len(message.content)
            messages_left -= 1
            if bytes_left < 0 or not messages_left:
                self._stop_at_portion()
                return

    def _drain_with_extras(self, with_expired: bool) -> None:
        takers, trace = self.takers, self.vhost.trace
        bytes_left, messages_left = DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
        if self.deadlines and not with_expired:
            self.expire()
        while takers and self.ready_count:
            if takers[0].is_full:
                self.suspend(takers[0])
                continue
            message, position, redelivered = self._take_head()
            taker = takers[0]
            delivered = self.as_delivered(message, position)
            if self.is_faulty:
                self.vhost.broker.faults.deliver(self, taker, message, delivered, position, redelivered)
            else:
                taker.deliver(delivered, position, redelivered)
            if len(takers) > 1 and takers[0] is taker:
                self._give_turn()
            if trace is not None:
                trace.delivered(self, delivered, redelivered, taker.connection, taker.number, taker.no_ack)
            if self.deadlines:
                # Also behind the last one that somebody takes: what came to the head may be due.
                self.expire()
            bytes_left -= len(message.content)
            messages_left -= 1
            if bytes_left < 0 or not messages_left:
                self._stop_at_portion()
                return

    def as_delivered(self, message: Message, position: int) -> Message:
        """The message as its consumer sees it."""
        return message

    def _stop_at_portion(self) -> None:
        """The sockets are to be flushed before more is handed out."""
        if not self.is_undrained:
            self.is_undrained = True
            self.vhost.broker.undrained.append(self)

    def drain_on(self) -> None:
        """Hand out the next portion."""
        self.is_undrained = False
        if not self.is_deleted:
            self.drain()

    def forget(self, position: int, message: Message) -> None:
        """A message that left the queue will not come back."""
        if self.range_id is not None:
            self._window_of(position).remove(position, message)
        if self.deadlines:
            self.deadlines.pop(position, None)

    def note_failure(self, position: int) -> None:
        """What is about to be requeued was rejected or lost its channel, rather than being given back."""

    def requeue(self, position: int, message: Message) -> int:
        """A delivered message comes back to its place; the caller drains when all have come. Returns that place."""
        self.unacked_count -= 1
        if not self.is_deleted:
            position = self._put_back(position, message)
            if self.has_extras:
                if self.settings.bytes_max is not None:
                    self.ready_bytes += message.body_bytes
                if self.settings.drops_head:
                    self._drop_beyond_limits()
                if self.deadlines:
                    self.expire()
        return position

    def reject(self, position: int, message: Message) -> None:
        """A delivered message is refused for good."""
        self.unacked_count -= 1
        self.forget(position, message)
        self.given_up[REJECTED] += 1
        self.give_up(message, REJECTED)

    def give_up(self, message: Message, reason: str) -> None:
        """Dead-letter a message that the queue no longer has."""
        broker, dead_letter_exchange = self.vhost.broker, self.settings.dead_letter_exchange
        if not self.is_deleted:
            is_kept = dead_letter_exchange is not None and dead_letter_exchange in self.vhost.exchanges
            broker.counters.dead_lettered[self.type, "at_most_once" if is_kept else "disabled", reason] += 1
        if self.vhost.trace is not None:
            self.vhost.trace.given_up(self, message, reason)
        if dead_letter_exchange is not None and not self.is_deleted:
            broker.dead_letter(self, message, reason)

    def _give_up_head(self, reason: str) -> None:
        message, position, _ = self._take_head()
        self.forget(position, message)
        self.given_up[reason] += 1
        self.give_up(message, reason)

    def purge(self) -> int:
        """Drop what is ready; returns how many that were."""
        count, trace = self.ready_count, self.vhost.trace
        while trace is not None and self.ready_count:
            message, position, _ = self._take_head()
            self.forget(position, message)
            trace.given_up(self, message, "queue_deleted" if self.is_deleted else "purged")
        self._clear()
        self.ready_bytes = 0
        self.given_up["purged"] += count
        return count

    def on_recovered(self, position: int, stored: Stored) -> None:
        """A message that was taken before a restart is ready again."""

    # Time

    def expire(self) -> None:
        """Give up what has expired at the head, and wake up for the next that will.

        Only the head expires: what waits behind a message that does not is counted and kept, as in RabbitMQ.
        """
        deadlines, now = self.deadlines, self.vhost.broker.now
        while self.ready_count:
            deadline = deadlines.get(self._head_position())
            if deadline is None:
                return
            if deadline > now:
                self._wake_at(deadline)
                return
            self._give_up_head(EXPIRED)

    def _wake_at(self, deadline: int) -> None:
        timer = self._expiry_timer
        if timer is not None and timer.callback is not None:
            if timer.deadline_ms <= deadline:
                return
            timer.cancel()
        self._expiry_timer = self.vhost.broker.timers.at(deadline, self._on_expiry)

    def _on_expiry(self, now: int) -> None:
        self.expire()

    def use(self) -> None:
        """The queue was declared, read or consumed from: what counts as use for x-expires."""
        self._last_used_ms = self.vhost.broker.now
        if self._unused_timer is None:
            self._start_unused_timer()

    def _start_unused_timer(self) -> None:
        """Look again when the queue would be due if nobody used it until then; each use need not move the timer."""
        expires_ms = self.settings.expires_ms
        if self._unused_timer is not None:
            self._unused_timer.cancel()
            self._unused_timer = None
        if expires_ms is not None:
            self._unused_timer = self.vhost.broker.timers.at(self._last_used_ms + expires_ms, self._on_unused)

    def stop_timers(self) -> None:
        """The queue is gone: its timers must not keep it."""
        for timer in (self._expiry_timer, self._unused_timer):
            if timer is not None:
                timer.cancel()

    def _on_unused(self, now: int) -> None:
        self._unused_timer = None
        expires_ms = self.settings.expires_ms
        if self.consumers or expires_ms is None:
            # The last consumer to leave is a use, and starts the timer again.
            return
        if now >= self._last_used_ms + expires_ms:
            self.vhost.remove_queue(self)
        else:
            self._start_unused_timer()

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

    def check_deletable(self, *, if_unused: bool, if_empty: bool) -> None:
        """Raise PreconditionFailed if the queue must not be deleted."""
        if if_empty and self.ready_count:
            raise PreconditionFailed(f"{self} not empty")
        if if_unused and self.consumers:
            raise PreconditionFailed(f"{self} in use")

    def subscribe(self, consumer: Consumer) -> None:
        """Add a consumer, which gets nothing until `resume`. Raises AccessRefused where one has the queue alone."""
        self._check_exclusive(consumer)
        self.consumers.append(consumer)
        self.has_priorities = self.has_priorities or consumer.priority != 0
        if self.is_single_active and self.active_consumer is None:
            self.active_consumer = consumer
        self.vhost.broker.events.consumer_created(consumer)

    def _check_exclusive(self, consumer: Consumer) -> None:
        is_shared = bool(self.consumers) or self.is_single_active
        if self.exclusive_consumer is not None or (consumer.is_exclusive and is_shared):
            raise AccessRefused(f"{self} in exclusive use")
        if consumer.is_exclusive:
            self.exclusive_consumer = consumer

    def unsubscribe(self, consumer: Consumer) -> None:
        """Remove a consumer; an auto-delete queue goes with its last one."""
        self.suspend(consumer)
        self.clogged.discard(consumer)
        self.consumers.remove(consumer)
        self.vhost.broker.events.consumer_deleted(consumer)
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None
        if self.is_deleted:
            return
        if not self.consumers:
            self.use()
            if self.is_auto_delete:
                self.vhost.remove_queue(self)
        if self.active_consumer is consumer:
            self.active_consumer = self._next_active()
            if self.active_consumer is not None and self.active_consumer.can_take():
                self.resume(self.active_consumer)

    def resume(self, consumer: Consumer) -> None:
        """The consumer can take messages (again): it queues up behind those of its priority."""
        if not consumer.is_taking and (not self.is_single_active or consumer is self.active_consumer):
            consumer.is_taking = True
            self._line_up(consumer)
            if self.ready_count:
                self.drain()
