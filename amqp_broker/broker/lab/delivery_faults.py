"""Faults of a delivery and of its ack."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from amqp_broker.broker.lab.fault_rules import ENDS, KEEPING_BACK
from amqp_broker.broker.queues.leaving_reasons import CANCELLED

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.lab.fault_injector import FaultInjector
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.session.channel.channel import Channel


class Handover(NamedTuple):
    """A message of a queue that its consumer gets as `delivered`."""

    queue: Queue
    consumer: Consumer
    message: Message
    delivered: Message
    position: int
    redelivered: bool


def deliver(
    broker: Broker,
    queue: Queue,
    consumer: Consumer,
    message: Message,
    delivered: Message,
    position: int,
    redelivered: bool,
) -> None:
    """Deliver a message of a queue that a rule may concern, as `delivered`, or carry out the rules that hit it.

    A rule that ends a consumer or a connection is carried out after the queue's current deliveries.
    """
    injector, handover = broker.faults, Handover(queue, consumer, message, delivered, position, redelivered)
    delays = [
        rule for rule in injector.on_deliver if rule.action in KEEPING_BACK and (queue, position) not in rule.delayed
    ]
    hits = injector.hits(delays, lambda rule: keeps_back(rule, handover), one=True)
    for rule in injector.on_deliver:
        rule.delayed.discard((queue, position))
    if not hits:
        arrive(broker, handover)
        return
    [rule] = hits
    injector.report(hits, connection_of(consumer), message, queue.name)
    queue.note_change()
    queue.unacked_count += 1
    consumer.reserve()
    delayed = DelayedDelivery(broker, handover, rule)
    injector.delayed.setdefault(queue, {})[position] = delayed
    if rule.action == "hold_delivery":
        rule.held.append(delayed)
    else:
        broker.timers.at(broker.now + rule.delay_ms, delayed)


def keeps_back(rule: Rule, handover: Handover) -> bool:
    """Return whether a rule matches a delivery that was not released before it came."""
    message = handover.message
    is_its = (
        rule.matches_connection(connection_of(handover.consumer))
        and rule.matches_message(message.exchange, message.routing_key)
        and rule.matches_queue([handover.queue.name])
    )
    if is_its and rule.allowed:
        rule.allowed -= 1
        return False
    return is_its


def release(broker: Broker, rule: Rule, count: int | None = None) -> int:
    """Make deliveries that the rule holds, the oldest first: `count` of them or all; return their number.

    Of the deliveries that come later, it holds as many fewer as there are too few of them now.
    """
    found = len(rule.held) if count is None else min(count, len(rule.held))
    if count is not None:
        rule.allowed += count - found
    broker.do_in_portions(_making(broker, [rule.held.popleft() for _ in range(found)]))
    return found


def _making(broker: Broker, deliveries: Iterable[DelayedDelivery]) -> Steps[None]:
    for delayed in deliveries:
        broker.timers.at(broker.now, delayed)
        yield


def arrive(broker: Broker, handover: Handover, *, is_late: bool = False) -> None:
    """Deliver a message that is not delayed, or (`is_late`) no longer, and carry out the rules that hit it.

    The trace learns of a delivery when it is made.
    """
    queue, consumer, message, delivered, position, redelivered = handover
    injector, connection = broker.faults, connection_of(consumer)
    copies = [rule for rule in injector.on_deliver if rule.action == "duplicate"]
    rules = injector.hits_of_message(copies, connection, message, lambda: [queue.name])
    # Another rule has no effect on what is about to end.
    places = (consumer, (connection, consumer.number), connection)
    if injector.ending.isdisjoint(places):
        ends = [rule for rule in injector.on_deliver if rule.action in ENDS or rule.action == "cancel_consumer"]
        rules += injector.hits_of_message(ends, connection, message, lambda: [queue.name], one=True)
    injector.report(rules, connection, message, queue.name)
    if is_late:
        consumer.deliver_reserved(delivered, position, redelivered)
    else:
        consumer.deliver(delivered, position, redelivered)
    if queue.vhost.trace is not None:
        queue.vhost.trace.delivered_to(consumer, delivered, redelivered)
    for rule in rules:
        if rule.action == "duplicate":
            consumer.deliver_again(delivered)
        else:
            place = places[0 if rule.action == "cancel_consumer" else 1 if rule.action == "close_channel" else 2]
            injector.ending.add(place)
            broker.timers.at(broker.now, partial(strike, injector, consumer, rule, place))


def connection_of(consumer: Consumer) -> Connection:
    """Return the connection of a consumer as rules see it; its queue knows only the peer."""
    return cast("Connection", consumer.connection)


def strike(injector: FaultInjector, consumer: Consumer, rule: Rule, place: object, now: int) -> None:
    """Carry out a rule that ends a consumer, its channel or its connection, which is the `place`."""
    injector.ending.discard(place)
    if rule.action == "cancel_consumer":
        cancel(consumer)
    else:
        connection_of(consumer).apply_fault(rule, consumer.number)


def cancel(consumer: Consumer) -> None:
    """End a subscription from the broker's side, as when its queue is deleted."""
    if consumer in consumer.queue.consumers:
        consumer.queue.unsubscribe(consumer)
        consumer.on_queue_deleted()
        if consumer.in_flight:
            consumer.queue.keep_leaver(consumer)


class DelayedDelivery:
    """A delivery that is delayed or held. The message is neither ready nor with its consumer, and counts as unacked."""

    __slots__ = ("_broker", "_rule", "handover")

    def __init__(self, broker: Broker, handover: Handover, rule: Rule) -> None:
        self._broker, self._rule = broker, rule
        self.handover = handover

    def __call__(self, now: int) -> None:
        injector, (queue, consumer, message, _, position, _) = self._broker.faults, self.handover
        self._broker.now = now
        del injector.delayed[queue][position]
        if not injector.delayed[queue]:
            del injector.delayed[queue]
        # A deleted queue has reported the message as dropped; its consumers leave in portions.
        if consumer in queue.consumers and not queue.is_deleted:
            queue.unacked_count -= 1
            arrive(self._broker, self.handover, is_late=True)
            return
        if queue.vhost.trace is not None:
            queue.vhost.trace.requeued(queue, message, CANCELLED)
        position = queue.requeue(position, message)
        # Another consumer gets the message, which is late enough.
        if not queue.is_deleted:
            self._rule.delayed.add((queue, position))
        consumer.release()
        queue.serve_returned()


def effective_acks(channel: Channel, deliveries: Collection[tuple[int, Delivery]]) -> Collection[tuple[int, Delivery]]:
    """Return the acks that no rule drops. The deliveries of the others stay unacked.

    Rules do not drop acks for a deleted queue: it is not in the vhost any more.
    """
    injector: FaultInjector = channel.session.broker.faults
    if not injector.on_ack:
        return deliveries
    effective: list[tuple[int, Delivery]] = []
    dropped: list[tuple[int, Delivery]] = []
    for tag, delivery in deliveries:
        queue, message = delivery[0], delivery[3]
        rules = [] if queue.is_deleted else injector.hits_of_ack(channel.session, message, queue)
        (dropped if rules else effective).append((tag, delivery))
    if dropped:
        channel.unacked.put_back(dropped)
        if channel.unacked.deadlines is not None:
            channel.unacked.deadlines.resume()
    return effective
