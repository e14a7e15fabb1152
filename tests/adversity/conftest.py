"""One broker, in a process of its own, for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.brokers import AmqpBroker
from tests.client import Client


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    process = AmqpBroker(tmp_path_factory.mktemp("broker"))
    process.start()
    yield process
    process.kill()


@pytest.fixture
def client(broker: AmqpBroker) -> Iterator[Client]:
    """Provide a well-behaved client."""
    with Client(broker.port).open() as client:
        yield client
