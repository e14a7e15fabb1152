"""Faults: what a test has the broker do wrong on purpose.

A rule says what happens (`action`), when (`on`), to whom (the fields that match) and how often. Rules are asked where
something happens to a connection or a message; who asks does what they say. All of it is determined: which of the
matches are hit follows from `after`, `times`, `probability` and `seed` alone.

Without a rule nobody asks: a route that a rule concerns is not plain, a queue that one concerns has extras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.fault_rules import ACK, CONFIRM, CONNECT, DELIVER, LOGIN, NOW, OPEN, PUBLISH, fits
from amqp_broker.broker.fault_rules import Rule as Rule
from amqp_broker.errors import DoesNotExist, InvalidParameter

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message

RULES_MAX: Final = 1000
SEED_BYTES: Final = 4


class Faults:
    """The rules of a broker, in the order in which they were added.

    Each `on_…` has those that may still hit then.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rules: dict[int, Rule] = {}
        self._ids = count(1)
        self.on_connect: tuple[Rule, ...] = ()
        self.on_login: tuple[Rule, ...] = ()
        self.on_open: tuple[Rule, ...] = ()
        self.on_publish: tuple[Rule, ...] = ()
        self.on_deliver: tuple[Rule, ...] = ()
        self.on_ack: tuple[Rule, ...] = ()
        # What is neither ready nor with a consumer, since its delivery is late: by queue and position.
        self.late: dict[Queue, dict[int, LateDelivery]] = {}

    def __iter__(self) -> Iterator[Rule]:
        return iter(list(self._rules.values()))

    def __len__(self) -> int:
        return len(self._rules)

    def __getitem__(self, rule_id: int) -> Rule:
        """Raises DoesNotExist."""
        rule = self._rules.get(rule_id)
        if rule is None:
            raise DoesNotExist(f"there is no fault {rule_id}")
        return rule

    def add(self, rule: Rule) -> Rule:
        """Have a rule in force from now on; one on "now" acts at once. Raises InvalidParameter, and changes nothing."""
        if rule.id:
            raise InvalidParameter(f"the rule is in force already, as fault {rule.id}")
        rule.check()
        if rule.vhost is not None and rule.vhost not in self._broker.vhosts:
            raise InvalidParameter(f"there is no vhost '{rule.vhost}'")
        if len(self._rules) >= RULES_MAX:
            raise InvalidParameter(f"there are {RULES_MAX} faults already, which is the most there may be")
        rule.id = next(self._ids)
        rule.start(int.from_bytes(self._broker.entropy(SEED_BYTES), "big") if rule.seed is None else rule.seed)
        self._rules[rule.id] = rule
        if rule.on == NOW:
            self._act_now(rule)
        else:
            self._rules_changed()
        return rule

    def remove(self, rule_id: int) -> None:
        """End a rule, and what it does to connections: whom it blocked goes on. Raises DoesNotExist."""
        rule = self[rule_id]
        del self._rules[rule_id]
        rule.id = 0
        for connection in list(rule.afflicted):
            connection.recover(rule)
        self._rules_changed()

    def clear(self, vhost: str | None = None) -> None:
        """Remove all rules, or those of one vhost."""
        for rule in self:
            if vhost is None or rule.vhost == vhost:
                self.remove(rule.id)

    def _rules_changed(self) -> None:
        """Who is asked on what is decided anew, and publishers and queues find out whether they are concerned."""
        active = [rule for rule in self._rules.values() if not rule.is_spent]
        self.on_connect = tuple(rule for rule in active if rule.on == CONNECT)
        self.on_login = tuple(rule for rule in active if rule.on == LOGIN)
        self.on_open = tuple(rule for rule in active if rule.on == OPEN)
        self.on_publish = tuple(rule for rule in active if rule.on in (PUBLISH, CONFIRM))
        self.on_deliver = tuple(rule for rule in active if rule.on == DELIVER)
        self.on_ack = tuple(rule for rule in active if rule.on == ACK)
        for vhost in self._broker.vhosts.values():
            vhost.topology_changed()
            for queue in vhost.queues.values():
                queue.follow_faults()

    def _act_now(self, rule: Rule) -> None:
        for connection in sorted(self._broker.connections, key=lambda one: one.name):
            if not rule.matches_connection(connection):
                continue
            if rule.action == "cancel_consumer":
                for channel in list(connection.channels.values()):
                    for consumer in list(channel.consumers.values()):
                        if rule.matches_queue([consumer.queue.name]) and rule.strikes():
                            cancel(consumer)
            elif rule.strikes():
                connection.suffer(rule)

    # Asking

    def concerns_publish(self, vhost: str, exchange: str, routing_key: str, user: str) -> bool:
        """Whether a rule may have something to say to a message that is published so."""
        return any(
            (rule.vhost is None or rule.vhost == vhost)
            and (rule.user is None or fits(rule.user, user))
            and rule.matches_message(exchange, routing_key)
            for rule in self.on_publish
        )

    def concerns_queue(self, vhost: str, queue: str) -> bool:
        """Whether a rule may have something to say to what the queue delivers, or to acks of it."""
        return any(
            (rule.vhost is None or rule.vhost == vhost) and rule.matches_queue([queue])
            for rule in (*self.on_deliver, *self.on_ack)
        )

    def hits(self, rules: Iterable[Rule], matches: Callable[[Rule], bool]) -> list[Rule]:
        """Those of the rules that match and hit now."""
        hits = [rule for rule in rules if matches(rule) and rule.strikes()]
        if any(rule.is_spent for rule in hits):
            self._rules_changed()
        return hits

    def of_connection(self, rules: Iterable[Rule], connection: Connection, user: str | None = None) -> list[Rule]:
        return self.hits(rules, lambda rule: rule.matches_connection(connection, user))

    def of_message(
        self, rules: Iterable[Rule], connection: Connection, message: Message, queues: Callable[[], list[str]]
    ) -> list[Rule]:
        """Those that hit a message; `queues` tells where it goes or comes from, and is called if that matters."""
        return self.hits(
            rules,
            lambda rule: (
                rule.matches_connection(connection)
                and rule.matches_message(message.exchange, message.routing_key)
                and (rule.queue is None or rule.matches_queue(queues()))
            ),
        )

    # Deliveries

    def deliver(
        self, queue: Queue, consumer: Consumer, message: Message, delivered: Message, position: int, redelivered: bool
    ) -> None:
        """Deliver a message of a queue that a rule may concern, as `delivered`, or do with it what the rules say.

        What ends a consumer or connection happens after the queue has handed out what it is at.
        """
        rules = self.of_message(
            [rule for rule in self.on_deliver if (queue, position) not in rule.delayed],
            consumer.connection,
            message,
            lambda: [queue.name],
        )
        for rule in self.on_deliver:
            rule.delayed.discard((queue, position))
        delay_ms = max((rule.delay_ms for rule in rules if rule.action == "delay_delivery"), default=0)
        if delay_ms:
            queue.unacked_count += 1
            consumer.reserve()
            late = LateDelivery(self._broker, queue, consumer, message, delivered, position, redelivered, rules)
            self.late.setdefault(queue, {})[position] = late
            self._broker.timers.at(self._broker.now + delay_ms, late)
        else:
            consumer.deliver(delivered, position, redelivered)
            self.after_delivery(consumer, delivered, rules)

    def after_delivery(self, consumer: Consumer, delivered: Message, rules: Iterable[Rule]) -> None:
        """A message that these rules have hit is with its consumer."""
        for rule in rules:
            if rule.action == "duplicate":
                consumer.deliver_again(delivered)
            elif rule.action != "delay_delivery":
                self._broker.timers.at(self._broker.now, partial(_strike, consumer, rule))


class LateDelivery:
    """A message that is neither ready nor with its consumer, among whose unacked ones it counts already."""

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
        faults, queue, position = self._broker.faults, self._queue, self._position
        self._broker.now = now
        del faults.late[queue][position]
        if not faults.late[queue]:
            del faults.late[queue]
        if self.consumer in queue.consumers:
            queue.unacked_count -= 1
            self.consumer.deliver_reserved(self.delivered, position, self.redelivered)
            faults.after_delivery(self.consumer, self.delivered, self._rules)
            return
        position = queue.requeue(position, self.message)
        # Somebody else gets it, which is late enough.
        for rule in self._rules:
            if rule.action == "delay_delivery" and not queue.is_deleted:
                rule.delayed.add((queue, position))
        self.consumer.release()
        queue.drain()


def _strike(consumer: Consumer, rule: Rule, now: int) -> None:
    if rule.action == "cancel_consumer":
        cancel(consumer)
    else:
        consumer.connection.suffer(rule, consumer.number)


def cancel(consumer: Consumer) -> None:
    """End a subscription from the broker's side, as when its queue is deleted."""
    if consumer in consumer.queue.consumers:
        consumer.queue.unsubscribe(consumer)
        consumer.on_queue_deleted()
