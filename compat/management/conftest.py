"""amqp-broker with its HTTP API, shared by all tests, and RabbitMQ's recorded answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.brokers import AmqpBroker
from compat.management.http_asking import Api
from compat.management.playing import play
from compat.management.suite import MANAGEMENT
from compat.oracle.records import Seen, load
from compat.oracle.suite import Answer


@pytest.fixture(scope="session")
def amqp_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    broker = AmqpBroker(tmp_path_factory.mktemp("amqp-broker"), options=("--no-prometheus",), profile="3.13")
    broker.start()
    yield Api(broker)
    broker.kill()


@pytest.fixture(scope="session")
def answers(amqp_broker: Api) -> dict[str, Answer]:
    """Return amqp-broker's answers by recorded question."""
    return play(amqp_broker)


@pytest.fixture(scope="session")
def recorded() -> Seen:
    return load(MANAGEMENT)
