"""Streams with aio-pika, whose robust connection reads on by itself."""

from __future__ import annotations

import asyncio

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name

STREAM = {"x-queue-type": "stream"}


async def test_a_stream_is_read_from_its_beginning_while_it_grows(broker: BrokerProcess) -> None:
    name = unique_name("stream")
    async with await aio_pika.connect_robust(broker.url) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=20)
        stream = await channel.declare_queue(name, durable=True, arguments=STREAM)
        for number in range(50):
            await channel.default_exchange.publish(aio_pika.Message(str(number).encode()), name)
        received: asyncio.Queue[tuple[bytes, object]] = asyncio.Queue()

        async def on_message(message: AbstractIncomingMessage) -> None:
            await received.put((message.body, message.headers["x-stream-offset"]))
            await message.ack()

        await stream.consume(on_message, arguments={"x-stream-offset": "first"})
        await channel.default_exchange.publish(aio_pika.Message(b"50"), name)
        got = [await asyncio.wait_for(received.get(), 10) for _ in range(51)]
    assert got == [(str(number).encode(), number) for number in range(51)]
