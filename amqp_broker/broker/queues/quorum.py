"""Quorum queues on a single node: durable, with delivery counts and a delivery limit.

Source: RabbitMQ, "Quorum Queues"; rabbit_quorum_queue.erl, rabbit_fifo.erl.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amqp_broker.amqp.errors import NotImplemented_, ResourceLocked
from amqp_broker.amqp.message import failures_of, with_failures
from amqp_broker.broker.durability.journal import Death, Stored
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.dead_letter_reasons import DELIVERY_LIMIT, MAXLEN
from amqp_broker.broker.queues.delayed_retries import DelayedRetries
from amqp_broker.broker.queues.kept_dead_letters import KeptDeadLetter, KeptDeadLetters
from amqp_broker.broker.queues.octets import octets_of
from amqp_broker.broker.queues.quorum_backlog import QuorumBacklog
from amqp_broker.broker.queues.refused_publishers import Publisher, RefusedPublishers
from amqp_broker.broker.queues.return_counts import ReturnCounts
from amqp_broker.broker.scheduling.portions import GIVE_UP_WORK, WORK_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import QueueDeclaration
    from amqp_broker.broker.queues.queue_settings import QueueSettings
    from amqp_broker.broker.vhost import VHost


class QuorumQueue(BacklogQueue[QuorumBacklog]):
    """A quorum queue; `counts` has how often its messages were returned, `retries` those that wait after a return,
    `dead_letters` those that wait for their targets, `publishers` those that it refuses. `pulled` are the positions of
    unsettled messages of basic.get, `leavers` cancelled consumers with unsettled deliveries.
    `is_quiescing`: the single active consumer gets nothing more, since one of higher priority waits for it to settle.
    """

    type: ClassVar[str] = "quorum"
    takes_global_prefetch = False
    takes_exclusive_consumers = False
    is_used_by_declaring = False
    keeps_leavers = True
    expires_after_get = True
    skips_full_consumers = True
    drops_before_refusing = False  # all settings change at once (rabbit_fifo.erl, update_config)

    def __init__(self, vhost: VHost, declaration: QueueDeclaration) -> None:
        self._profile = vhost.broker.profile
        self.counts_properties = self._profile.quorum_counts_properties
        self.counts = ReturnCounts(counts_failures=self._profile.counts_failures)
        self.pulled: set[int] = set()
        self.leavers: set[Consumer] = set()
        timers = vhost.broker.timers
        self.retries = DelayedRetries(timers, self._end_delays, counts_properties=self.counts_properties)
        self.dead_letters = KeptDeadLetters(
            vhost.broker, self._publish_dead_letter, self._end_dead_letter, counts_properties=self.counts_properties
        )
        self.publishers = RefusedPublishers()
        self.publisher = Publisher()
        super().__init__(vhost, declaration)
        self.drops_in_reverse = self._profile.drops_in_reverse
        self.rotation.activates_by_priority = self._profile.priority_activates

    def _new_backlog(self) -> QuorumBacklog:
        return QuorumBacklog(self.deadlines, self.counts, self._profile, self._withhold)

    # The journal

    def on_restored(self) -> None:
        if self.settings.retry_delay is not None or self.dead_letters_at_least_once:
            # They must be found now, because they wait for a time.
            self.backlog.fill_taken()
        super().on_restored()

    def _withhold(self, position: int, stored: Stored) -> bool:
        """Let a message wait that was taken before a restart, if it waited then; return whether it does."""
        if stored.death is not None and self.dead_letters_at_least_once:
            self.dead_letters.restore(position, stored.message, stored.death)
        elif stored.ready_at_ms is not None and stored.ready_at_ms > self.vhost.broker.now:
            self.retries.add(stored.ready_at_ms, position, stored.message)
            if stored.deadline_ms is not None:
                self.deadlines[position] = stored.deadline_ms
        else:
            return False
        self._count_withheld()
        return True

    def catch_up(self) -> None:
        self.dead_letters.resume()
        super().catch_up()

    def apply(self, settings: QueueSettings) -> None:
        # Quorum queues do not dead-letter refused messages; they drop the head instead.
        if settings.overflow == "reject-publish-dlx":
            settings = replace(settings, overflow="drop-head")
        super().apply(settings)
        if self.limit.rejects_publish:
            self.publishers.learn(self.vhost.publishers_to(self), self.limit)
        if self.dead_letters and not self.dead_letters_at_least_once:
            self._drop_dead_letters()

    @property
    def dead_letters_at_least_once(self) -> bool:
        settings = self.settings
        return (
            settings.dead_letter_exchange is not None
            and settings.dead_letter_strategy == "at-least-once"
            and settings.overflow == "reject-publish"
        )

    @property
    def delivery_limit(self) -> int | None:
        """Number of returns (failures from 4.3 on) after which a message is given up; None for no limit."""
        limit = self.settings.delivery_limit
        if limit is None:
            return self._profile.delivery_limit
        return None if limit < 0 and self._profile.has_unlimited_deliveries else limit

    # Messages in

    def will_reject(self, message: Message) -> bool:
        self.vhost.broker.resume_freed_consumers()
        return self.limit.rejects_publish and not self.limit.allows(1)

    def refuses(self, publisher: Publisher) -> bool:
        return self.limit.rejects_publish and self.publishers.refuse(publisher, self.limit)

    def offer(self, message: Message, publisher: Publisher | None = None) -> bool:
        if not self.limit.rejects_publish:
            return super().offer(message)
        self.vhost.broker.resume_freed_consumers()
        # RabbitMQ does not watch what no publisher waits for, for example dead letters: it cannot be refused.
        if publisher is not None and self.refuses(publisher):
            self._refuse(message)
            return False
        self.take(message)
        self.publishers.follow(self.limit)
        return True

    # Delivering and settling

    def _is_due(self, reason: str) -> bool:
        if reason == MAXLEN or not self.backlog.expires_by_level:
            return super()._is_due(reason)
        return self.backlog.has_expired(self.expiry, self.vhost.broker.now)

    def _dying(self, reason: str) -> Iterator[tuple[Message, int]]:
        """Take what is due. From 4.3 on, each line expires on its own (rabbit_fifo.erl, expire_batch)."""
        if reason == MAXLEN or not self.backlog.expires_by_level:
            yield from super()._dying(reason)
            return
        for position, message in self.backlog.take_expired(self.expiry, self.vhost.broker.now):
            self.note_change()
            if self.limit.bytes_max is not None:
                self.limit.ready_bytes -= octets_of(message, self.counts_properties)
            if message.is_damaged:
                self._report_damage(position)
            yield message, position

    def peek(self) -> Iterator[tuple[int, Message, bool]]:
        for position, message, redelivered, _ in self.peek_counted():
            yield position, message, redelivered

    def peek_counted(self) -> Iterator[tuple[int, Message, bool, int]]:
        """Yield what `peek` does, and the count for the header x-delivery-count."""
        all_taken: dict[int, Stored] = {}
        for position, message, is_returned in self.backlog.items(all_taken):
            taken = all_taken.pop(position, None)
            is_old = is_returned or taken is not None or self._was_delivered(position, message)
            yield position, message, is_old, self.counts.delivery_count(position, taken)

    def _was_delivered(self, position: int, message: Message) -> bool:
        return self.counts.has(position) or super()._was_delivered(position, message)

    def pull(self, *, no_ack: bool = True) -> tuple[Message, int, bool] | None:
        if self.rotation.is_single_active:
            kind = '<<"quorum">>' if self._profile.names_type_as_binary else "quorum"
            raise ResourceLocked(
                f"cannot obtain access to locked {self}. basic.get operations are not supported by "
                f"{kind} queues with single active consumer"
            )
        return super().pull(no_ack=no_ack)

    def note_pulled(self, position: int) -> None:
        self.pulled.add(position)

    @property
    def consumer_count(self) -> int:
        return self.reported_consumer_count - (max(1, len(self.consumers)) - 1 if self.rotation.is_single_active else 0)

    @property
    def reported_consumer_count(self) -> int:
        # RabbitMQ has a consumer for each pulled message, and keeps one that was cancelled.
        return len(self.consumers) + len(self.pulled) + sum(leaver.in_flight > 0 for leaver in self.leavers)

    def as_delivered(self, message: Message, position: int) -> Message:
        return self.counts.with_headers(message, position)

    def as_kept(self, message: Message, position: int) -> Message:
        return self.counts.original(position, message)

    def forget(self, position: int, message: Message) -> None:
        super().forget(position, message)
        self.counts.forget(position)
        if self.pulled:
            self.pulled.discard(position)
        if not self.consumers:
            self._use_by_settling()

    @property
    def _takes_failures(self) -> bool:
        return self._profile.quorum_takes_failures

    def note_failure(self, position: int) -> None:
        self.counts.note_failure(position)

    def _as_given_up(self, position: int, message: Message) -> Message:
        return with_failures(message, self.counts.failures.get(position, 0))

    @property
    def returns_to_tail(self) -> bool:
        return self._profile.returns_to_tail and self.delivery_limit is None

    @property
    def limits_returns(self) -> bool:
        return self.limit.drops_head

    @property
    def is_overfull(self) -> bool:
        return self.limit.drops_head and self.limit.is_exceeded

    def serve_returned(self) -> None:
        """Deliver what has come back, and drop what is beyond the limit only then (rabbit_fifo.erl, checkout)."""
        self.drain()
        if self.is_overfull and not self.is_deleted:
            while self.ready_consumers and self.backlog and self.is_overfull and not self.holds:
                self.drain()
            self._drop_beyond_limit()
            self.expire()

    def requeue(self, position: int, message: Message, *, is_lost: bool = False) -> int:
        """Put a delivered message back, before all others in the order of the returns.

        Without a delivery limit, up to 4.2, one that the client returned goes behind all others; one of a lost channel
        does not, and has failed (rabbit_fifo.erl: handle_aux makes a return a requeue; handle_down calls return_all).
        """
        if is_lost and self._takes_failures:
            self.counts.note_refusal(position)
        if self.limit.rejects_publish:
            # The room that there was until now counts.
            self.publishers.follow(self.limit)
        self.pulled.discard(position)
        if not self.consumers:
            self._use_by_settling()
        message = self.counts.take_original(position, message)
        has_failed = self.counts.has_just_failed(position)
        count, limit = self.counts.note_return(position), self.delivery_limit
        if limit is None or count <= limit:
            delay = self.settings.retry_delay if self._profile.delays_retries and not self.is_deleted else None
            delay_ms = delay.of(count, has_failed) if delay is not None else None
            ready_at_ms = None if delay_ms is None else self.vhost.broker.now + delay_ms
            stored = self.counts.stored(position, message, self.deadlines.get(position), ready_at_ms)
            self.backlog.rewrite(position, stored)
            if ready_at_ms is not None:
                self._delay(position, message, ready_at_ms)
                return position
            return self._put_back(position, message, to_tail=self.returns_to_tail and not is_lost)
        self.note_change()
        self.unacked_count -= 1
        self._discard_in_time(position, message, DELIVERY_LIMIT)
        return position

    def _put_back(self, position: int, message: Message, *, to_tail: bool) -> int:
        self.note_change()
        self.unacked_count -= 1
        if self.is_deleted:
            return position
        position = self.backlog.put_at_tail(position, message) if to_tail else self.backlog.put_back(position, message)
        if self.limit.bytes_max is not None:
            self.limit.ready_bytes += octets_of(message, self.counts_properties)
        if self.deadlines:
            self.expire()
        return position

    def _delay(self, position: int, message: Message, ready_at_ms: int) -> None:
        """Make a returned message ready at this time. Its time to live ends no earlier than the delay."""
        self.unacked_count -= 1
        self.retries.add(ready_at_ms, position, message)
        self._count_withheld()
        self._report_delay(message, has_ended=False)

    def _end_delays(self) -> None:
        broker = self.vhost.broker
        for position, message in self.retries.take_due(broker.now, (WORK_MAX - broker.work) // GIVE_UP_WORK):
            broker.work += GIVE_UP_WORK
            self._report_delay(message, has_ended=True)
            self.backlog.put_back(position, message)
            if self.limit.bytes_max is not None:
                self.limit.ready_bytes += octets_of(message, self.counts_properties)
        self._count_withheld()
        self.drain()

    def _count_withheld(self) -> None:
        self.note_change()
        self.limit.withheld_count = self.withheld_count
        self.limit.withheld_bytes = self.retries.octets + self.dead_letters.octets

    @property
    def withheld_count(self) -> int:
        return len(self.retries) + len(self.dead_letters)

    def purge(self) -> int:
        withheld = self.retries.take_all()
        self._report_purged(message for _, message in withheld)
        if self.is_deleted or self._profile.purges_dead_letters:  # the trace knows that they died
            withheld += self.dead_letters.take_all()
        for position, message in withheld:
            self.forget(position, message)
        self._count_withheld()
        self.statistics.given_up["purged"] += len(withheld)
        return len(withheld) + super().purge()

    # At-least-once dead-lettering

    def _discard(self, position: int, message: Message, reason: str) -> None:
        if reason == MAXLEN or self.is_deleted or not self.dead_letters_at_least_once:
            super()._discard(position, message, reason)
            return
        message = self._as_given_up(position, message)
        self.pulled.discard(position)
        self.deadlines.pop(position, None)
        self.counts.forget(position)
        self.statistics.given_up[reason] += 1
        self._count_given_up(message, reason)
        # The journal has it until all targets have taken it.
        death = Death(reason, self.vhost.broker.now)
        self.backlog.rewrite(position, Stored(message, death=death))
        self.dead_letters.add(position, message, death)
        self._count_withheld()

    def _publish_dead_letter(self, letter: KeptDeadLetter) -> None:
        self.vhost.broker.dead_letter(self, letter.message, letter.reason, letter)

    def _end_dead_letter(self, letter: KeptDeadLetter) -> None:
        self.forget(letter.position, letter.message)
        self._count_withheld()

    def _drop_dead_letters(self) -> None:
        """Drop what waits for its targets: the strategy has changed. RabbitMQ does the same."""
        for position, message in self.dead_letters.take_all():
            self.forget(position, message)
        self._count_withheld()

    def reject(self, position: int, message: Message) -> None:
        if self._takes_failures:
            self.counts.note_refusal(position)
        if not self.consumers:
            self._use_by_settling()
        super().reject(position, self.counts.take_original(position, message))

    def _deliver_at_once(self, message: Message, deadline_ms: int | None) -> bool:
        # A message that brings failures along is counted in the backlog.
        if self.has_failed_arrivals and failures_of(message):
            return False
        return super()._deliver_at_once(message, deadline_ms)

    # Consumers

    def subscribe(self, consumer: Consumer) -> None:
        super().subscribe(consumer)
        active = self.rotation.active_consumer
        if active is not None and self._profile.priority_activates and consumer.priority > active.priority:
            self.rotation.suspend(active)
            self.is_quiescing = True
            self._end_quiescing(active)

    def unsubscribe(self, consumer: Consumer) -> None:
        if consumer is self.rotation.active_consumer:
            self.is_quiescing = False
        super().unsubscribe(consumer)

    def keep_leaver(self, consumer: Consumer) -> None:
        self.leavers.add(consumer)

    def forget_leaver(self, consumer: Consumer) -> None:
        self.leavers.discard(consumer)

    def resume(self, consumer: Consumer) -> None:
        if self.is_quiescing and consumer is self.rotation.active_consumer:
            self._end_quiescing(consumer)
        else:
            super().resume(consumer)

    def step_aside(self, consumer: Consumer) -> None:
        """Give a consumer nothing until it is resumed: deliveries to it have timed out. Another one becomes active."""
        self.rotation.suspend(consumer)
        others = [other for other in self.consumers if other is not consumer]
        if consumer is self.rotation.active_consumer and others and not consumer.in_flight:
            self.is_quiescing = False
            following = self.rotation.active_consumer = max(others, key=lambda other: other.priority)
            if following.can_take():
                self.resume(following)

    def _end_quiescing(self, active: Consumer) -> None:
        """Activate the next consumer if the active one has settled all its messages."""
        if active.in_flight:
            active.is_full = True  # Then it asks to be resumed as soon as it settles a message.
            return
        self.is_quiescing = False
        following = self.rotation.activate_next()
        if following is not None and following.can_take():
            self.resume(following)

    # Uses

    def _use_by_settling(self) -> None:
        """Note a use: a message is settled that a basic.get or a consumer that has left had taken.

        Until then RabbitMQ has a consumer for it (rabbit_fifo.erl). While there are consumers, their leaving is the use
        that counts; and a message that was not delivered is none.
        """
        if self.unacked_count:
            self.use()

    def use_by_policy(self) -> None:
        if self._profile.policies_use_quorum:
            super().use_by_policy()

    # Deletion

    def _delete(self) -> None:
        # While a message is not settled, RabbitMQ has a consumer for it (rabbit_fifo.erl, is_expired).
        if not self.unacked_count:
            super()._delete()

    def check_deletable(self, *, if_unused: bool, if_empty: bool) -> None:
        flag = "if-unused" if if_unused else "if-empty"
        if if_unused or if_empty:
            raise NotImplemented_(
                f"cannot delete {self}. queue.delete operations with {flag} flag set are not supported by quorum queues"
            )

    def release(self) -> None:
        super().release()
        self.retries.stop()
        self.dead_letters.stop()
        self.backlog.stop()
