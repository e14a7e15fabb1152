"""A broker without sessions: consumers, connections and a journal that write down what they are told.

queue = new_queue()
taker = Taker(queue, prefetch=1).start()
queue.push(new_message(b"one"))
assert taker.bodies == [b"one"]
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.connection import Connection
from amqp_broker.broker.consumer import Consumer
from amqp_broker.broker.exchange import Destination, Exchange
from amqp_broker.broker.journal import Journal
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.vhost import VHost
from amqp_broker.config import Config
from amqp_broker.message import Address, Message, Properties


class Delivery(NamedTuple):
    """A message as a consumer got it."""

    message: Message
    position: int
    redelivered: bool


class Taker(Consumer):
    """A consumer that keeps what it gets in `taken`, and in `held` until it is settled."""

    def __init__(
        self,
        queue: Queue,
        *,
        connection: Connection | None = None,
        tag: str = "taker",
        no_ack: bool = False,
        is_exclusive: bool = False,
        prefetch: int = 0,
        priority: int = 0,
    ) -> None:
        super().__init__(
            connection or new_connection(),
            queue,
            tag,
            no_ack=no_ack,
            is_exclusive=is_exclusive,
            prefetch=prefetch,
            priority=priority,
            arguments={},
        )
        self.taken: list[Delivery] = []
        self.held: list[Delivery] = []
        self.is_bereft = False

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

    def on_queue_deleted(self) -> None:
        self.is_bereft = True

    def start(self) -> Taker:
        """Subscribe, and take what is ready."""
        self.queue.subscribe(self)
        self.queue.resume(self)
        return self

    def stop(self) -> None:
        """Unsubscribe; what is held stays held."""
        self.queue.unsubscribe(self)

    def ack(self, index: int = 0) -> None:
        """Settle one of the messages held."""
        delivery = self.held.pop(index)
        self.queue.unacked_count -= 1
        self.queue.forget(delivery.position, delivery.message)
        self._leave_flight(1)

    def give_back(self, *indexes: int) -> None:
        """Give messages back that are held; all of them if none is named."""
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
    """A broker with the vhost `/` and the user guest, whose random octets are a running number."""
    numbers = count(1)
    broker = Broker(Config(**settings), lambda size: next(numbers).to_bytes(size, "big"), journal)
    broker.now = now
    if has_defaults:
        broker.add_defaults()
    return broker


def new_vhost(journal: Journal | None = None) -> VHost:
    return new_broker(journal).vhosts["/"]


def new_queue(vhost: VHost | None = None, name: str = "q", **attributes: Any) -> Queue:
    """A queue of that name, declared as transient and for everybody if nothing else is said."""
    given: dict[str, Any] = {
        "is_durable": False,
        "is_auto_delete": False,
        "owner": None,
        "connection": None,
        "arguments_": {},
    }
    return (vhost or new_vhost()).declare_queue(name, **{**given, **attributes})


def new_exchange(vhost: VHost, name: str, kind: str = "fanout", **attributes: Any) -> Exchange:
    """An exchange of that name, declared as transient if nothing else is said."""
    given: dict[str, Any] = {"is_durable": False, "is_auto_delete": False, "is_internal": False, "arguments_": {}}
    return vhost.declare_exchange(name, kind, **{**given, **attributes})


def bind(source: Exchange, destination: Destination, vhost: VHost, key: str = "", **arguments: Any) -> None:
    vhost.bind(source, destination, key, arguments)


def new_connection() -> Connection:
    return Connection("127.0.0.1", 40_000, "127.0.0.1", 5672, 0)


def new_message(body: bytes = b"", routing_key: str = "q", **properties: Any) -> Message:
    return Message.build(Address("", routing_key), Properties(**properties), body)


def push(queue: Queue, *bodies: bytes) -> None:
    for body in bodies:
        queue.push(new_message(body))


def pulled(queue: Queue) -> list[tuple[bytes, int, bool]]:
    """All that is ready, taken out: body, position, and whether it was delivered before."""
    found = []
    while (got := queue.pull()) is not None:
        found.append((got[0].body, got[1], got[2]))
    return found
