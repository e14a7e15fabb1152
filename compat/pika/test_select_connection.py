"""SelectConnection: a publisher and a consumer with callbacks, as in pika's asynchronous examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.adapters.select_connection import IOLoop
from pika.channel import Channel
from pika.exceptions import ConnectionClosedByClient, ProbableAuthenticationError

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name

MESSAGES = 300


class Program(ABC):
    """A connection with one channel on an ioloop; the steps of a subclass begin at `on_channel_open`."""

    def __init__(self, loop: IOLoop, url: str, queue: str) -> None:
        self.queue = queue
        self.close_reason: BaseException | None = None
        self.connection = pika.SelectConnection(
            pika.URLParameters(url),
            on_open_callback=lambda connection: connection.channel(on_open_callback=self.on_channel_open),
            on_open_error_callback=self.on_closed,
            on_close_callback=self.on_closed,
            custom_ioloop=loop,
        )

    def on_closed(self, _connection: pika.SelectConnection, reason: BaseException) -> None:
        self.close_reason = reason

    @abstractmethod
    def on_channel_open(self, channel: Channel) -> None:
        """Take the first step on the open channel."""


class Publisher(Program):
    """Publishes numbers without waiting, and closes when all of them are confirmed."""

    def on_channel_open(self, channel: Channel) -> None:
        self.channel = channel
        self.confirmed: set[int] = set()
        self.returned: list[int] = []
        channel.add_on_return_callback(lambda _c, _m, _p, body: self.returned.append(int(body)))
        channel.queue_declare(self.queue, callback=self.on_queue_declared)

    def on_queue_declared(self, _frame: Any) -> None:
        self.channel.confirm_delivery(self.on_confirmation, callback=self.on_confirming)

    def on_confirming(self, _frame: Any) -> None:
        for number in range(1, MESSAGES + 1):
            key = self.queue if number != 100 else unique_name("nowhere")
            self.channel.basic_publish("", key, str(number).encode(), mandatory=True)

    def on_confirmation(self, frame: Any) -> None:
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        tag = frame.method.delivery_tag
        self.confirmed.update(range(1, tag + 1) if frame.method.multiple else [tag])
        if len(self.confirmed) == MESSAGES:
            self.connection.close()


class Consumer(Program):
    """Consumes with a prefetch, acks every tenth delivery for the ten, and closes after the last number."""

    def on_channel_open(self, channel: Channel) -> None:
        self.channel = channel
        self.numbers: list[int] = []
        channel.add_on_close_callback(lambda _channel, reason: self.on_closed(self.connection, reason))
        channel.queue_declare(self.queue, callback=lambda _frame: self.set_prefetch())

    def set_prefetch(self) -> None:
        self.channel.basic_qos(prefetch_count=10, callback=lambda _frame: self.start_consuming())

    def start_consuming(self) -> None:
        self.tag = self.channel.basic_consume(self.queue, self.on_message)

    def on_message(self, channel: Channel, method: Any, _properties: Any, body: bytes) -> None:
        self.numbers.append(int(body))
        if len(self.numbers) % 10 == 0:
            channel.basic_ack(method.delivery_tag, multiple=True)
        if self.numbers[-1] == MESSAGES:
            channel.basic_ack(method.delivery_tag, multiple=True)
            channel.basic_cancel(self.tag, callback=lambda _frame: self.connection.close())


@pytest.fixture
def loop() -> IOLoop:
    return IOLoop()


def run_until(loop: IOLoop, condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    def check() -> None:
        if condition():
            loop.stop()
        else:
            loop.call_later(0.01, check)

    check()
    deadline = loop.call_later(timeout_s, loop.stop)
    loop.start()
    loop.remove_timeout(deadline)
    assert condition(), f"not within {timeout_s} seconds"


def test_an_asynchronous_publisher_and_a_consumer_exchange_all_messages_in_order(
    broker: BrokerProcess, loop: IOLoop
) -> None:
    queue = unique_name("asynchronous")
    publisher, consumer = Publisher(loop, broker.url, queue), Consumer(loop, broker.url, queue)
    run_until(loop, lambda: publisher.close_reason and consumer.close_reason)
    assert isinstance(publisher.close_reason, ConnectionClosedByClient)
    assert consumer.numbers == [number for number in range(1, MESSAGES + 1) if number != 100]
    assert publisher.returned == [100]
    assert publisher.confirmed == set(range(1, MESSAGES + 1))


def test_a_wrong_password_reaches_the_open_error_callback(broker: BrokerProcess, loop: IOLoop) -> None:
    program = Consumer(loop, broker.url.replace("guest:guest", "guest:wrong"), "unused")
    run_until(loop, lambda: program.close_reason)
    assert isinstance(program.close_reason, ProbableAuthenticationError)
