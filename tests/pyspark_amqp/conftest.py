"""The brokers for the tests: amqp-broker in this process, and a real RabbitMQ."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from amqp_broker.testing import EmbeddedBroker
from compat.oracles.rabbitmq import RabbitMQ
from tests.spark_session import spark

__all__ = ["spark"]

_numbers = itertools.count()


class At:
    """A broker at a URL, with a pika channel."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        # pika sends no heartbeats while Spark works.
        self.connection = pika.BlockingConnection(pika.URLParameters(f"{url}?heartbeat=0"))
        self.channel: BlockingChannel = self.connection.channel()
        self.channel.confirm_delivery()

    def stream(self, **arguments: object) -> str:
        """Declare a new stream and return its name."""
        return self.queue("stream", arguments)

    def queue(self, kind: str = "classic", arguments: dict[str, object] | None = None) -> str:
        """Declare a new durable queue of this type and return its name."""
        name = f"q{next(_numbers)}"
        self.channel.queue_declare(name, durable=True, arguments={"x-queue-type": kind, **(arguments or {})})
        return name

    def publish(self, queue: str, bodies: Iterator[bytes] | list[bytes], **properties: object) -> None:
        """Publish to the default exchange and wait until all messages are confirmed."""
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
        """Return all messages of a queue, which is empty afterwards."""
        found = []
        while (got := self.channel.basic_get(queue, auto_ack=True))[0] is not None:
            found.append((got[1], got[2]))
        return found


@pytest.fixture(scope="session")
def amqp_broker() -> Iterator[At]:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
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


@pytest.fixture(params=["amqp_broker", pytest.param("rabbitmq", marks=pytest.mark.verify)])
def broker(request: pytest.FixtureRequest) -> At:
    """Return each broker in turn."""
    at: At = request.getfixturevalue(request.param)
    return at
