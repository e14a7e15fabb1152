"""Two brokers in memory and shovels between them: `amqp://` is the first, `amqp://there` the second."""

from __future__ import annotations

import itertools
from typing import Any

from amqp_broker.amqp.errors import AMQPError
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.admin.access import InternalUser
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.session.methods.basic_publish import put
from amqp_broker.session.session import Session
from amqp_broker.settings.settings import Settings
from amqp_broker.shovel.amqp_client import CHANNEL, Client, Lost
from amqp_broker.shovel.shovel import Shovel
from amqp_broker.shovel.shovel_definition import Uri, parse

NOW = 1_700_000_000_000


class MemoryLink:
    """Exchanges octets between a client and a session."""

    def __init__(self, pair: Pair, broker: Broker, client: Client, shovel: Shovel) -> None:
        self.pair = pair
        self.client = client
        self.shovel = shovel
        self.session = Session(broker, [], "127.0.0.1", 0, "127.0.0.1", 5672, pair.time)
        self.is_closed = False
        self.is_paused = False

    def flush(self) -> None:
        pass  # `Pair.run` moves everything

    def pause(self, is_paused: bool) -> None:
        self.is_paused = is_paused

    def close(self) -> None:
        self.move()
        self.is_closed = True
        self.session.connection_lost(self.pair.time)

    def put(self, address: Address, message: Message, queue: str | None) -> None:
        channel = self.session.channels[CHANNEL]
        try:
            put(channel, address, queue, message.content_for(CHANNEL, self.session.frame_max))
        except AMQPError as error:
            raise Lost(f"{error.code} {error.reply_text}") from None

    def move(self) -> bool:
        """Move the octets in both directions; return whether there were any."""
        said, self.client.outbox = b"".join(self.client.outbox), []
        if said and not self.is_closed:
            self.session.receive(said, self.pair.time)
        answer = b"" if self.is_closed or self.is_paused else b"".join(self.session.outbox.take())
        if answer:
            try:
                self.client.receive(answer)
            except Lost as reason:
                self.shovel.on_lost(self.client, str(reason), self.pair.time)
        return bool(said or answer)


class Pair:
    """The brokers `here` and `there`; `is_down` refuses connections to `there`."""

    def __init__(self) -> None:
        self.time = NOW
        self.here, self.there = (self._broker() for _ in range(2))
        self.is_down = False
        self.links: list[MemoryLink] = []
        self.done: list[Shovel] = []

    def _broker(self) -> Broker:
        counter = itertools.count()
        broker = Broker(Settings(), lambda size: next(counter).to_bytes(size, "big"))
        broker.now = self.time
        broker.add_defaults()
        return broker

    def now(self) -> int:
        return self.time

    def open(self, uri: Uri, client: Client, shovel: Shovel) -> MemoryLink:
        if not uri.is_local and self.is_down:
            raise OSError("connection refused")
        link = MemoryLink(self, self.here if uri.is_local else self.there, client, shovel)
        if uri.is_local and not uri.is_loopback:
            link.session.internal_user = InternalUser("rmq-shovel")
        self.links.append(link)
        return link

    def shovel(self, **given: Any) -> Shovel:
        """Return a started shovel that is idle; `src_queue="q"` is the key src-queue."""
        value = {"src-uri": "amqp://", "dest-uri": "amqp://there"}
        value.update({key.replace("_", "-"): item for key, item in given.items()})
        shovel = Shovel("s", "/", parse("s", value), self, "rabbit@here", self.done.append, self.time)
        shovel.start(self.time)
        self.run()
        return shovel

    def run(self) -> None:
        while sum(link.move() for link in list(self.links)):
            self.links = [link for link in self.links if not link.is_closed]

    def wait(self, shovel: Shovel, duration_ms: int) -> None:
        """Advance the clock."""
        self.time += duration_ms
        if shovel.next_tick_ms is not None and shovel.next_tick_ms <= self.time:
            shovel.tick(self.time)
        self.run()

    def cut(self) -> None:
        """Lose all connections at once."""
        links, self.links = self.links, []
        for link in links:
            link.is_closed = True
            link.session.connection_lost(self.time)
            link.shovel.on_lost(link.client, "cut", self.time)


def declare(broker: Broker, name: str, **arguments: Any) -> Queue:
    return broker.vhosts["/"].declare_queue(QueueDeclaration(name, arguments, is_durable=True))


def push(queue: Queue, *bodies: bytes, **properties: Any) -> None:
    for body in bodies:
        queue.push(Message.build(Address("source", "key"), Properties(**properties), body))


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.messages()]
