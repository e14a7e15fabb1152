"""Brokers to read from and to write to: ours in this process, and the real RabbitMQ; pika looks at what is in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from amqp_broker.testing import EmbeddedBroker
from compat.brokers import RabbitMQ
from tests.spark_session import spark

__all__ = ["spark"]

_numbers = itertools.count()


class At:
    """A broker at a URL, and a channel of pika's there."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        # Nobody serves its heartbeats while Spark works.
        self.connection = pika.BlockingConnection(pika.URLParameters(f"{url}?heartbeat=0"))
        self.channel: BlockingChannel = self.connection.channel()
        self.channel.confirm_delivery()

    def stream(self, **arguments: object) -> str:
        """A new stream queue, by name."""
        return self.queue("stream", **arguments)

    def queue(self, kind: str = "classic", **arguments: object) -> str:
        """A new durable queue of this type, by name."""
        name = f"q{next(_numbers)}"
        self.channel.queue_declare(name, durable=True, arguments={"x-queue-type": kind, **arguments})
        return name

    def publish(self, queue: str, bodies: Iterator[bytes] | list[bytes], **properties: object) -> None:
        """Publish to the default exchange, and return when the last of them is confirmed."""
        plain = self.connection.channel()
        bodies = list(bodies)
        for body in bodies[:-1]:
            plain.basic_publish("", queue, body, pika.BasicProperties(**properties))
        plain.confirm_delivery()
        plain.basic_publish("", queue, bodies[-1], pika.BasicProperties(**properties))
        plain.close()

    def count(self, queue: str) -> int:
        return int(self.channel.queue_declare(queue, passive=True).method.message_count)

    def taken(self, queue: str) -> list[tuple[pika.BasicProperties, bytes]]:
        """All messages of a queue, which is empty then."""
        found = []
        while (got := self.channel.basic_get(queue, auto_ack=True))[0] is not None:
            found.append((got[1], got[2]))
        return found


@pytest.fixture(scope="session")
def ours() -> Iterator[At]:
    with EmbeddedBroker() as broker:
        at = At("ours", broker.url)
        yield at
        at.connection.close()


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[At]:
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    process = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"))
    process.start()
    at = At("RabbitMQ", process.url)
    yield at
    at.connection.close()
    process.kill()


@pytest.fixture(params=["ours", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> At:
    """Each in turn."""
    at: At = request.getfixturevalue(request.param)
    return at
