"""A queue whose messages leave it when they are settled: all types but streams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.message import failures_of, with_failures
from amqp_broker.broker.queues.dead_letter_reasons import EXPIRED, MAXLEN, REJECTED
from amqp_broker.broker.queues.expiry import Expiry
from amqp_broker.broker.queues.giving_up import GivingUpQueue
from amqp_broker.broker.queues.length_limit import LengthLimit
from amqp_broker.broker.queues.octets import octets_of
from amqp_broker.broker.queues.queue import DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX, QueueDeclaration
from amqp_broker.broker.queues.queue_settings import effective
from amqp_broker.broker.scheduling.portions import GIVE_UP_WORK, WORK_MAX

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.paged_buffer import PagedBuffer
    from amqp_broker.broker.queues.backlog import Backlog
    from amqp_broker.broker.queues.queue_settings import QueueSettings
    from amqp_broker.broker.vhost import VHost


# Messages that are freed at once; that takes about a millisecond.
FREED_MAX: Final = 4000

B = TypeVar("B", bound="Backlog")


class BacklogQueue(GivingUpQueue, Generic[B]):
    """A queue with a `backlog` of type `B`, which orders its ready messages, with message TTL and a length limit.

    Ready consumers and ready messages never wait for each other, except while a drain pauses after a portion, and for
    consumers that have become full since their last turn.
    """

    type: ClassVar[str] = "classic"
    # Set where a new limit drops messages before the queue begins to refuse publishes.
    drops_before_refusing: ClassVar[bool] = True

    def __init__(self, vhost: VHost, declaration: QueueDeclaration) -> None:
        super().__init__(vhost, declaration)
        self.expiry = Expiry(vhost.broker.timers, self.expire)
        self.deadlines = self.expiry.deadlines
        # Number of failed deliveries by position: here for the messages of a classic queue that may be dead-lettered.
        self.failures: dict[int, int] = {}
        # Set once a message has come here with failed deliveries elsewhere.
        self.has_failed_arrivals = False
        self.backlog: B = self._new_backlog()
        self.limit = LengthLimit(self.backlog, counts_properties=self.counts_properties)
        self.apply(effective(self.arguments, {}, {}))

    @abstractmethod
    def _new_backlog(self) -> B: ...

    # Policy

    def apply(self, settings: QueueSettings) -> None:
        """Follow these settings from now on.

        Messages in the queue keep their time to live; a limit applies to them at once. Source:
        rabbit_amqqueue_process.erl, process_args_policy, where a new limit meets the old overflow before the new one:
        the queue drops messages unless it rejected publishes and still does.
        """
        dropped_before = self.drops_before_refusing and self.settings.overflow == "drop-head"
        drops = dropped_before or settings.overflow == "drop-head"
        self.settings = settings
        self.limit.follow(settings)
        self._update_extras()
        # While objects are restored, dead letters could not go where they should.
        is_restoring = self.vhost.broker.journal.is_restoring
        if not is_restoring:
            self.drops_once = drops
            # Another message may have come to the head, too.
            self._look_again()
        self.unused.follow(settings.expires_ms)

    def _update_extras(self) -> None:
        self.has_extras = True

    # The journal

    @property
    def ranges(self) -> range:
        return range(0) if self.range_id is None else range(self.range_id, self.range_id + self.backlog.range_count)

    @property
    def buffers(self) -> list[PagedBuffer]:
        return self.backlog.buffers

    def keep(self, range_id: int | None) -> None:
        journal = self.vhost.broker.journal
        self.range_id = journal.new_ranges(self.backlog.range_count) if range_id is None else range_id
        self.backlog.keep(journal, self.range_id)
        # Messages from before a restart may have failed elsewhere.
        self.has_failed_arrivals = range_id is not None and self._takes_failures
        self._update_extras()

    def catch_up(self) -> None:
        self._look_again()

    def recount(self) -> None:
        """Take account of messages that were put into the backlog from a snapshot. No limit applies to them yet."""
        self.note_change()
        self.limit.recount()
        if self._takes_failures and any(failures_of(message) for _, message, _ in self.backlog.items()):
            self.has_failed_arrivals = True
        self._update_extras()
        if self.deadlines:
            self.expire()

    # Messages in

    @property
    def ready_count(self) -> int:
        return len(self.backlog)

    def peek(self) -> Iterator[tuple[int, Message, bool]]:
        for position, message, redelivered in self.backlog.items():
            yield position, message, redelivered or self._was_delivered(position, message)

    def _was_delivered(self, position: int, message: Message) -> bool:
        """Return whether a ready message that the backlog has as new was delivered before."""
        return self.has_failed_arrivals and failures_of(message) > 0

    def will_reject(self, message: Message) -> bool:
        if not self.limit.refuses(message):
            return False
        self.vhost.broker.resume_freed_consumers()
        return self.limit.refuses(message)

    def take(self, message: Message) -> None:
        if failures_of(message) and self._takes_failures and not self.has_failed_arrivals:
            self.has_failed_arrivals = True
            self._update_extras()
        super().take(message)

    @property
    def _takes_failures(self) -> bool:
        return self.vhost.broker.profile.classic_counts_failures

    def push(self, message: Message) -> None:
        self.push_with_extras(message)

    def push_with_extras(self, message: Message, expiration_ms: int | None = None) -> None:
        if self.deadlines:
            self.expire()
        deadline_ms = self._deadline(expiration_ms)
        if (deadline_ms is not None or self.limit.drops_head) and self.vhost.broker.freed_consumers:
            # They take what is ready before the message comes, which may drop it, or expire.
            self.vhost.broker.resume_freed_consumers()
        if self.ready_consumers and self._deliver_at_once(message, deadline_ms):
            return
        backlog, limit = self.backlog, self.limit
        if deadline_ms is not None and self._drops_at_once():
            self.statistics.given_up[EXPIRED] += 1
            self._give_up(message, EXPIRED)
            return
        position = backlog.append(message, deadline_ms)
        if deadline_ms is not None:
            self.has_extras = True
            self.trace = None
        if limit.bytes_max is not None:
            limit.ready_bytes += octets_of(message, limit.counts_properties)
        has_moved = bool(self.ready_consumers)
        if has_moved:
            self._drain_with_extras(with_expired=True)
        if limit.drops_head:
            has_moved = True
            self._drop_beyond_limit()
        # If nothing left and the new message is not the first, the head was looked at above.
        if self.deadlines and (has_moved or backlog.is_next_to_expire(position)):
            self.expire()
        if self.giving_up and not self.vhost.broker.is_routing_dead_letters:
            self._give_up_two()
        if self.backpressured and backlog:
            self.vhost.broker.is_congested = True

    def _drops_at_once(self) -> bool:
        """Return whether a message that no consumer takes expires even behind others.

        Source: rabbit_amqqueue_process.erl, maybe_deliver_or_enqueue.
        """
        settings = self.settings
        return settings.message_ttl_ms == 0 and settings.dead_letter_exchange is None and self.type == "classic"

    def _deliver_at_once(self, message: Message, deadline_ms: int | None) -> bool:
        """Deliver a new message past the backlog, if a consumer takes it; return False if it has to wait.

        Messages wait behind ready ones, and while a fault rule is to see them. No limit applies to a message that is
        delivered, and it expires only if it is returned.
        """
        ready_consumers, backlog = self.ready_consumers, self.backlog
        if backlog or self.is_faulty or self.holds:
            return False
        if ready_consumers[0].is_full and not self.rotation.skip_full():
            return False
        position = backlog.deliver_through(message, deadline_ms)
        consumer = ready_consumers[0]
        if deadline_ms is not None and not consumer.no_ack:
            self.deadlines[position] = deadline_ms
            self.has_extras = True
            self.trace = None
        consumer.deliver(message, position, False)
        if len(ready_consumers) > 1 and ready_consumers[0] is consumer:
            self.rotation.end_turn()
        trace = self.vhost.trace
        if trace is not None:
            trace.delivered_to(consumer, message, False)
        return True

    def _deadline(self, expiration_ms: int | None) -> int | None:
        """Return when a new message expires (ms since the epoch); None for never."""
        ttl_ms = self.settings.message_ttl_ms
        if expiration_ms is not None:
            ttl_ms = expiration_ms if ttl_ms is None else min(ttl_ms, expiration_ms)
        return None if ttl_ms is None else self.vhost.broker.now + ttl_ms

    # Messages out

    @property
    def has_deadlines(self) -> bool:
        return bool(self.deadlines)

    def pull(self, *, no_ack: bool = True) -> tuple[Message, int, bool] | None:
        self.note_change()
        if self.deadlines:
            self.expire()
        if not self.backlog:
            return None
        pulled = self._take_head()
        if self.deadlines and (no_ack or not self.expires_after_get):
            # The message behind it may have expired before.
            self.expire()
        return pulled

    def pull_at(self, position: int) -> tuple[Message, bool] | None:
        """Take a ready message out of its place, as `Backlog.take_at` does, after `Backlog.reach`."""
        taken = self.backlog.take_at(position)
        if taken is not None:
            self.note_change()
            if self.limit.bytes_max is not None:
                self.limit.ready_bytes -= octets_of(taken[0], self.counts_properties)
        return taken

    def return_at(self, position: int, message: Message, redelivered: bool) -> None:
        """Return what `pull_at` has taken to its place."""
        self.note_change()
        self.backlog.put_at(position, message, redelivered)
        if self.limit.bytes_max is not None:
            self.limit.ready_bytes += octets_of(message, self.counts_properties)

    def return_to_head(self, position: int, message: Message) -> None:
        self.note_change()
        self.backlog.return_to_head(position, message)
        if self.limit.bytes_max is not None:
            self.limit.ready_bytes += octets_of(message, self.counts_properties)

    def _take_head(self) -> tuple[Message, int, bool]:
        taken = self.backlog.pop_head()
        if self.limit.bytes_max is not None:
            self.limit.ready_bytes -= octets_of(taken[0], self.counts_properties)
        if self.has_failed_arrivals and failures_of(taken[0]):
            return taken[0], taken[1], True
        return taken

    def drain(self) -> None:
        self._drain_with_extras(with_expired=False)

    def _drain_with_extras(self, with_expired: bool) -> None:
        """Deliver some ready messages, and give up expired ones unless one of them arrives just now."""
        ready_consumers, trace, backlog = self.ready_consumers, self.vhost.trace, self.backlog
        bytes_left, messages_left = DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
        if self.deadlines and not with_expired:
            self.expire()
        while ready_consumers and backlog and not self.holds:
            if ready_consumers[0].is_full:
                self.rotation.pass_over(ready_consumers[0])
                continue
            message, position, redelivered = self._take_head()
            consumer = ready_consumers[0]
            delivered = self.as_delivered(message, position)
            if self.is_faulty:
                self.vhost.broker.faults.deliver(self, consumer, message, delivered, position, redelivered)
            else:
                consumer.deliver(delivered, position, redelivered)
                if trace is not None:
                    trace.delivered_to(consumer, delivered, redelivered)
            if len(ready_consumers) > 1 and ready_consumers[0] is consumer:
                self.rotation.end_turn()
            if self.deadlines:
                # Also after the last message that was delivered: the new head may be due.
                self.expire()
            bytes_left -= len(message.content)
            messages_left -= 1
            if bytes_left < 0 or not messages_left:
                self._pause_drain()
                return

    # Settling

    def forget(self, position: int, message: Message) -> None:
        if self.range_id is not None:
            self.backlog.forget(position, message)
        if self.deadlines:
            self.deadlines.pop(position, None)
        if self.failures:
            self.failures.pop(position, None)

    def note_failure(self, position: int) -> None:
        if self._keeps_failures:
            self.failures[position] = self.failures.get(position, 0) + 1
            # An ack has to forget the position.
            self.has_extras = True
            self.trace = None

    @property
    def _keeps_failures(self) -> bool:
        return self._takes_failures and self.settings.dead_letter_exchange is not None

    def _as_given_up(self, position: int, message: Message) -> Message:
        """Return a message that leaves the queue, with the number of its failed deliveries."""
        own = self.failures.get(position)
        return message if own is None else with_failures(message, own + failures_of(message))

    def requeue(self, position: int, message: Message, *, is_lost: bool = False) -> int:
        self._requeue_together([(position, message)], has_failed=False)
        return position

    def _requeue_together(self, delivered: Sequence[tuple[int, Message]], *, has_failed: bool) -> None:
        """Do `requeue_all`; the limit and the times to live apply when all are back.

        Source: rabbit_amqqueue_process.erl, requeue_and_run.
        """
        self.note_change()
        self.unacked_count -= len(delivered)
        if self.is_deleted:
            return
        if has_failed and self._keeps_failures:
            for position, _ in delivered:
                self.note_failure(position)
        self._put_all_back(delivered)
        if self.limit.bytes_max is not None:
            self.limit.ready_bytes += sum(message.body_bytes for _, message in delivered)
        if self.limit.drops_head:
            self._drop_beyond_limit()
        if self.deadlines:
            self.expire()

    def _put_all_back(self, delivered: Sequence[tuple[int, Message]]) -> None:
        for position, message in delivered:
            self.backlog.put_back(position, message)

    @property
    def limits_returns(self) -> bool:
        return self.limit.drops_head or bool(self.deadlines)

    def reject(self, position: int, message: Message) -> None:
        self.note_change()
        self.unacked_count -= 1
        self._discard(position, message, REJECTED)

    # Giving up

    def _look_again(self) -> None:
        if self.limit.drops_head or self.drops_once:
            self._drop_beyond_limit()
        if self.deadlines:
            self.expire()

    def expire(self) -> None:
        if not self.holds and self._is_due(EXPIRED):
            self._give_up_due(EXPIRED)

    def _drop_beyond_limit(self) -> None:
        if self.holds:
            return
        self.drops_once = False
        limit, broker = self.limit, self.vhost.broker
        if not limit.is_exceeded:
            return
        if self.drops_in_reverse or broker.work >= WORK_MAX:
            self._give_up_due(MAXLEN)
            return
        # Most often a new message displaces a single one.
        first = self._take_to_give_up()
        if limit.is_exceeded:
            self._give_up_due(MAXLEN, first)
        elif not first[0].is_damaged:
            broker.work += GIVE_UP_WORK
            self._discard(first[1], first[0], MAXLEN)

    def _is_due(self, reason: str) -> bool:
        if reason == MAXLEN:
            return self.limit.is_exceeded
        backlog = self.backlog
        return bool(backlog) and self.expiry.is_due(backlog.head_position(), self.vhost.broker.now)

    def _take_to_give_up(self) -> tuple[Message, int]:
        """Take the message at the head, to give it up unless it is damaged; return it and its position."""
        self.note_change()
        message, position, _ = self._take_head()
        if message.is_damaged:
            self._report_damage(position)
        return message, position

    def _report_damage(self, position: int) -> None:
        """Report that a message was taken that cannot be read; the journal keeps the record for `store repair`."""
        self.deadlines.pop(position, None)
        journal = self.vhost.broker.journal
        journal.report_damage(f"{self}: the message at position {position} is damaged; it is not delivered")

    def _discard(self, position: int, message: Message, reason: str) -> None:
        """Give up a message that was taken."""
        message = self._as_given_up(position, message)
        self.forget(position, message)
        self.statistics.given_up[reason] += 1
        self._give_up(message, reason)

    def check_deletable(self, *, if_unused: bool, if_empty: bool) -> None:
        if if_empty and self.backlog:
            raise PreconditionFailed(f"{self} not empty")
        if if_unused and self.consumers:
            raise PreconditionFailed(f"{self} in use")

    def purge(self) -> int:
        self.note_change()
        count = len(self.backlog)
        while self.vhost.trace is not None and self.backlog:
            message, position, _ = self._take_head()
            self.forget(position, message)
            self._report_purged((message,))
        if self.failures:
            for position, _, _ in self.backlog.items():
                self.failures.pop(position, None)
        for buffer in self.buffers:
            if len(buffer.memory) > FREED_MAX:
                self.vhost.broker.free_later(buffer.memory.copy())
        self.backlog.clear()
        self.limit.ready_bytes = 0
        self.statistics.given_up["purged"] += count
        return count

    def release(self) -> None:
        self.expiry.stop()
        super().release()
