"""A channel: it publishes, and settles deliveries."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.message import Message
from amqp_broker.broker.clients.client_channel import ClientChannel
from amqp_broker.broker.lab import delivery_faults
from amqp_broker.broker.observe.recorder import Recorder
from amqp_broker.broker.queues.leaving_reasons import CHANNEL_CLOSED
from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.session.channel.acks import ack_up_to, acking_by_consumer
from amqp_broker.session.channel.channel_limit import ChannelLimit
from amqp_broker.session.channel.leaving_consumers import Leaving, leave, withdraw
from amqp_broker.session.channel.returning import (
    REJECT_WORK,
    SETTLED_MAX,
    coming_back,
    give_up,
    requeue_all,
    settling,
)
from amqp_broker.session.channel.unacked import Unacked

if TYPE_CHECKING:
    from amqp_broker.amqp.content import ContentAssembly
    from amqp_broker.amqp.property_list import Traits
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.reply import ReplyQueue
    from amqp_broker.broker.routing.route import Route
    from amqp_broker.session.channel.confirms import Confirms
    from amqp_broker.session.channel.unacked import Taken
    from amqp_broker.session.methods.transactions import Transaction
    from amqp_broker.session.session import Session

# Octets of a delivery that count as another one.
DELIVERED_BYTES: Final = 512


class Channel(ClientChannel):
    """An open channel of a session. It has `confirms` after confirm.select, or a `transaction` after tx.select."""

    # Rare attributes have their defaults in the class: an object with 30 attributes of its own is slower.
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
        self.unacked = Unacked()
        # A publish whose content is incomplete.
        self.assembly: ContentAssembly | None = None
        self.last_queue = ""
        # The name of a queue that waits for the answers of remote backends.
        self.drawn_name = ""
        self.confirms: Confirms | None = None
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
        confirms = self.confirms
        if confirms is not None and self.publish_count == confirms.scheduled_count:
            self.gate.confirming.append(confirms)
        self.publish_count += 1

    def spend(self, queues: int, content: bytes) -> None:
        """Count the deliveries of a message to its queues as work of this read.

        A turn has a message that is too much by itself, but no second one.
        """
        # A delivery may take the octets of the message again.
        work = queues * (1 + len(content) // DELIVERED_BYTES)
        self.session.spend(work, next_work=work)

    def _publish_recorded(self, route: Route, content: bytes, traits: Traits) -> None:
        """Publish a message, and report it to the recorder."""
        recorder = self.vhost.trace
        assert isinstance(recorder, Recorder)
        message = recorder.publish(route, self, content, traits.is_persistent)
        route.push(message, traits.expiration_ms)
        if not route.is_narrow:
            self.spend(len(route.queues), content)
        self.count_publish()
        if self.confirms is not None and message.is_recorded:
            self.confirms.traced[self.publish_count] = message

    def count_publish(self) -> None:
        """Give the current message the next publish number. Its confirm is due after the read."""
        confirms = self.confirms
        if confirms is not None and self.publish_count == confirms.scheduled_count:
            self.gate.confirming.append(confirms)
        self.publish_count += 1

    # Settling

    def ack(self, tag: int, multiple: bool) -> None:
        """Settle as acked (basic.ack). Raise PreconditionFailed for a tag that is not unacked."""
        if multiple or self.transaction is not None:
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
        delivery = self.unacked.deliveries.pop(tag, None)
        if delivery is None:
            self._settle_duplicates(tag, False)
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

    def settle_rejected(self, deliveries: Taken, requeue: bool, has_failed: bool = False, reason: str = "") -> None:
        """Requeue deliveries, or drop or dead-letter them. The session reads on when that is done."""
        if len(deliveries) > (SETTLED_MAX if requeue else 1):
            self.session.work(settling(self, deliveries, requeue=requeue, has_failed=has_failed, reason=reason))
            return
        with self.session.broker.dead_letters_held():
            if len(deliveries) > 1:
                finished(settling(self, deliveries, requeue=requeue, has_failed=has_failed, reason=reason))
            elif requeue:
                self.serve_returned(self.give_back([*deliveries], has_failed, reason))
            else:
                give_up(self, deque(deliveries), has_failed=has_failed)
        self.session.spend(REJECT_WORK)

    def give_back(
        self, deliveries: list[tuple[int, Delivery]], has_failed: bool = False, reason: str = ""
    ) -> Iterable[Queue]:
        """Requeue deliveries; return their queues, which are not served yet.

        `reason` is set where the client has not returned them itself.
        """
        self.count_rejected(deliveries, True, reason)
        queues = requeue_all(deliveries, has_failed=has_failed, is_lost=False)
        self.release_prefetch(deliveries)
        return queues

    def serve_returned(self, queues: Iterable[Queue]) -> None:
        """Have queues deliver what has come back."""
        # The consumers that were freed take their turn.
        self.session.broker.resume_freed_consumers()
        for queue in queues:
            queue.serve_returned()

    def count_rejected(self, deliveries: Sequence[tuple[int, Delivery]], requeue: bool, reason: str = "") -> None:
        trace = self.vhost.trace
        if trace is not None:
            for _, (queue, _, _, message) in deliveries:
                if reason:
                    trace.requeued(queue, message, reason)
                else:
                    trace.nacked(queue, message, requeue, self.session, self.number)
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
        """Take the delivery with a tag, or with `multiple` all up to it (0: all). Settle duplicates among them."""
        unacked = self.unacked
        if unacked.duplicates or (tag not in unacked.deliveries and not (multiple and tag == 0)):
            self._settle_duplicates(tag, multiple)
        if multiple:
            return unacked.take_up_to(tag)
        return [(tag, unacked.deliveries.pop(tag))] if tag in unacked.deliveries else []

    def _settle_duplicates(self, tag: int, multiple: bool) -> None:
        """Settle the duplicate with a tag, or with `multiple` all up to it. Raise PreconditionFailed if unknown."""
        unacked = self.unacked
        if tag not in unacked.duplicates and tag not in unacked.deliveries and not (multiple and tag == 0):
            raise PreconditionFailed(f"unknown delivery tag {tag}")
        taken = unacked.take_duplicates(tag, multiple)
        if self.transaction is not None:
            self.transaction.duplicates.update(taken)
        else:
            self.release_duplicates(taken)

    def release_duplicates(self, tags: Iterable[int]) -> None:
        """Free the consumers whose deliveries had timed out, now that the client has settled these tags."""
        self.session.freed_consumers.extend(self.unacked.settle_timed_out(tags))

    def limit_total(self, prefetch: int) -> None:
        """Limit the unacked deliveries of the whole channel (basic.qos, global); 0 lifts the limit."""
        self.prefetch_total = prefetch
        limit = self.limit
        if prefetch and limit is not None:
            limit.change_total(prefetch)
        elif prefetch:
            self.limit = ChannelLimit(self, prefetch, self.unacked.count + self.unacked.reserved_count)
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

    # The seam

    def deliveries(self) -> list[Delivery]:
        settled = [] if self.transaction is None else self.transaction.settled()
        return [*self.unacked.deliveries.values(), *[delivery for _, delivery in settled]]

    def unacked_messages(self) -> Iterator[tuple[Queue, Message]]:
        for queue, _, position, message in self.deliveries():
            yield queue, queue.as_kept(message, position)
        yield from self.unacked.duplicates.values()
        if self.transaction is not None:
            yield from self.transaction.duplicates.values()

    @property
    def connection(self) -> Connection:
        return self.session

    @property
    def is_confirming(self) -> bool:
        return self.confirms is not None

    @property
    def is_transactional(self) -> bool:
        return self.transaction is not None

    @property
    def messages_unacknowledged(self) -> int:
        return self.unacked.count + self.acks_uncommitted

    @property
    def messages_unconfirmed(self) -> int:
        confirms = self.confirms
        if confirms is None:
            return 0
        withheld = 0 if confirms.withheld is None else confirms.withheld.passed_count
        return self.publish_count - self.confirmed_count + withheld

    @property
    def messages_uncommitted(self) -> int:
        return len(self.transaction.publishes) if self.transaction is not None else 0

    @property
    def acks_uncommitted(self) -> int:
        return len(self.transaction.tags()) if self.transaction is not None else 0

    # Ends

    def close(self) -> None:
        """Close the channel while its connection stays open."""
        if self.confirms is not None:
            self.confirms.discard()
        self.session.broker.do_in_portions(self._close(withdraw([self])))

    def _close(self, leaving: Leaving) -> Steps[None]:
        """End all subscriptions of the channel in portions, and the channel after them."""
        broker = self.session.broker
        yield from leave(broker, leaving)
        broker.do_in_portions(coming_back(broker, [self.take_unacked(CHANNEL_CLOSED)], CHANNEL_CLOSED))
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
        # They refer to the channel, which is to be freed at once.
        self.confirms = None

    def take_unacked(self, reason: str) -> Taken:
        """Take all unacked deliveries: the channel is lost for this reason."""
        if self.transaction is not None:
            self.transaction.roll_back(self, reason)
        return self.unacked.end()
