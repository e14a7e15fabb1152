"""Blocking connections as pika's users open them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name


@pytest.fixture
def connect(broker: BrokerProcess) -> Iterator[Callable[..., pika.BlockingConnection]]:
    """Return a function that opens connections with pika's parameters; the test's end closes them."""
    opened: list[pika.BlockingConnection] = []

    def connect(**parameters: Any) -> pika.BlockingConnection:
        address = {"host": broker.host, "port": broker.port}
        opened.append(pika.BlockingConnection(pika.ConnectionParameters(**{**address, **parameters})))
        return opened[-1]

    yield connect
    for connection in opened:
        if connection.is_open:
            connection.close()


@pytest.fixture
def connection(connect: Callable[..., pika.BlockingConnection]) -> pika.BlockingConnection:
    return connect()


@pytest.fixture
def channel(connection: pika.BlockingConnection) -> BlockingChannel:
    return connection.channel()


@pytest.fixture
def queue(channel: BlockingChannel) -> str:
    """The name of an empty queue, declared with pika's defaults."""
    name = unique_name("queue")
    channel.queue_declare(name)
    return name
