"""A channel: unacked deliveries by delivery tag, and unconfirmed publishes by publish number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.message import Message
from amqp_broker.broker.clients.client_channel import ClientChannel
from amqp_broker.broker.lab import delivery_faults
from amqp_broker.broker.observe.recorder import Recorder
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.session.channel.acks import ack_up_to, acking_by_consumer, take_all, take_up_to
from amqp_broker.session.channel.channel_limit import ChannelLimit
from amqp_broker.session.channel.confirms import send_confirms
from amqp_broker.session.channel.late_deliveries import settle_late
from amqp_broker.session.channel.returning import REJECT_WORK, SETTLED_MAX, coming_back, give_up, requeue_all, settling

if TYPE_CHECKING:
    from amqp_broker.amqp.content import ContentAssembly
    from amqp_broker.amqp.property_list import Traits
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.lab.withheld_confirms import WithheldConfirms
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.reply import ReplyQueue
    from amqp_broker.broker.routing.route import Route
    from amqp_broker.session.channel.delivery_deadlines import DeliveryDeadlines
    from amqp_broker.session.channel.returning import Taken
    from amqp_broker.session.methods.transactions import Transaction
    from amqp_broker.session.session import Session

# Queue and message of a duplicate.
Duplicate: TypeAlias = "tuple[Queue, Message]"
# Octets of a delivery that count as another one.
DELIVERED_BYTES: Final = 4096

# `Channel.mode`: at most one of confirms and transactions can be selected.
PLAIN: Final = 0
CONFIRMING: Final = 1
TRANSACTIONAL: Final = 2


class Channel(ClientChannel):
    """An open channel of a session.

    `unacked` maps delivery tags, in ascending order, to deliveries.
    """

    # Rare attributes have their defaults in the class: an object with 30 attributes of its own is slower.
    # Confirms that a fault withholds, and the number of deliveries that a fault delays; these count as unacked.
    withheld: WithheldConfirms | None = None
    late_count = 0
    # Unacked duplicates that a fault has delivered, by tag: settling one changes no queue.
    duplicates: dict[int, Duplicate] | None = None
    # The consumers of deliveries that have timed out and are not settled, by tag; these are among the duplicates, too.
    timed_out: dict[int, Consumer] | None = None
    # The deadlines of deliveries whose queue or consumer has a timeout of its own.
    deadlines: DeliveryDeadlines | None = None
    # Queue that direct replies come through, from the first consumer of them on.
    reply_queue: ReplyQueue | None = None
    # Number of its subscriptions so far.
    subscription_count = 0
    # The limit of all deliveries together, while there is a `prefetch_total`.
    limit: ChannelLimit | None = None

    def __init__(self, session: Session, number: int) -> None:
        assert session.vhost is not None
        super().__init__(session.vhost, number)
        self.prefetch = session.broker.settings.default_consumer_prefetch
        self.session = session
        self.gate = session.gate
        self.assembly: ContentAssembly | None = None
        self.last_queue = ""

        self.last_tag = 0
        # Pairs of a time and the last tag at that time, for the consumer timeout.
        self.tag_marks: deque[tuple[int, int]] = deque()
        self.unacked: dict[int, Delivery] = {}
        self.settled_until = 0

        self.mode = PLAIN
        # Last publish number that is confirmed, or whose confirm waits for a commit of the journal.
        self.scheduled_count = 0
        # Publish numbers of this read that a queue has refused.
        self.rejected: list[int] = []
        # Confirms that wait for a commit: the batch, the last publish number, and the numbers that a queue has refused.
        self.uncommitted: deque[tuple[int, int, list[int]]] = deque()
        # Unconfirmed messages by publish number; kept only for a trace.
        self.traced: dict[int, Message] = {}
        self.transaction: Transaction | None = None

    # Publishing

    def publish(self, route: Route, content: bytes, traits: Traits) -> None:
        """Push a message to its queues. Where route and traits are plain, this is all of publishing."""
        if route is not self.route:
            self.take_route(route)
        if route.is_recorded:
            self._publish_recorded(route, content, traits)
            return
        message = Message(route.address, content, self.number, traits.is_persistent)
        if route.only_queue is not None and traits.expiration_ms is None:
            route.only_queue.push(message)
            if not route.is_narrow:
                self.session.spend(1)
        else:
            route.push(message, traits.expiration_ms)
            if not route.is_narrow:
                self.spend(len(route.queues), content)
        if self.mode and self.publish_count == self.scheduled_count:
            self.gate.confirming.append(self)
        self.publish_count += 1

    def spend(self, queues: int, content: bytes) -> None:
        """Count the deliveries of a message to its queues as work of this read."""
        # A delivery may take the octets of the message again.
        self.session.spend(queues * (1 + len(content) // DELIVERED_BYTES))

    def _publish_recorded(self, route: Route, content: bytes, traits: Traits) -> None:
        """Publish a message, and report it to the recorder."""
        recorder = self.vhost.trace
        assert isinstance(recorder, Recorder)
        message = recorder.publish(route, self, content, traits.is_persistent)
        route.push(message, traits.expiration_ms)
        if not route.is_narrow:
            self.spend(len(route.queues), content)
        if self.mode and self.publish_count == self.scheduled_count:
            self.gate.confirming.append(self)
        number = self.publish_count = self.publish_count + 1
        if self.mode == CONFIRMING and message.is_recorded:
            self.traced[number] = message

    def count_publish(self) -> None:
        """Give the current message the next publish number. Its confirm is due after the read."""
        if self.mode and self.publish_count == self.scheduled_count:
            self.gate.confirming.append(self)
        self.publish_count += 1

    def confirm_publishes(self, is_journaled: bool) -> None:
        """Confirm the publishes of this read now, or (`is_journaled`) after the commit that contains them."""
        rejected, self.rejected = self.rejected, []
        self.scheduled_count = self.publish_count
        if is_journaled or self.uncommitted:
            # A publish that the journal does not contain waits for the publishes before it, but for no later batch,
            # which may be empty and would never be committed.
            batch = self.session.broker.journal.batch if is_journaled else self.uncommitted[-1][0]
            self.uncommitted.append((batch, self.publish_count, rejected))
        else:
            send_confirms(self, self.publish_count, rejected)

    def confirm_committed(self, committed: int) -> None:
        """Confirm what waited for a batch of the journal up to `committed`."""
        uncommitted, until, rejected = self.uncommitted, 0, []
        while uncommitted and uncommitted[0][0] <= committed:
            _, until, more = uncommitted.popleft()
            rejected += more
        if until:
            send_confirms(self, until, rejected)

    # Settling

    def ack(self, tag: int, multiple: bool) -> None:
        """Settle as acked (basic.ack). Raise PreconditionFailed for a tag that is not unacked."""
        if multiple or self.mode == TRANSACTIONAL:
            if multiple and ack_up_to(self, tag):
                return
            deliveries = self._take(tag, multiple)
            if self.transaction is not None:
                self.transaction.acks.extend(deliveries)
                return
            if self.session.broker.faults.on_ack:
                deliveries = delivery_faults.effective_acks(self, deliveries)
            self.session.work(acking_by_consumer(self, deliveries))
            return
        delivery = self.unacked.pop(tag, None)
        if delivery is None:
            self._take_duplicates(tag, False)
            return
        queue, consumer, position, message = delivery
        if queue.has_extras:
            trace = queue.trace
            if trace is not None and consumer is not None:
                trace.acked_by(consumer, message)
            elif queue.is_faulty and not delivery_faults.effective_acks(self, [(tag, delivery)]):
                return
            else:
                queue.forget(position, message)
                self._trace_ack(queue, consumer, message)
        queue.unacked_count -= 1
        if consumer is not None:
            if self.limit is not None:
                self.limit.leave(1)
            consumer.in_flight -= 1
            if consumer.is_full:
                self.mark_freed(consumer)
        else:
            self.count_ack(queue)

    def reject(self, tag: int, multiple: bool, requeue: bool, has_failed: bool = False) -> None:
        """Settle as rejected; basic.reject sets `has_failed`. Raise PreconditionFailed for an unknown tag."""
        deliveries = self._take(tag, multiple)
        if self.transaction is not None:
            self.transaction.rejects.append(((requeue, has_failed), list(deliveries)))
        else:
            self.settle_rejected(deliveries, requeue, has_failed)

    def settle_rejected(self, deliveries: Taken, requeue: bool, has_failed: bool = False) -> None:
        """Requeue deliveries, or drop or dead-letter them. The session reads on when that is done."""
        if len(deliveries) > (SETTLED_MAX if requeue else 1):
            self.session.work(settling(self, deliveries, requeue=requeue, has_failed=has_failed))
            return
        with self.session.broker.dead_letters_held():
            if len(deliveries) > 1:
                finished(settling(self, deliveries, requeue=requeue, has_failed=has_failed))
            elif requeue:
                self.serve_returned(self.give_back([*deliveries], has_failed))
            else:
                give_up(self, deque(deliveries), has_failed=has_failed)
        self.session.spend(REJECT_WORK)

    def give_back(self, deliveries: list[tuple[int, Delivery]], has_failed: bool = False) -> Iterable[Queue]:
        """Requeue deliveries; return their queues, which are not served yet."""
        self.count_rejected(deliveries, True)
        queues = requeue_all(deliveries, has_failed=has_failed, is_lost=False)
        self.release_prefetch(deliveries)
        return queues

    def serve_returned(self, queues: Iterable[Queue]) -> None:
        """Have queues deliver what has come back."""
        # The consumers that were freed take their turn.
        self.session.broker.resume_freed_consumers()
        for queue in queues:
            queue.serve_returned()

    def count_rejected(self, deliveries: Sequence[tuple[int, Delivery]], requeue: bool) -> None:
        if self.vhost.trace is not None:
            for _, (queue, _, _, message) in deliveries:
                self.vhost.trace.nacked(queue, message, requeue, self.session, self.number)
        for _, (_, consumer, _, _) in deliveries:
            if consumer is not None:
                consumer.refused += 1

    def finish(self, delivery: Delivery) -> None:
        """Settle an acked delivery."""
        queue, consumer, position, message = delivery
        queue.forget(position, message)
        queue.unacked_count -= 1
        if consumer is None:
            self.count_ack(queue)
        self._trace_ack(queue, consumer, message)

    def _trace_ack(self, queue: Queue, consumer: Consumer | None, message: Message) -> None:
        trace = self.vhost.trace
        if trace is None:
            return
        if consumer is not None:
            trace.acked_by(consumer, message)
        else:
            trace.acked(queue, message, self.session, self.number)

    def release_prefetch(self, deliveries: list[tuple[int, Delivery]]) -> None:
        """Stop counting deliveries against the prefetch of their consumers and of the channel."""
        if self.limit is not None:
            self.limit.leave(sum(consumer is not None for _, (_, consumer, _, _) in deliveries))
        for _, (_, consumer, _, _) in deliveries:
            if consumer is not None:
                consumer.in_flight -= 1
                if consumer.is_full:
                    self.mark_freed(consumer)

    def mark_freed(self, consumer: Consumer) -> None:
        """Have a consumer that was full take again, at the end of the read."""
        if consumer.limit is not None:
            consumer.limit.note_settled(consumer)
            return
        consumer.is_full = False
        if consumer.is_taking:
            if not consumer.queue.skips_full_consumers:
                return
            consumer.queue.rotation.suspend(consumer)
        self.session.freed_consumers.append(consumer)

    def _take(self, tag: int, multiple: bool) -> Taken:
        """Remove a tag, or with `multiple` all up to it (0: all), from `unacked`, and return the deliveries."""
        unacked = self.unacked
        if self.duplicates is not None or (tag not in unacked and not (multiple and tag == 0)):
            self._take_duplicates(tag, multiple)
        if not multiple:
            return [(tag, unacked.pop(tag))] if tag in unacked else []
        return take_up_to(self, tag)

    def add_duplicate(self, tag: int, queue: Queue, message: Message) -> None:
        """Remember a duplicate that a fault has delivered under this tag."""
        if self.duplicates is None:
            self.duplicates = {}
        self.duplicates[tag] = queue, message

    def _take_duplicates(self, tag: int, multiple: bool) -> None:
        """Take a duplicate, or with `multiple` all up to a tag. Raise PreconditionFailed where the tag is unknown."""
        duplicates = self.duplicates or {}
        if tag not in duplicates and tag not in self.unacked and not (multiple and tag == 0):
            raise PreconditionFailed(f"unknown delivery tag {tag}")
        if multiple:
            tags = [other for other in duplicates if tag == 0 or other <= tag]
        else:
            tags = [tag] if tag in duplicates else []
        taken = {other: duplicates.pop(other) for other in tags}
        if self.transaction is not None:
            self.transaction.duplicates.update(taken)
        else:
            self.release_duplicates(taken)

    def release_duplicates(self, tags: Iterable[int]) -> None:
        """Stop counting duplicates and late deliveries that the client has settled."""
        if self.timed_out:
            settle_late(self, tags)

    def limit_total(self, prefetch: int) -> None:
        """Limit the unacked deliveries of the whole channel (basic.qos, global); 0 lifts the limit."""
        self.prefetch_total = prefetch
        limit = self.limit
        if prefetch and limit is not None:
            limit.change_total(prefetch)
        elif prefetch:
            unsettled = len(self.unacked) + len(self.duplicates or ()) + self.late_count
            self.limit = ChannelLimit(self, prefetch, unsettled)
        elif limit is not None:
            self.limit = None
            limit.end()

    def drop_consumer(self, tag: str) -> Consumer | None:
        consumer = super().drop_consumer(tag)
        if self.limit is not None and consumer is not None:
            self.limit.remove(consumer)
        return consumer

    # Consumers

    def suspend_consumers(self) -> None:
        """Suspend the consumers that cannot take any more."""
        for consumer in self.consumers.values():
            if consumer.is_taking and not consumer.can_take():
                consumer.queue.rotation.pass_over(consumer)

    def resume_consumers(self) -> None:
        """Resume the consumers that can take again."""
        for consumer in list(self.consumers.values()):
            if consumer.limit is None and not consumer.is_taking and consumer.can_take():
                consumer.queue.resume(consumer)
        if self.limit is not None:
            self.limit.resume_all()

    @property
    def reply_name(self) -> str | None:
        """Queue name for direct replies to this channel; None if it does not consume them."""
        queue = self.reply_queue
        return None if queue is None or queue.is_deleted else queue.name

    def remove_consumers(self) -> None:
        """End all subscriptions of the channel."""
        while self.consumers:
            consumer = self.drop_consumer(next(reversed(self.consumers)))
            assert consumer is not None
            consumer.queue.unsubscribe(consumer)

    # The seam

    def deliveries(self) -> list[Delivery]:
        settled = [] if self.transaction is None else self.transaction.settled()
        return [*self.unacked.values(), *[delivery for _, delivery in settled]]

    def unacked_messages(self) -> Iterator[tuple[Queue, Message]]:
        for queue, _, position, message in self.deliveries():
            yield queue, queue.as_kept(message, position)
        yield from (self.duplicates or {}).values()
        if self.transaction is not None:
            yield from self.transaction.duplicates.values()

    @property
    def connection(self) -> Connection:
        return self.session

    @property
    def is_confirming(self) -> bool:
        return self.mode == CONFIRMING

    @property
    def is_transactional(self) -> bool:
        return self.mode == TRANSACTIONAL

    @property
    def messages_unacknowledged(self) -> int:
        return len(self.unacked) + len(self.duplicates or ()) + self.acks_uncommitted

    @property
    def messages_unconfirmed(self) -> int:
        withheld = 0 if self.withheld is None else self.withheld.passed_count
        return self.publish_count - self.confirmed_count + withheld if self.is_confirming else 0

    @property
    def messages_uncommitted(self) -> int:
        return len(self.transaction.publishes) if self.transaction is not None else 0

    @property
    def acks_uncommitted(self) -> int:
        return len(self.transaction.tags()) if self.transaction is not None else 0

    # Ends

    def close(self) -> None:
        """Close the channel while its connection stays open."""
        # No confirm leaves for a closed channel.
        self.uncommitted.clear()
        self.remove_consumers()
        broker = self.session.broker
        broker.do_in_portions(coming_back(broker, [self.take_unacked()]))
        self.end()
        broker.advice.on_channel_closed(self)

    def end(self) -> None:
        """Report the counts of the closed channel, and that it is closed."""
        self.collect()
        self.forget_leavers()
        self.vhost.counts.collect()
        self.session.broker.advice.on_channel_ended(self)
        self.session.broker.counters.channels_closed += 1
        self.session.broker.events.channel_closed(self.session, self.number)

    def take_unacked(self) -> Taken:
        """Take all unacked deliveries: the channel is lost."""
        if self.transaction is not None:
            self.transaction.roll_back(self)
        if self.deadlines is not None:
            self.deadlines.stop()
        taken = take_all(self)
        self.duplicates = None
        return taken
