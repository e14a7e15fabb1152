"""Publish with aio-pika: confirms by default, returns, properties, transactions, pools."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import aio_pika
import pytest
from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.abc import AbstractRobustChannel, AbstractRobustConnection, AbstractRobustQueue
from aio_pika.exceptions import ChannelNotFoundEntity, DeliveryError, PublishError
from aio_pika.pool import Pool
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name
from tests.present import present

pytestmark = pytest.mark.timeout(30)


async def test_publish_returns_the_ack_of_the_broker(
    channel: AbstractRobustChannel, queue: AbstractRobustQueue
) -> None:
    acks = [await channel.default_exchange.publish(Message(b"work"), queue.name) for _ in range(3)]
    assert [ack.delivery_tag for ack in acks if isinstance(ack, Basic.Ack)] == [1, 2, 3]


async def test_hundred_publishes_at_once_are_each_confirmed(
    channel: AbstractRobustChannel, queue: AbstractRobustQueue
) -> None:
    bodies = [str(number).encode() for number in range(100)]
    acks = await asyncio.gather(*(channel.default_exchange.publish(Message(body), queue.name) for body in bodies))
    assert len(acks) == 100
    assert [(await queue.get(no_ack=True)).body for _ in bodies] == bodies


async def test_unroutable_message_is_the_result_of_its_publish(channel: AbstractRobustChannel) -> None:
    nowhere = unique_name("nowhere")
    results = await asyncio.gather(
        *(channel.default_exchange.publish(Message(str(n).encode()), f"{nowhere}-{n}") for n in range(10))
    )
    returned = [result for result in results if isinstance(result, DeliveredMessage)]
    assert [result.body for result in returned] == [str(n).encode() for n in range(10)]
    returns = [result.delivery for result in returned if isinstance(result.delivery, Basic.Return)]
    assert [(each.reply_code, each.reply_text) for each in returns] == [(312, "NO_ROUTE")] * 10


async def test_unroutable_message_raises_delivery_error_if_asked_to(connection: AbstractRobustConnection) -> None:
    channel = await connection.channel(on_return_raises=True)
    with pytest.raises(DeliveryError) as raised:
        await channel.default_exchange.publish(Message(b"lost"), unique_name("nowhere"))
    assert isinstance(raised.value, PublishError)
    assert present(raised.value.message).body == b"lost"


async def test_return_callbacks_get_unroutable_messages(channel: AbstractRobustChannel) -> None:
    returned: asyncio.Queue[bytes] = asyncio.Queue()
    channel.return_callbacks.add(lambda _channel, message: returned.put_nowait(message.body))
    await channel.default_exchange.publish(Message(b"come back"), unique_name("nowhere"))
    assert await returned.get() == b"come back"


async def test_nacked_message_raises_delivery_error(channel: AbstractRobustChannel) -> None:
    queue = await channel.declare_queue(
        unique_name("bounded"), auto_delete=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
    )
    await channel.default_exchange.publish(Message(b"fits"), queue.name)
    with pytest.raises(DeliveryError) as raised:
        await channel.default_exchange.publish(Message(b"too much"), queue.name)
    assert isinstance(raised.value.frame, Basic.Nack)


async def test_some_of_many_publishes_at_once_are_nacked_and_the_rest_is_in_the_queue(
    channel: AbstractRobustChannel,
) -> None:
    queue = await channel.declare_queue(
        unique_name("bounded"), auto_delete=True, arguments={"x-max-length": 5, "x-overflow": "reject-publish"}
    )
    publishes = (channel.default_exchange.publish(Message(str(n).encode()), queue.name) for n in range(50))
    results = await asyncio.gather(*publishes, return_exceptions=True)
    acked = [str(n).encode() for n, result in enumerate(results) if isinstance(result, Basic.Ack)]
    assert sum(isinstance(result, DeliveryError) for result in results) == 50 - len(acked)
    assert len(acked) >= 5
    assert [(await queue.get(no_ack=True)).body for _ in range(5)] == acked[:5]


async def test_publishing_to_a_missing_exchange_fails_and_the_channel_recovers(
    channel: AbstractRobustChannel, queue: AbstractRobustQueue
) -> None:
    missing = await channel.get_exchange(unique_name("missing"), ensure=False)
    reopened = asyncio.Event()
    channel.reopen_callbacks.add(lambda _channel: reopened.set())
    with pytest.raises(ChannelNotFoundEntity):
        await missing.publish(Message(b""), "key")
    await reopened.wait()
    await channel.default_exchange.publish(Message(b"again"), queue.name)
    assert (await queue.get(no_ack=True)).body == b"again"


async def test_properties_round_trip(channel: AbstractRobustChannel, queue: AbstractRobustQueue) -> None:
    sent = Message(
        b"{}",
        headers={
            "text": "grüße",
            "int": -5,
            "big": 2**40,
            "bool": True,
            "float": 1.5,
            "decimal": Decimal("3.14"),
            "time": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
            "none": None,
            "list": [1, "two", [3.25, None], {"four": [5]}],
            "table": {"a": {"b": {"c": "d"}}},
        },
        content_type="application/json",
        content_encoding="utf-8",
        delivery_mode=DeliveryMode.PERSISTENT,
        priority=3,
        correlation_id="correlation",
        reply_to="replies",
        expiration=timedelta(minutes=1),
        message_id="message",
        timestamp=datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        type="order",
        user_id="guest",
        app_id="shop",
    )
    await channel.default_exchange.publish(sent, queue.name)
    received = await queue.get(no_ack=True)
    assert received.body == b"{}"
    assert received.properties == sent.properties
    assert received.headers == sent.headers
    assert received.timestamp == sent.timestamp
    assert received.expiration == 60


async def test_large_body_round_trips(channel: AbstractRobustChannel, queue: AbstractRobustQueue) -> None:
    body = bytes(range(256)) * 4 * 4096
    await channel.default_exchange.publish(Message(body), queue.name)
    assert (await queue.get(no_ack=True)).body == body


async def test_message_expires_and_is_dead_lettered(channel: AbstractRobustChannel) -> None:
    dead_letters = await channel.declare_exchange(unique_name("dlx"), ExchangeType.FANOUT, auto_delete=True)
    morgue = await channel.declare_queue(exclusive=True)
    await morgue.bind(dead_letters)
    queue = await channel.declare_queue(
        unique_name("short"), exclusive=True, arguments={"x-dead-letter-exchange": dead_letters.name}
    )
    await channel.default_exchange.publish(Message(b"old", expiration=0.05), queue.name)
    async with morgue.iterator(no_ack=True) as messages:
        async for message in messages:
            assert message.body == b"old"
            deaths = message.headers["x-death"]
            assert isinstance(deaths, list)
            [death] = deaths
            assert isinstance(death, dict)
            assert (death["queue"], death["reason"], death["count"]) == (queue.name, "expired", 1)
            assert isinstance(death["time"], datetime)
            break


async def test_transaction_publishes_on_commit_and_nothing_after_an_exception(
    connection: AbstractRobustConnection, queue: AbstractRobustQueue
) -> None:
    channel = await connection.channel(publisher_confirms=False)
    async with channel.transaction():
        await channel.default_exchange.publish(Message(b"1"), queue.name)
        await channel.default_exchange.publish(Message(b"2"), queue.name)
        assert await queue.get(fail=False) is None
    with contextlib.suppress(ZeroDivisionError):
        async with channel.transaction():
            await channel.default_exchange.publish(Message(b"3"), queue.name)
            raise ZeroDivisionError
    async with channel.transaction():
        await channel.default_exchange.publish(Message(b"4"), queue.name)
    assert [(await queue.get(no_ack=True)).body for _ in range(3)] == [b"1", b"2", b"4"]
    assert await queue.get(fail=False) is None


async def test_pools_of_connections_and_channels_publish_at_once(
    broker: BrokerProcess, queue: AbstractRobustQueue
) -> None:
    async def connect() -> AbstractRobustConnection:
        return await aio_pika.connect_robust(broker.url)

    async with Pool(connect, max_size=3) as connections:

        async def open_channel() -> AbstractRobustChannel:
            connection: AbstractRobustConnection
            async with connections.acquire() as connection:
                return await connection.channel()

        async with Pool(open_channel, max_size=10) as channels:

            async def publish(number: int) -> None:
                async with channels.acquire() as channel:
                    await channel.default_exchange.publish(Message(str(number).encode()), queue.name)

            await asyncio.gather(*map(publish, range(100)))
    bodies = {(await queue.get(no_ack=True)).body for _ in range(100)}
    assert bodies == {str(number).encode() for number in range(100)}
