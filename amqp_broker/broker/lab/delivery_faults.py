"""Faults of a delivery and of its ack."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.lab.fault_injector import FaultInjector
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel.channel import Channel


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
    injector = broker.faults
    rules = injector.hits_of_message(
        [rule for rule in injector.on_deliver if (queue, position) not in rule.delayed],
        connection_of(consumer),
        message,
        lambda: [queue.name],
    )
    if rules:
        injector.report(rules, connection_of(consumer), message, queue.name)
    for rule in injector.on_deliver:
        rule.delayed.discard((queue, position))
    delay_ms = max((rule.delay_ms for rule in rules if rule.action == "delay_delivery"), default=0)
    if delay_ms:
        queue.note_change()
        queue.unacked_count += 1
        consumer.reserve()
        delayed = DelayedDelivery(broker, queue, consumer, message, delivered, position, redelivered, rules)
        injector.delayed.setdefault(queue, {})[position] = delayed
        broker.timers.at(broker.now + delay_ms, delayed)
    else:
        consumer.deliver(delivered, position, redelivered)
        after_delivery(broker, consumer, delivered, rules)


def after_delivery(broker: Broker, consumer: Consumer, delivered: Message, rules: Iterable[Rule]) -> None:
    """Carry out the rules that have hit a message, now that its consumer has it."""
    for rule in rules:
        if rule.action == "duplicate":
            consumer.deliver_again(delivered)
        elif rule.action != "delay_delivery":
            broker.timers.at(broker.now, partial(strike, consumer, rule))


def connection_of(consumer: Consumer) -> Connection:
    """Return the connection of a consumer as rules see it; its queue knows only the peer."""
    return cast("Connection", consumer.connection)


def strike(consumer: Consumer, rule: Rule, now: int) -> None:
    """Carry out a rule that ends a consumer, its channel or its connection."""
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
    """A delayed delivery: the message is neither ready nor with its consumer, and counts as unacked."""

    __slots__ = ("_broker", "_position", "_queue", "_rules", "consumer", "delivered", "message", "redelivered")

    def __init__(
        self,
        broker: Broker,
        queue: Queue,
        consumer: Consumer,
        message: Message,
        delivered: Message,
        position: int,
        redelivered: bool,
        rules: list[Rule],
    ) -> None:
        self._broker, self._queue, self._position, self._rules = broker, queue, position, rules
        self.consumer = consumer
        self.message = message
        self.delivered = delivered
        self.redelivered = redelivered

    def __call__(self, now: int) -> None:
        injector, queue, position = self._broker.faults, self._queue, self._position
        self._broker.now = now
        del injector.delayed[queue][position]
        if not injector.delayed[queue]:
            del injector.delayed[queue]
        if self.consumer in queue.consumers:
            queue.unacked_count -= 1
            self.consumer.deliver_reserved(self.delivered, position, self.redelivered)
            after_delivery(self._broker, self.consumer, self.delivered, self._rules)
            return
        position = queue.requeue(position, self.message)
        # Another consumer gets the message, which delays it enough.
        for rule in self._rules:
            if rule.action == "delay_delivery" and not queue.is_deleted:
                rule.delayed.add((queue, position))
        self.consumer.release()
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
    return effective
