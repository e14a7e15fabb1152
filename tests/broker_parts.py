"""Parts of a broker without sessions, to test the domain directly.

queue = new_queue()
collector = CollectingConsumer(queue, prefetch=1).start()
queue.push(new_message(b"one"))
assert collector.bodies == [b"one"]
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.client_connection import ClientConnection, Connection
from amqp_broker.broker.durability.journal import Journal
from amqp_broker.broker.exchanges.exchange import Destination, Exchange, ExchangeDeclaration
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.consumer import Consumer, ConsumerAttributes
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.routing.route import Route
from amqp_broker.broker.vhost import VHost
from amqp_broker.settings.settings import Settings


class Delivery(NamedTuple):
    """A message that a consumer has received."""

    message: Message
    position: int
    redelivered: bool


class CollectingConsumer(Consumer):
    """A consumer that collects deliveries: all of them in `taken`, and unsettled ones in `held`."""

    def __init__(
        self,
        queue: Queue,
        *,
        connection: Connection | None = None,
        tag: str = "collector",
        no_ack: bool = False,
        is_exclusive: bool = False,
        prefetch: int = 0,
        priority: int = 0,
        arguments: fields.Table | None = None,
    ) -> None:
        attributes = ConsumerAttributes(tag, arguments or {}, no_ack, is_exclusive, prefetch, priority)
        super().__init__(connection or new_connection(), queue, attributes)
        self.taken: list[Delivery] = []
        self.held: list[Delivery] = []
        self.has_lost_queue = False

    def can_take(self) -> bool:
        return not self.prefetch or self.in_flight < self.prefetch

    def deliver(self, message: Message, position: int, redelivered: bool) -> None:
        delivery = Delivery(message, position, redelivered)
        self.taken.append(delivery)
        if self.no_ack:
            self.queue.forget(position, message)
            return
        self.held.append(delivery)
        self.queue.unacked_count += 1
        self.in_flight += 1
        self.is_full = self.in_flight == self.prefetch

    def reserve(self) -> None:
        pass

    def release(self) -> None:
        pass

    def deliver_again(self, message: Message) -> None:
        self.taken.append(Delivery(message, -1, True))

    def on_queue_deleted(self) -> None:
        self.has_lost_queue = True

    def start(self) -> CollectingConsumer:
        """Subscribe, and receive ready messages."""
        self.queue.subscribe(self)
        self.queue.resume(self)
        return self

    def stop(self) -> None:
        """Unsubscribe; unsettled deliveries stay unsettled."""
        self.queue.unsubscribe(self)

    def ack(self, index: int = 0) -> None:
        """Settle one of the unsettled deliveries."""
        delivery = self.held.pop(index)
        self.queue.unacked_count -= 1
        self.queue.forget(delivery.position, delivery.message)
        self._leave_flight(1)

    def give_back(self, *indexes: int) -> None:
        """Return unsettled deliveries to the queue; without arguments, all of them."""
        chosen = [self.held[index] for index in indexes] if indexes else list(self.held)
        for delivery in chosen:
            self.held.remove(delivery)
            self.queue.requeue(delivery.position, delivery.message)
        self._leave_flight(len(chosen))
        self.queue.drain()

    def _leave_flight(self, number: int) -> None:
        self.in_flight -= number
        if number:
            self.is_full = False
        if self in self.queue.consumers and self.can_take():
            self.queue.resume(self)

    @property
    def bodies(self) -> list[bytes]:
        return [delivery.message.body for delivery in self.taken]


def new_broker(journal: Journal | None = None, *, now: int = 0, has_defaults: bool = True, **settings: Any) -> Broker:
    """Return a broker with the vhost `/` and the user guest; its random octets are a running number."""
    numbers = count(1)
    broker = Broker(Settings(**settings), lambda size: next(numbers).to_bytes(size, "big"), journal)
    broker.now = now
    if has_defaults:
        broker.add_defaults()
    return broker


def new_vhost(journal: Journal | None = None) -> VHost:
    return new_broker(journal).vhosts["/"]


def new_queue(
    vhost: VHost | None = None,
    name: str = "q",
    *,
    arguments: fields.Table | None = None,
    connection: Connection | None = None,
    **attributes: Any,
) -> Queue:
    """Declare a queue, by default transient and not exclusive."""
    return (vhost or new_vhost()).declare_queue(QueueDeclaration(name, arguments or {}, **attributes), connection)


def new_classic_queue(vhost: VHost | None = None, name: str = "q", **attributes: Any) -> ClassicQueue:
    queue = new_queue(vhost, name, **attributes)
    assert isinstance(queue, ClassicQueue)
    return queue


def new_exchange(vhost: VHost, name: str, kind: str = "fanout", **attributes: Any) -> Exchange:
    """Declare an exchange, by default transient."""
    return vhost.declare_exchange(ExchangeDeclaration(name, kind, **{"arguments": {}, **attributes}))


def bind(source: Exchange, destination: Destination, vhost: VHost, key: str = "", **arguments: Any) -> None:
    vhost.bind(source, destination, key, arguments)


def new_route(vhost: VHost) -> Route:
    """Return a route without queues."""
    return Route(Address("", "nowhere"), vhost.default_exchange, False, (), True)


class IdleConnection(ClientConnection[Any]):
    """A connection that does nothing."""

    @property
    def status(self) -> str:
        return "running"

    def follow_alarms(self) -> None:
        pass

    def force_close(self, explanation: str, now: int) -> None:
        pass

    def can_show(self, rule: Rule) -> bool:
        return True

    def apply_fault(self, rule: Rule, channel: int | None = None) -> None:
        pass

    def end_fault(self, rule: Rule) -> None:
        pass


def new_connection() -> Connection:
    return IdleConnection("127.0.0.1", 40_000, "127.0.0.1", 5672, 0)


def new_message(body: bytes = b"", routing_key: str = "q", **properties: Any) -> Message:
    return Message.build(Address("", routing_key), Properties(**properties), body)


def push(queue: Queue, *bodies: bytes) -> None:
    for body in bodies:
        queue.push(new_message(body))


def pulled(queue: Queue) -> list[tuple[bytes, int, bool]]:
    """Take all ready messages of a queue; return body, position and redelivered flag of each."""
    found = []
    while (got := queue.pull()) is not None:
        found.append((got[0].body, got[1], got[2]))
    return found
