"""The broker that the client programs run against: ours, or the real RabbitMQ with BROKER=rabbitmq."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from compat.brokers import BrokerProcess, OurBroker, RabbitMQ


def make_broker(tmp_path_factory: pytest.TempPathFactory) -> BrokerProcess:
    folder = tmp_path_factory.mktemp("broker")
    return RabbitMQ(folder) if os.environ.get("BROKER") == "rabbitmq" else OurBroker(folder)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests that leave it running; each test uses names of its own."""
    process = make_broker(tmp_path_factory)
    process.start()
    yield process
    process.kill()


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that a test may kill and restart."""
    process = make_broker(tmp_path_factory)
    process.start()
    yield process
    process.kill()
