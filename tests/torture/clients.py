"""Clients that survive their broker: each runs in a thread and connects to each run of the broker."""

from __future__ import annotations

import asyncio
import random
import threading
from abc import ABC, abstractmethod
from typing import Any

import aio_pika
import pika
from aio_pika.exceptions import AMQPError as AioPikaError
from aio_pika.exceptions import ChannelClosed
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPChannelError, AMQPError, NackError, UnroutableError

from tests.torture.ledger import Ledger, Number, number_of

# Errors of a broken connection, and of a broker's refusal.
BREAKS = (AMQPError, AioPikaError, OSError, RuntimeError, asyncio.CancelledError)
REFUSALS = (AMQPChannelError, NackError, UnroutableError, ChannelClosed)

PERSISTENT = 2
PREFETCH = 50
WINDOW = 40
TRANSACTION = 10
# Number of settles for each publish that makes them certain.
SETTLES_PER_MARK = 20
PRIORITIES = 4

# Exchange and routing key, with the queues that such a message is routed to.
Target = tuple[str, str, tuple[str, ...]]


class World:
    """The broker's address, and its running process; `run` is 0 while none runs."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.seed = seed
        self.ledger = Ledger()
        self.errors: list[BaseException] = []
        self._run = 0
        self._is_over = False
        self._news = threading.Condition()

    def set_run(self, run: int) -> None:
        with self._news:
            self._run = run
            self._news.notify_all()

    def end(self) -> None:
        with self._news:
            self._is_over = True
            self._news.notify_all()

    @property
    def is_over(self) -> bool:
        return self._is_over

    def is_run(self, run: int) -> bool:
        return self._run == run

    def next_run(self, last: int) -> int | None:
        """Wait for another run than the last one and return it; None at the end."""
        with self._news:
            self._news.wait_for(lambda: self._is_over or self._run not in (0, last))
            return None if self._is_over else self._run


class Client(threading.Thread, ABC):
    """A client; `work` is called for each run of the broker, and returns or raises at its end."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.world, self.ledger = world, world.ledger
        self.random = random.Random(f"{world.seed} {name}")
        self.count = 0

    def run(self) -> None:
        last = 0
        while (run := self.world.next_run(last)) is not None:
            last = run
            try:
                self.work(run)
            except BREAKS as error:
                if isinstance(error, REFUSALS):
                    self.world.errors.append(error)
            except BaseException as error:
                self.world.errors.append(error)
                raise

    @abstractmethod
    def work(self, run: int) -> None:
        """Use the broker until its run ends, and return or raise."""

    def connect(self, run: int) -> pika.BlockingConnection:
        connection = pika.BlockingConnection(pika.URLParameters(f"{self.world.url}?heartbeat=0"))
        self.check_run(run)
        return connection

    def check_run(self, run: int) -> None:
        """Check after a connect that the broker is still in the same run."""
        if not self.world.is_run(run):
            raise ConnectionError("the broker was killed meanwhile")

    def next_number(self) -> Number:
        """Return a number for a message; each is published once."""
        self.count += 1
        return Number(self.name, self.count)


def properties(number: Number) -> pika.BasicProperties:
    return pika.BasicProperties(delivery_mode=PERSISTENT, priority=number.number % PRIORITIES)


class Publisher(Client):
    """Waits for each confirm."""

    def __init__(self, world: World, name: str, targets: list[Target]) -> None:
        super().__init__(world, name)
        self.targets = targets

    def work(self, run: int) -> None:
        channel = self.connect(run).channel()
        channel.confirm_delivery()
        while not self.world.is_over:
            exchange, routing_key, queues = self.random.choice(self.targets)
            number, mark = self.next_number(), self.ledger.mark(run)
            channel.basic_publish(exchange, routing_key, str(number).encode(), properties(number))
            self.ledger.confirm(run, mark, [number], queues)


class TransactionPublisher(Publisher):
    """Publishes several messages and commits them."""

    def work(self, run: int) -> None:
        channel = self.connect(run).channel()
        channel.tx_select()
        while not self.world.is_over:
            exchange, routing_key, queues = self.random.choice(self.targets)
            mark = self.ledger.mark(run)
            numbers = [self.next_number() for _ in range(TRANSACTION)]
            for number in numbers:
                channel.basic_publish(exchange, routing_key, str(number).encode(), properties(number))
            channel.tx_commit()
            self.ledger.confirm(run, mark, numbers, queues)


