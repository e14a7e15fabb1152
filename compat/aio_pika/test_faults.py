"""aio-pika under faults: what its user sees, and that a robust connection comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import aio_pika
import pytest
from aio_pika.exceptions import DeliveryError

from amqp_broker.server.server import Server
from tests.running import RunningServer


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with RunningServer() as server:
        yield server


def has_channel(server: Server) -> bool:
    return any(connection.channels for connection in server.broker.connections)


async def test_nacks_returns_and_lost_confirms_are_reported(running: RunningServer) -> None:
    async with await aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{running.port}/") as connection:
        channel = await connection.channel(on_return_raises=True)
        await channel.declare_queue("q")
        for action in ("confirm_nack", "return"):
            running.faults.add(action, routing_key="q", times=1)
            with pytest.raises(DeliveryError):
                await channel.default_exchange.publish(aio_pika.Message(b""), "q")
        running.faults.add("confirm_drop", times=1)
        with pytest.raises(asyncio.TimeoutError):
            await channel.default_exchange.publish(aio_pika.Message(b""), "q", timeout=0.2)
        await channel.default_exchange.publish(aio_pika.Message(b""), "q")
    assert running.ask(lambda server: server.broker.vhosts["/"].queues["q"].ready_count) == 2


async def test_a_late_confirm_is_waited_for(running: RunningServer) -> None:
    async with await aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{running.port}/") as connection:
        channel = await connection.channel()
        await channel.declare_queue("q")
        running.faults.add("confirm_delay", delay_ms=1500, times=1)
        began = time.monotonic()
        first = asyncio.create_task(channel.default_exchange.publish(aio_pika.Message(b"1"), "q"))
        await asyncio.sleep(0)
        await channel.default_exchange.publish(aio_pika.Message(b"2"), "q")
        # The second confirm overtakes the first one.
        assert not first.done()
        await first
        assert time.monotonic() - began > 1.4


async def test_a_blocked_publisher_waits_until_it_is_unblocked(running: RunningServer) -> None:
    async with await aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{running.port}/") as connection:
        channel = await connection.channel()
        await channel.declare_queue("q")
        running.faults.add("block")
        publish = asyncio.create_task(channel.default_exchange.publish(aio_pika.Message(b""), "q"))
        await asyncio.sleep(0.2)
        assert not publish.done()
        running.faults.add("unblock")
        await asyncio.wait_for(publish, 5)


@pytest.mark.parametrize("kill", [False, True])
async def test_a_robust_connection_survives_a_restart(tmp_path: Path, kill: bool) -> None:
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as running:
        url = f"amqp://guest:guest@127.0.0.1:{running.port}/"
        async with await aio_pika.connect_robust(url, reconnect_interval=0.05) as connection:
            channel = await connection.channel()
            await channel.declare_queue("q", durable=True)
            persistent = aio_pika.DeliveryMode.PERSISTENT
            await channel.default_exchange.publish(aio_pika.Message(b"1", delivery_mode=persistent), "q")
            await asyncio.to_thread(running.restart, kill)
            await asyncio.to_thread(running.until, has_channel)
            await asyncio.wait_for(channel.ready(), 5)
            await channel.default_exchange.publish(aio_pika.Message(b"2", delivery_mode=persistent), "q")
        queue = running.ask(lambda server: server.broker.vhosts["/"].queues["q"])
        assert [message.body for message in queue.messages()] == [b"1", b"2"]


@pytest.mark.parametrize("action", ["cut", "reset", "close_connection"])
async def test_a_robust_connection_comes_back(running: RunningServer, action: str) -> None:
    url = f"amqp://guest:guest@127.0.0.1:{running.port}/"
    async with await aio_pika.connect_robust(url, reconnect_interval=0.05) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("q")
        got: asyncio.Queue[bytes] = asyncio.Queue()

        async def take(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            await message.ack()
            got.put_nowait(message.body)

        await queue.consume(take)
        running.faults.add(action)
        running.until(lambda server: not server.broker.connections)
        await asyncio.to_thread(running.until, lambda server: server.broker.vhosts["/"].queues["q"].consumers)
        await channel.default_exchange.publish(aio_pika.Message(b"again"), "q")
        assert await asyncio.wait_for(got.get(), 5) == b"again"
