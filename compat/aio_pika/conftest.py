"""Connections and channels as aio-pika's users open them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aio_pika
import pytest
from aio_pika.abc import AbstractRobustChannel, AbstractRobustConnection, AbstractRobustQueue

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name


@pytest.fixture
async def connection(broker: BrokerProcess) -> AsyncIterator[AbstractRobustConnection]:
    async with await aio_pika.connect_robust(broker.url, timeout=15) as connection:
        yield connection


@pytest.fixture
async def channel(connection: AbstractRobustConnection) -> AbstractRobustChannel:
    return await connection.channel()


@pytest.fixture
async def queue(channel: AbstractRobustChannel) -> AbstractRobustQueue:
    return await channel.declare_queue(unique_name("queue"), auto_delete=True)
