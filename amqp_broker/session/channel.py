"""A channel: delivery tags and what is unacked under them, publish numbers and what is unconfirmed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from pamqp import commands

from amqp_broker.broker import channel as seam
from amqp_broker.errors import NotImplemented_, PreconditionFailed
from amqp_broker.message import Message
from amqp_broker.protocol import wire
from amqp_broker.protocol.methods import AccessRequest, AccessRequestOk
from amqp_broker.session import faults

if TYPE_CHECKING:
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.reply_queue import ReplyQueue
    from amqp_broker.broker.route import Route
    from amqp_broker.message import Traits
    from amqp_broker.protocol.content import ContentAssembly
    from amqp_broker.session.faults import Withheld
    from amqp_broker.session.session import Session
    from amqp_broker.session.transactions import Transaction

# What waits to be settled: its queue, its consumer (None for basic.get), its position and itself.
# A tuple, because one is made per delivery.
Delivery: TypeAlias = "tuple[Queue, Consumer | None, int, Message]"

# `Channel.mode`: at most one of confirms and transactions can be selected.
PLAIN: Final = 0
CONFIRMING: Final = 1
TRANSACTIONAL: Final = 2

NOTHING_WITHHELD: Final[list[int]] = []


class Channel(seam.Channel):
    """An open channel of a session.

    `unacked` maps delivery tags, in the order in which they were given, to what they stand for.
    """

    # What a fault does not confirm with the rest, and how many deliveries are late by one, and have their place among
    # what may be unacked. (Of the class: with more than 30 attributes of its own an object is slower.)
    withheld: Withheld | None = None
    late_count = 0

    def __init__(self, session: Session, number: int) -> None:
        assert session.vhost is not None
        super().__init__(session.vhost, number)
        self.prefetch = session.broker.config.default_consumer_prefetch
        self.session = session
        self.assembly: ContentAssembly | None = None
        self.last_queue = ""

        self.last_tag = 0
        # (when, the last tag then), for the consumer timeout.
        self.tag_marks: deque[tuple[int, int]] = deque()
        self.unacked: dict[int, Delivery] = {}
        # What direct replies come through, from when the channel first consumed them.
        self.reply_queue: ReplyQueue | None = None
        # Counted only while there is a `prefetch_total`; gets count if they were before it.
        self.in_flight = 0
        self.in_flight_since_tag = 0

        self.mode = PLAIN
        # What was published up to here is confirmed, or waits for a commit of the journal.
        self.noted_count = 0
        # Publish numbers of this read that a queue would not take.
        self.rejected: list[int] = []
        # What waits for a commit: (batch of the journal, last publish number, those that a queue would not take).
        self.uncommitted: deque[tuple[int, int, list[int]]] = deque()
        # What is unconfirmed, by publish number; kept only for a trace.
        self.traced: dict[int, Message] = {}
        self.transaction: Transaction | None = None

    # Publishing

    def publish(self, route: Route, content: bytes, traits: Traits) -> None:
        """Push a message to its queues: the whole of publishing where route and traits are plain."""
        if route is not self.route:
            self.take_route(route)
        message = Message(route.address, content, self.number, traits.is_persistent)
        if traits.expiration_ms is not None:
            for queue in route.queues:
                queue.push_with_extras(message, traits.expiration_ms)
        elif route.only_queue is not None:
            route.only_queue.push(message)
        else:
            for queue in route.queues:
                queue.push(message)
        if self.mode and self.publish_count == self.noted_count:
            self.session.confirming.append(self)
        self.publish_count += 1

    def count_publish(self) -> None:
        """Give the message at hand the next publish number; what becomes of its confirm is seen after the read."""
        if self.mode and self.publish_count == self.noted_count:
            self.session.confirming.append(self)
        self.publish_count += 1

    def note_publishes(self, is_told: bool) -> None:
        """Confirm what was published in this read, or when the journal has committed what it was told of it."""
        rejected, self.rejected = self.rejected, []
        self.noted_count = self.publish_count
        if is_told or self.uncommitted:
            # What the journal was not told of waits for what was published before it, and for no later batch: that
            # may have nothing in it, and would not come.
            batch = self.session.broker.journal.batch if is_told else self.uncommitted[-1][0]
            self.uncommitted.append((batch, self.publish_count, rejected))
        else:
            self._send_confirms(self.publish_count, rejected)

    def confirm_committed(self, committed: int) -> None:
        """Confirm what waited for this batch of the journal, or an earlier one."""
        uncommitted, until, rejected = self.uncommitted, 0, []
        while uncommitted and uncommitted[0][0] <= committed:
            _, until, more = uncommitted.popleft()
            rejected += more
        if until:
            self._send_confirms(until, rejected)

    def _send_confirms(self, until: int, rejected: list[int]) -> None:
        """Confirm all publish numbers up to one: a single ack, multiple if it stands for several."""
        count = until - self.confirmed_count
        withheld = NOTHING_WITHHELD if self.withheld is None else self.withheld.pass_over(self, until)
        if count:
            self.count_confirms(until, sorted([*rejected, *withheld]) if withheld else rejected)
        if self.traced:
            self._trace_confirms(until, rejected, withheld)
        if rejected or withheld:
            self._send_mixed_confirms(until, rejected, withheld)
        elif count:
            self.session.send_bytes(wire.ack_frame(self.number, until, count > 1))
        self.confirmed_count = until

    def _trace_confirms(self, until: int, rejected: list[int], withheld: list[int]) -> None:
        trace = self.vhost.trace
        for number in [number for number in self.traced if number <= until]:
            message = self.traced.pop(number)
            if trace is not None and number not in withheld:
                trace.confirmed(self.session, self.number, message, number, number not in rejected)

    def _send_mixed_confirms(self, until: int, rejected: list[int], withheld: list[int]) -> None:
        """Acks, then nacks, in the shape that RabbitMQ gives them (rabbit_channel.erl, coalesce_and_send)."""
        accepted = sorted(set(range(self.confirmed_count + 1, until + 1)).difference(rejected, withheld))
        if len(accepted) == 1:
            self.session.send_bytes(wire.ack_frame(self.number, accepted[0], False))
        else:
            self._send_coalesced(wire.ack_frame, accepted, sorted([*rejected, *withheld]))
        self._send_coalesced(wire.nack_frame, rejected, sorted([*accepted, *withheld]))

    def _send_coalesced(
        self, make_frame: Callable[[int, int, bool], bytes], numbers: list[int], others: list[int]
    ) -> None:
        """One multiple frame for the numbers before all others, and a frame each for the rest."""
        before = [number for number in numbers if not others or number < others[0]]
        if before:
            self.session.send_bytes(make_frame(self.number, before[-1], True))
        for number in numbers[len(before) :]:
            self.session.send_bytes(make_frame(self.number, number, False))

    # Settling

    def ack(self, tag: int, multiple: bool) -> None:
        """basic.ack. Raises PreconditionFailed for a tag that is not unacked."""
        if multiple or self.mode == TRANSACTIONAL:
            deliveries = self._take(tag, multiple)
            if self.transaction is not None:
                self.transaction.acks.extend(deliveries)
                return
            if self.session.broker.faults.on_ack:
                deliveries = faults.heard_acks(self, deliveries)
            for _, settled in deliveries:
                self.finish(settled)
            self.let_consumers_take(deliveries)
            return
        delivery = self.unacked.pop(tag, None)
        if delivery is None:
            raise PreconditionFailed(f"unknown delivery tag {tag}")
        queue, consumer, position, message = delivery
        if queue.has_extras:
            if queue.is_faulty and not faults.heard_acks(self, [(tag, delivery)]):
                return
            queue.forget(position, message)
            if queue.vhost.trace is not None:
                queue.vhost.trace.acked(queue, message, self.session, self.number)
        queue.unacked_count -= 1
        if self.prefetch_total:
            self._leave_flight(tag, consumer)
        if consumer is not None:
            consumer.in_flight -= 1
            if consumer.is_full:
                self._make_room(consumer)
        else:
            self.count_ack(queue)

    def reject(self, tag: int, multiple: bool, requeue: bool, has_failed: bool = False) -> None:
        """basic.nack, and basic.reject (`has_failed`). Raises PreconditionFailed for a tag that is not unacked."""
        deliveries = self._take(tag, multiple)
        if self.transaction is not None:
            self.transaction.rejects.extend(((requeue, has_failed), delivery) for delivery in deliveries)
            return
        self.settle_rejected(deliveries, requeue, has_failed)

    def settle_rejected(self, deliveries: list[tuple[int, Delivery]], requeue: bool, has_failed: bool = False) -> None:
        if self.vhost.trace is not None:
            for _, (queue, _, _, message) in deliveries:
                self.vhost.trace.nacked(queue, message, requeue, self.session, self.number)
        for _, (_, consumer, _, _) in deliveries:
            if consumer is not None:
                consumer.refused += 1
        if not requeue:
            for _, (queue, _, position, message) in deliveries:
                queue.reject(position, message)
            self.let_consumers_take(deliveries)
            return
        for _, (queue, _, position, message) in deliveries:
            if has_failed:
                queue.note_failure(position)
            queue.requeue(position, message)
        self.let_consumers_take(deliveries)
        for queue in {delivery[0]: None for _, delivery in deliveries}:
            queue.drain()

    def finish(self, delivery: Delivery) -> None:
        """The message is done with."""
        queue, consumer, position, message = delivery
        queue.unacked_count -= 1
        queue.forget(position, message)
        if consumer is None:
            self.count_ack(queue)
        if self.vhost.trace is not None:
            self.vhost.trace.acked(queue, message, self.session, self.number)

    def let_consumers_take(self, deliveries: list[tuple[int, Delivery]]) -> None:
        """These deliveries no longer count against anybody's prefetch."""
        for tag, (_, consumer, _, _) in deliveries:
            if self.prefetch_total:
                self._leave_flight(tag, consumer)
            if consumer is not None:
                consumer.in_flight -= 1
                if consumer.is_full:
                    self._make_room(consumer)

    def _make_room(self, consumer: Consumer) -> None:
        """Something of a full consumer was settled: it can take again, if not now, then at the end of the read."""
        consumer.is_full = False
        if not consumer.is_taking:
            self.session.freed.append(consumer)

    def _take(self, tag: int, multiple: bool) -> list[tuple[int, Delivery]]:
        """Take a tag, or with `multiple` all up to it (0: all), out of what is unacked."""
        unacked = self.unacked
        if tag not in unacked and not (multiple and tag == 0):
            raise PreconditionFailed(f"unknown delivery tag {tag}")
        if not multiple:
            return [(tag, unacked.pop(tag))]
        tags = []
        for other in unacked:
            if tag and other > tag:
                break
            tags.append(other)
        return [(other, unacked.pop(other)) for other in tags]

    # The limit of the channel as a whole

    def has_room(self) -> bool:
        return not self.prefetch_total or self.in_flight < self.prefetch_total

    def enter_flight(self) -> None:
        """A consumer got a message that it has to settle, while the channel has a limit."""
        self.in_flight += 1
        if self.in_flight >= self.prefetch_total:
            self.suspend_consumers()

    def _leave_flight(self, tag: int, consumer: Consumer | None) -> None:
        if consumer is not None or tag <= self.in_flight_since_tag:
            self.leave_flight()

    def leave_flight(self) -> None:
        """What counted against the limit of the channel does not any more."""
        self.in_flight -= 1
        if self.in_flight == self.prefetch_total - 1:
            self.resume_consumers()

    def limit_total(self, prefetch: int) -> None:
        """basic.qos global: limit what may be unacked on the channel; 0 lifts the limit."""
        self.prefetch_total = prefetch
        self.in_flight = len(self.unacked) + self.late_count
        if self.transaction is not None:
            # What is not committed is not settled.
            self.in_flight += len(self.transaction.acks) + len(self.transaction.rejects)
        self.in_flight_since_tag = self.last_tag
        self.suspend_consumers()
        self.resume_consumers()

    # Consumers

    def suspend_consumers(self) -> None:
        """Those that can no longer take stop taking."""
        for consumer in self.consumers.values():
            if consumer.is_taking and not consumer.can_take():
                consumer.queue.suspend(consumer)

    def resume_consumers(self) -> None:
        """Those that can take again queue up for it."""
        for consumer in list(self.consumers.values()):
            if not consumer.is_taking and consumer.can_take():
                consumer.queue.resume(consumer)

    @property
    def reply_name(self) -> str | None:
        """Where direct replies to this channel must be published to; None if it does not consume them."""
        queue = self.reply_queue
        return None if queue is None or queue.is_deleted else queue.name

    def remove_consumers(self) -> None:
        """End all subscriptions of the channel."""
        while self.consumers:
            consumer = self.drop_consumer(next(reversed(self.consumers)))
            assert consumer is not None
            consumer.queue.unsubscribe(consumer)

    # What others see

    def unacked_messages(self) -> Iterator[tuple[Queue, Message]]:
        deliveries = list(self.unacked.values())
        if self.transaction is not None:
            deliveries += [delivery for _, delivery in self.transaction.acks]
            deliveries += [delivery for _, (_, delivery) in self.transaction.rejects]
        for queue, _, _, message in deliveries:
            yield queue, message

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
        return len(self.unacked) + self.acks_uncommitted

    @property
    def messages_unconfirmed(self) -> int:
        withheld = 0 if self.withheld is None else self.withheld.passed_count
        return self.publish_count - self.confirmed_count + withheld if self.is_confirming else 0

    @property
    def messages_uncommitted(self) -> int:
        return len(self.transaction.publishes) if self.transaction is not None else 0

    @property
    def acks_uncommitted(self) -> int:
        transaction = self.transaction
        return len(transaction.acks) + len(transaction.rejects) if transaction is not None else 0

    # Ends

    def close(self) -> None:
        # Nobody hears of it any more.
        self.uncommitted.clear()
        self.remove_consumers()
        self.give_back()
        self.end()
        self.session.broker.advice.on_channel_closed(self)

    def end(self) -> None:
        """The channel is closed: what it has counted is told, and that it is closed."""
        self.collect()
        self.vhost.count_routes()
        self.session.broker.advice.on_channel_ended(self)
        self.session.broker.counters.channels_closed += 1
        self.session.broker.events.channel_closed(self.session, self.number)

    def give_back(self) -> None:
        """All that is unacked goes back to its place."""
        if self.transaction is not None:
            self.transaction.roll_back(self)
        deliveries = sorted(self.unacked.items())
        self.unacked.clear()
        for _, (queue, _, position, message) in deliveries:
            queue.note_failure(position)
            queue.requeue(position, message)
        for queue in {delivery[0]: None for _, delivery in deliveries}:
            queue.drain()


def access_request(channel: Channel, method: AccessRequest) -> None:
    """Everybody may; what a user may really do is decided where he does it."""
    ok = AccessRequestOk()
    ok.ticket = 1  # type: ignore[attr-defined] # a slot
    channel.session.send(channel.number, ok)


def flow(channel: Channel, method: commands.Channel.Flow) -> None:
    if not method.active:
        raise NotImplemented_("active=false")
    channel.session.send(channel.number, commands.Channel.FlowOk(True))


def close(channel: Channel, method: commands.Channel.Close) -> None:
    session = channel.session
    del session.channels[channel.number]
    if channel in session.confirming:
        session.confirming.remove(channel)
        session.note_publishes(channel)
    channel.close()
    session.send(channel.number, commands.Channel.CloseOk())


def confirm_select(channel: Channel, method: commands.Confirm.Select) -> None:
    if channel.mode == TRANSACTIONAL:
        raise PreconditionFailed("cannot switch from tx to confirm mode")
    if channel.mode == PLAIN:
        # Numbers start here.
        channel.take_route(channel.route)
        channel.publish_count = channel.run_start = 0
    channel.mode = CONFIRMING
    if not method.nowait:
        channel.session.send(channel.number, commands.Confirm.SelectOk())
