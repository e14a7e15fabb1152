"""Connections as kombu's users open them, with the real AMQP transport."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kombu import Connection
from kombu.transport.pyamqp import Channel

from compat.brokers import BrokerProcess


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(broker.url) as connection:
        yield connection


@pytest.fixture
def channel(connection: Connection) -> Channel:
    return connection.default_channel
