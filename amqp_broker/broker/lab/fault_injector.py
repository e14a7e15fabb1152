"""The rules of faults in force, and which of them hit what happens.

A rule says what goes wrong (`action`), when (`on`), for which connections and messages, and how often. `after`,
`times`, `probability` and `seed` alone determine which matches are hits. The modules beside this one carry out a hit.

Without rules the hot path is not slowed down: only a route that a rule concerns is not plain, and only a queue that
one concerns has extras.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.lab import delivery_faults
from amqp_broker.broker.lab.dice import SEED_BYTES
from amqp_broker.broker.lab.fault_rules import (
    ACK,
    CONFIRM,
    CONNECT,
    DEAD_LETTER,
    DELIVER,
    ENDS,
    KEEPING_BACK,
    LOGIN,
    METHOD,
    NOW,
    OPEN,
    PUBLISH,
    RULES_MAX,
    Rule,
    fits,
)
from amqp_broker.broker.lab.nemesis import DURATION_MS, PACE_MS, Nemesis

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.lab.delivery_faults import DelayedDelivery
    from amqp_broker.broker.lab.method_faults import SentMethod
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost

METHODS_MAX: Final = 200
EMPTY: Final[Mapping[str, Any]] = {}


class FaultInjector:
    """The rules of a broker, in the order in which they were added.

    Each `on_…` is a tuple of the rules that may still hit at that moment.
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
        self.on_dead_letter: tuple[Rule, ...] = ()
        self.on_method: tuple[Rule, ...] = ()
        # The last methods that a rule on methods was compared with.
        self.methods: deque[SentMethod] = deque(maxlen=METHODS_MAX)
        # The last nemesis of each vhost.
        self.nemeses: dict[str, Nemesis] = {}
        # Delayed deliveries by queue and position.
        self.delayed: dict[Queue, dict[int, DelayedDelivery]] = {}
        # Consumers, channels and connections that a delivery ends once its queue has delivered what it can.
        self.ending: set[object] = set()

    def __iter__(self) -> Iterator[Rule]:
        return iter(list(self._rules.values()))

    def __len__(self) -> int:
        return len(self._rules)

    def __getitem__(self, rule_id: int) -> Rule:
        """Return the rule with this id. Raise DoesNotExist."""
        rule = self._rules.get(rule_id)
        if rule is None:
            raise DoesNotExist(f"there is no fault {rule_id}")
        return rule

    def add(self, rule: Rule) -> Rule:
        """Put a rule and those that follow it in force; one on "now" acts at once.

        Raise InvalidParameter for a rule that is not possible.
        """
        if rule.id:
            raise InvalidParameter(f"the rule is in force already, as fault {rule.id}")
        rules = rule.sequence()
        for one in rules:
            one.check()
            if one.vhost is not None and one.vhost not in self._broker.vhosts:
                raise InvalidParameter(f"there is no vhost '{one.vhost}'")
            self._check_places(one)
        if len(self._rules) + len(rules) > RULES_MAX:
            raise InvalidParameter(f"there are {len(self._rules)} faults already, and {RULES_MAX} is the most")
        for one in rules:
            one.id = next(self._ids)
            one.added_at_ms = self._broker.real_now()
            one.start(int.from_bytes(self._broker.entropy(SEED_BYTES), "big") if one.seed is None else one.seed)
            self._rules[one.id] = one
        if rule.on == NOW:
            self._act_now(rule)
        else:
            self._rules_changed()
        return rule

    def _check_places(self, rule: Rule) -> None:
        """Raise InvalidParameter for a rule that keeps back deliveries of a queue that is a stream."""
        vhosts = self._broker.vhosts.values()
        named = [
            vhost.queues[rule.queue]
            for vhost in vhosts
            if rule.action in KEEPING_BACK and rule.queue in vhost.queues and rule.vhost in (None, vhost.name)
        ]
        if named and all(queue.type == "stream" for queue in named):
            raise InvalidParameter(f"queue '{rule.queue}' is a stream, and '{rule.action}' does not apply to streams")

    def remove(self, rule_id: int) -> None:
        """Remove a rule and those that follow it, and end their effects on connections. Raise DoesNotExist."""
        self._remove([self[rule_id]])

    def release(self, rule_id: int, count: int) -> int:
        """Make the oldest deliveries that a rule holds, and the next ones if they are too few.

        Return how many it held. Raise DoesNotExist, and InvalidParameter for a rule that holds no deliveries.
        """
        rule = self[rule_id]
        if rule.action != "hold_delivery":
            raise InvalidParameter(f"fault {rule_id} is '{rule.action}', and only 'hold_delivery' holds deliveries")
        if count < 1:
            raise InvalidParameter(f"count must be at least 1, not {count}")
        return delivery_faults.release(self._broker, rule, count)

    def begin_nemesis(
        self,
        vhost: VHost,
        *,
        seed: int | None = None,
        duration_ms: int = DURATION_MS,
        pace_ms: int = PACE_MS,
        actions: Sequence[str] = (),
    ) -> Nemesis:
        """Begin a nemesis in a vhost (`Nemesis`). Raise InvalidParameter, also if one is at work there."""
        former = self.nemeses.get(vhost.name)
        if former is not None and not former.is_over:
            raise InvalidParameter(f"a nemesis is at work in {vhost}, with seed {former.seed}")
        nemesis = Nemesis(self._broker, vhost, seed=seed, duration_ms=duration_ms, pace_ms=pace_ms, actions=actions)
        self.nemeses[vhost.name] = nemesis
        return nemesis

    def clear(self, vhost: str | None = None) -> None:
        """Remove all rules, or those of one vhost, and end their nemeses."""
        for name in [name for name in self.nemeses if vhost in (None, name)]:
            self.nemeses.pop(name).end()
        self._remove(rule for rule in self if vhost in (None, rule.vhost))

    def _remove(self, rules: Iterable[Rule]) -> None:
        removed = dict.fromkeys(rules)
        # A rule is behind the one that it follows.
        for rule in self:
            if rule.follows in removed:
                removed[rule] = None
        for rule in removed:
            del self._rules[rule.id]
            rule.id = 0
            delivery_faults.release(self._broker, rule)
            for connection in list(rule.affected):
                connection.end_fault(rule)
        self._rules_changed()

    def _rules_changed(self) -> None:
        """Sort the active rules by moment, and find out again which of them concern routes and queues."""
        before = self._of_routes_and_queues()
        active = [rule for rule in self._rules.values() if rule.is_active]
        self.on_connect = tuple(rule for rule in active if rule.on == CONNECT)
        self.on_login = tuple(rule for rule in active if rule.on == LOGIN)
        self.on_open = tuple(rule for rule in active if rule.on == OPEN)
        self.on_publish = tuple(rule for rule in active if rule.on in (PUBLISH, CONFIRM))
        self.on_deliver = tuple(rule for rule in active if rule.on == DELIVER)
        self.on_ack = tuple(rule for rule in active if rule.on == ACK)
        self.on_dead_letter = tuple(rule for rule in active if rule.on == DEAD_LETTER)
        self.on_method = tuple(rule for rule in active if rule.on == METHOD)
        if not any(rule.on == METHOD for rule in self):
            self.methods.clear()
        if self._of_routes_and_queues() == before:
            return
        for vhost in self._broker.vhosts.values():
            vhost.topology_changed()
            for queue in vhost.queues.values():
                queue.follow_faults()

    def _of_routes_and_queues(self) -> tuple[Rule, ...]:
        return (*self.on_publish, *self.on_deliver, *self.on_ack)

    def _act_now(self, rule: Rule) -> None:
        for connection in sorted(self._broker.connections, key=lambda one: one.name):
            if not rule.matches_connection(connection):
                continue
            if rule.action == "cancel_consumer":
                for channel in list(connection.channels.values()):
                    for consumer in list(channel.consumers.values()):
                        if rule.matches_queue([consumer.queue.name]) and rule.count_match():
                            self.report([rule], connection, None, consumer.queue.name)
                            delivery_faults.cancel(consumer)
            elif connection.can_show(rule) and rule.count_match():
                self.report([rule], connection, None)
                connection.apply_fault(rule)

    # Which rules hit

    def concerns_publish(self, vhost: str, exchange: str, routing_key: str, user: str) -> bool:
        """Return whether a rule may hit a message that is published in this way."""
        return bool(self.on_publish) and any(
            (rule.vhost is None or rule.vhost == vhost)
            and (rule.user is None or fits(rule.user, user))
            and rule.matches_message(exchange, routing_key)
            for rule in self.on_publish
        )

    def concerns_queue(self, vhost: str, queue: str) -> bool:
        """Return whether a rule may hit deliveries of the queue, or their acks."""
        return any(
            (rule.vhost is None or rule.vhost == vhost) and rule.matches_queue([queue])
            for rule in (*self.on_deliver, *self.on_ack)
        )

    def hits(self, rules: Iterable[Rule], matches: Callable[[Rule], bool], *, one: bool = False) -> list[Rule]:
        """Return the rules that match and hit now, or (`one`) the first of them.

        With `one`, no match is counted for the rules after it, because the first hides their effect.
        """
        hits: list[Rule] = []
        for rule in rules:
            if matches(rule) and rule.count_match():
                hits.append(rule)
                if one:
                    break
        if any(rule.is_spent for rule in hits):
            self._rules_changed()
        return hits

    def hits_of_connection(self, rules: Iterable[Rule], connection: Connection, user: str | None = None) -> list[Rule]:
        """Return the rules that hit a connection; `user` is the name it gives before its login.

        A rule that ends the connection hits it alone.
        """

        def matches(rule: Rule) -> bool:
            return rule.matches_connection(connection, user)

        hits = self.hits([rule for rule in rules if rule.action in ENDS], matches, one=True)
        if not hits:
            lasting = [rule for rule in rules if rule.action not in ENDS and connection.can_show(rule)]
            hits = self.hits(lasting, matches)
        self.report(hits, connection, None)
        return hits

    def hits_of_message(
        self,
        rules: Iterable[Rule],
        connection: Connection,
        message: Message,
        queues: Callable[[], list[str]],
        *,
        one: bool = False,
    ) -> list[Rule]:
        """Return the rules that hit a message; `queues` returns its queues, and is called if a rule needs them.

        `one` is that of `hits`. The caller reports them.
        """
        return self.hits(
            rules,
            lambda rule: (
                rule.matches_connection(connection)
                and rule.matches_message(message.exchange, message.routing_key)
                and (rule.queue is None or rule.matches_queue(queues()))
            ),
            one=one,
        )

    @staticmethod
    def report(
        hits: Iterable[Rule],
        connection: Connection,
        message: Message | None,
        queue: str | None = None,
        more: Mapping[str, Any] = EMPTY,
    ) -> None:
        """Tell the trace what has hit a message, or (None) the connection itself.

        A hit at a queue has its name, and `more` is added to its facts. A connection that has not opened a vhost yet
        has no trace.
        """
        vhost = connection.vhost
        if vhost is None or vhost.trace is None:
            return
        client = {"connection": connection.name, "user": "" if connection.user is None else connection.user.name}
        for rule in hits:
            vhost.trace.faulted(connection.name, {**client, **facts_of(rule), **more}, message, queue)

    def drops(self, queue: Queue, dead: Message, targets: Iterable[Queue]) -> bool:
        """Return whether a rule has a dead letter of the queue reach none of its targets."""
        vhost, names = queue.vhost, [queue.name, *(target.name for target in targets)]
        hits = self.hits(
            self.on_dead_letter,
            lambda rule: (
                rule.vhost in (None, vhost.name)
                and rule.matches_message(dead.exchange, dead.routing_key)
                and rule.matches_queue(names)
            ),
            one=True,
        )
        if vhost.trace is not None:
            for rule in hits:
                vhost.trace.faulted("", {"connection": "", "user": "", **facts_of(rule)}, dead, queue.name)
        return bool(hits)

    def hits_of_ack(self, connection: Connection, message: Message, queue: Queue) -> list[Rule]:
        """Return the rule that hits the ack of a message, if one does."""
        hits = self.hits_of_message(self.on_ack, connection, message, lambda: [queue.name], one=True)
        self.report(hits, connection, message, queue.name)
        return hits

    def deliver(
        self, queue: Queue, consumer: Consumer, message: Message, delivered: Message, position: int, redelivered: bool
    ) -> None:
        """Deliver a message of a queue that a rule may concern; see `delivery_faults.deliver`."""
        delivery_faults.deliver(self._broker, queue, consumer, message, delivered, position, redelivered)

    def kept_back(self, queue: Queue) -> list[Message]:
        """Return the messages of a queue whose deliveries rules keep back."""
        return [delayed.handover.message for delayed in self.delayed.get(queue, {}).values()]

    def deliver_from_stream(self, queue: Queue, consumer: Consumer, message: Message, position: int) -> None:
        """Deliver a message of a stream that a rule may concern. None keeps it back: a stream has its order."""
        handover = delivery_faults.Handover(queue, consumer, message, message, position, redelivered=False)
        delivery_faults.arrive(self._broker, handover)


def facts_of(rule: Rule) -> dict[str, Any]:
    """Return what an event says about a rule that has hit."""
    return {"action": rule.action, "rule_id": rule.id, "on": rule.on, "parameters": rule.parameters()}
