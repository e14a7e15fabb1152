"""Recovery of aio-pika's robust connections after an error, a deleted queue, and a killed broker."""

from __future__ import annotations

import asyncio

import aio_pika
import pytest
from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractIncomingMessage, AbstractRobustChannel, AbstractRobustConnection
from aio_pika.exceptions import ChannelNotFoundEntity, InvalidFrameError, ProbableAuthenticationError

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name

pytestmark = pytest.mark.timeout(60)


class Inbox(asyncio.Queue[bytes]):
    """Bodies that a consumer got."""

    async def take(self, message: AbstractIncomingMessage) -> None:
        self.put_nowait(message.body)


async def test_robust_connection_restores_its_topology_and_consumers_when_the_killed_broker_is_back(
    own_broker: BrokerProcess,
) -> None:
    async with await aio_pika.connect_robust(own_broker.url, reconnect_interval=0.1) as connection:
        back, lost = asyncio.Event(), asyncio.Event()
        connection.reconnect_callbacks.add(lambda _connection: back.set())
        connection.close_callbacks.add(lambda _connection, _reason: lost.set())
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=10)
        exchange = await channel.declare_exchange(unique_name("news"), ExchangeType.TOPIC)
        queue = await channel.declare_queue(unique_name("inbox"))
        await queue.bind(exchange, "news.#")
        received = Inbox()
        await queue.consume(received.take, no_ack=True)
        temporary = await channel.declare_queue(exclusive=True)
        await temporary.consume(received.take, no_ack=True)

        await exchange.publish(Message(b"before"), "news.local")
        assert await received.get() == b"before"

        await asyncio.to_thread(own_broker.kill)
        await lost.wait()
        await asyncio.to_thread(own_broker.start)
        await back.wait()
        await exchange.publish(Message(b"after"), "news.world")
        assert await received.get() == b"after"
        await channel.default_exchange.publish(Message(b"to the server-named queue"), temporary.name)
        assert await received.get() == b"to the server-named queue"


async def test_robust_channel_works_again_after_the_broker_closed_it(channel: AbstractRobustChannel) -> None:
    queue = await channel.declare_queue(unique_name("kept"), exclusive=True)
    received, reopened = Inbox(), asyncio.Event()
    await queue.consume(received.take, no_ack=True)
    channel.reopen_callbacks.add(lambda _channel: reopened.set())
    with pytest.raises(ChannelNotFoundEntity):
        await channel.get_queue(unique_name("missing"))
    await reopened.wait()
    await channel.default_exchange.publish(Message(b"still here"), queue.name)
    assert await received.get() == b"still here"


async def test_wrong_password_is_a_probable_authentication_error(broker: BrokerProcess) -> None:
    with pytest.raises(ProbableAuthenticationError, match="ACCESS_REFUSED"):
        await aio_pika.connect_robust(broker.url.replace("guest:guest", "guest:wrong"))


async def test_unknown_vhost_is_answered_with_a_close_instead_of_open_ok(broker: BrokerProcess) -> None:
    with pytest.raises(InvalidFrameError, match=r"got <Connection.Close object"):
        await aio_pika.connect(f"{broker.url}nowhere")


async def test_fifty_channels_work_at_once(connection: AbstractRobustConnection) -> None:
    async def use_a_channel(number: int) -> bytes:
        async with connection.channel() as channel:
            queue = await channel.declare_queue(exclusive=True)
            await channel.default_exchange.publish(Message(str(number).encode()), queue.name)
            return (await queue.get(no_ack=True)).body

    assert await asyncio.gather(*map(use_a_channel, range(50))) == [str(n).encode() for n in range(50)]