class WindowPublisher(Publisher):
    """Has many unconfirmed messages at a time (aio-pika)."""

    def work(self, run: int) -> None:
        asyncio.run(self._work(run))

    async def _work(self, run: int) -> None:
        connection = await aio_pika.connect(self.world.url)
        self.check_run(run)
        channel = await connection.channel(publisher_confirms=True)
        exchanges = {name: await channel.get_exchange(name) for name, _, _ in self.targets}
        while not self.world.is_over:
            publishes = [self._publish(run, exchanges) for _ in range(WINDOW)]
            for result in await asyncio.gather(*publishes, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
        await connection.close()

    async def _publish(self, run: int, exchanges: dict[str, Any]) -> None:
        exchange, routing_key, queues = self.random.choice(self.targets)
        number, mark = self.next_number(), self.ledger.mark(run)
        message = aio_pika.Message(
            str(number).encode(),
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            priority=number.number % PRIORITIES,
        )
        await exchanges[exchange].publish(message, routing_key)
        self.ledger.confirm(run, mark, [number], queues)


class Consumer(Client):
    """Acks most messages, and requeues, rejects or keeps the others.

    Its channel also publishes: a confirm shows that all earlier settles are committed.
    """

    def __init__(self, world: World, queue: str, mark_queue: str, *, may_reject: bool = False) -> None:
        super().__init__(world, f"consumer-of-{queue}")
        self.queue, self.mark_queue, self.may_reject = queue, mark_queue, may_reject

    def work(self, run: int) -> None:
        channel = self.connect(run).channel()
        channel.confirm_delivery()
        channel.basic_qos(prefetch_count=PREFETCH)
        settled: list[Number] = []
        kept = 0
        for method, found, body in channel.consume(self.queue, inactivity_timeout=0.1):
            if self.world.is_over or not self.world.is_run(run):
                return
            if method is None:
                continue
            number, tag = number_of(body), method.delivery_tag
            self.ledger.deliver(run, self.queue, number, method.redelivered, found.priority or 0)
            choice = self.random.random()
            if choice < 0.1 and not method.redelivered:
                channel.basic_nack(tag, requeue=True)
                continue
            if choice < 0.2 and kept < PREFETCH // 2:
                kept += 1
                continue
            self._settle(channel, number, tag, is_rejected=self.may_reject and choice < 0.4)
            settled.append(number)
            if len(settled) == SETTLES_PER_MARK:
                mark_number, mark = self.next_number(), self.ledger.mark(run)
                channel.basic_publish("", self.mark_queue, str(mark_number).encode(), properties(mark_number))
                self.ledger.confirm(run, mark, [mark_number], (self.mark_queue,))
                self.ledger.surely_settled(self.queue, settled)
                settled.clear()

    def _settle(self, channel: BlockingChannel, number: Number, tag: int, *, is_rejected: bool) -> None:
        if is_rejected:
            channel.basic_reject(tag, requeue=False)
        else:
            self.ledger.ack(self.queue, number)
            channel.basic_ack(tag)


class Declarer(Client):
    """Declares, binds and deletes; `declared` and `deleted` are the confirmed results."""

    def __init__(self, world: World, exchange: str) -> None:
        super().__init__(world, "declarer")
        self.exchange = exchange
        self.bound: set[str] = set()
        self.deleted: set[str] = set()
        self.exchanges: set[str] = set()

    def work(self, run: int) -> None:
        channel = self.connect(run).channel()
        while not self.world.is_over:
            self.count += 1
            name = f"object-{self.count}"
            channel.exchange_declare(name, "topic", durable=True)
            self.exchanges.add(name)
            channel.queue_declare(name, durable=True, arguments={"x-max-length": self.count})
            channel.queue_bind(name, self.exchange, name)
            self.bound.add(name)
            if self.count % 3 == 0:
                self.bound.discard(name)
                channel.queue_delete(name)
                self.deleted.add(name)
