"""Consume with aio-pika: iterators, message.process, prefetch, priorities, exclusivity."""

from __future__ import annotations

import asyncio

import aio_pika
import pytest
from aio_pika import ExchangeType, Message
from aio_pika.abc import (
    AbstractIncomingMessage,
    AbstractRobustChannel,
    AbstractRobustConnection,
    AbstractRobustQueue,
)
from aio_pika.exceptions import ChannelClosed, ChannelNotFoundEntity, ChannelPreconditionFailed, QueueEmpty
from aiormq.exceptions import ChannelAccessRefused, ChannelLockedResource

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name

pytestmark = pytest.mark.timeout(30)


async def publish(channel: AbstractRobustChannel, queue: AbstractRobustQueue, *bodies: str) -> None:
    for body in bodies:
        await channel.default_exchange.publish(Message(body.encode()), queue.name)


async def take(queue: AbstractRobustQueue, count: int) -> list[AbstractIncomingMessage]:
    """The next messages of a queue, not settled."""
    messages: list[AbstractIncomingMessage] = []
    async with queue.iterator() as iterator:
        async for message in iterator:
            messages.append(message)
            if len(messages) == count:
                break
    return messages


async def test_queue_iterator_yields_messages_in_order_and_requeues_the_rest(
    channel: AbstractRobustChannel,
) -> None:
    queue = await channel.declare_queue(unique_name("kept"), exclusive=True)
    await publish(channel, queue, "a", "b", "c", "d")
    bodies = []
    async with queue.iterator() as messages:
        async for message in messages:
            async with message.process():
                bodies.append(message.body)
            if len(bodies) == 2:
                break
    assert bodies == [b"a", b"b"]
    assert [(await queue.get(no_ack=True)).body for _ in range(2)] == [b"c", b"d"]


async def test_iterator_with_a_timeout_raises_when_no_message_comes(queue: AbstractRobustQueue) -> None:
    async with queue.iterator(timeout=0.1) as messages:
        with pytest.raises(asyncio.TimeoutError):
            await anext(messages)


async def test_get_of_an_empty_queue_raises_queue_empty_or_returns_none(queue: AbstractRobustQueue) -> None:
    with pytest.raises(QueueEmpty):
        await queue.get()
    assert await queue.get(fail=False) is None


async def test_failed_processing_requeues_a_message_and_rejects_it_when_it_comes_back(
    channel: AbstractRobustChannel,
) -> None:
    morgue = await channel.declare_queue(exclusive=True)
    queue = await channel.declare_queue(
        unique_name("work"),
        exclusive=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": morgue.name},
    )
    attempts: list[bool | None] = []

    async def fail(message: AbstractIncomingMessage) -> None:
        async with message.process(requeue=True, reject_on_redelivered=True, ignore_processed=True):
            attempts.append(message.redelivered)
            raise ValueError("cannot do this")

    # The consumer's task ends with the ValueError, which aio-pika leaves to asyncio's exception handler.
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    await queue.consume(fail)
    await publish(channel, queue, "poison")
    async with morgue.iterator(no_ack=True) as messages:
        dead = await anext(messages)
    assert attempts == [False, True]
    assert dead.body == b"poison"
    assert dead.headers["x-first-death-reason"] == "rejected"


async def test_prefetch_bounds_the_messages_in_work(connection: AbstractRobustConnection) -> None:
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=3)
    queue = await channel.declare_queue(unique_name("work"), exclusive=True)
    await publish(channel, queue, *"abcdefghij")
    in_work, most_in_work, done, finished = 0, 0, 0, asyncio.Event()

    async def work(message: AbstractIncomingMessage) -> None:
        nonlocal in_work, most_in_work, done
        async with message.process():
            in_work += 1
            most_in_work = max(in_work, most_in_work)
            # A round trip on the same channel: whatever the broker sent before has arrived after it.
            await channel.declare_queue(queue.name, passive=True)
            in_work -= 1
            done += 1
        if done == 10:
            finished.set()

    await queue.consume(work)
    await finished.wait()
    assert 1 <= most_in_work <= 3


async def test_settled_messages_stay_and_unsettled_ones_return_when_the_connection_is_closed(
    broker: BrokerProcess, channel: AbstractRobustChannel
) -> None:
    queue = await channel.declare_queue(unique_name("shared"), auto_delete=True)
    await publish(channel, queue, "a", "b", "c")
    async with await aio_pika.connect_robust(broker.url) as other:
        rabbitmq = await (await other.channel()).get_queue(queue.name)
        messages = [await rabbitmq.get() for _ in range(3)]
        await messages[1].ack()
    returned = await take(queue, 2)
    assert [(message.body, message.redelivered) for message in returned] == [(b"a", True), (b"c", True)]


async def test_consumer_of_higher_priority_gets_the_messages(
    connection: AbstractRobustConnection, channel: AbstractRobustChannel, queue: AbstractRobustQueue
) -> None:
    deliveries: asyncio.Queue[str] = asyncio.Queue()

    async def low(_message: AbstractIncomingMessage) -> None:
        await deliveries.put("low")

    async def high(_message: AbstractIncomingMessage) -> None:
        await deliveries.put("high")

    await queue.consume(low, no_ack=True)
    favoured = await (await connection.channel()).get_queue(queue.name)
    await favoured.consume(high, no_ack=True, arguments={"x-priority": 5})
    await publish(channel, queue, *"abcde")
    assert [await deliveries.get() for _ in range(5)] == ["high"] * 5


async def test_cancelled_consumer_gets_no_more(channel: AbstractRobustChannel) -> None:
    queue = await channel.declare_queue(unique_name("queue"), exclusive=True)
    deliveries: asyncio.Queue[bytes] = asyncio.Queue()

    async def take(message: AbstractIncomingMessage) -> None:
        await deliveries.put(message.body)

    tag = await queue.consume(take, no_ack=True)
    await publish(channel, queue, "a")
    assert await deliveries.get() == b"a"
    await queue.cancel(tag)
    await publish(channel, queue, "b")
    assert (await queue.get(no_ack=True)).body == b"b"
    assert deliveries.empty()


async def test_exclusive_queue_is_locked_for_another_connection(
    broker: BrokerProcess, channel: AbstractRobustChannel
) -> None:
    queue = await channel.declare_queue(unique_name("exclusive"), exclusive=True)
    async with await aio_pika.connect(broker.url) as other:
        with pytest.raises(ChannelLockedResource):
            await (await other.channel()).declare_queue(queue.name, exclusive=True)


async def test_exclusive_consumer_is_alone(broker: BrokerProcess, queue: AbstractRobustQueue) -> None:
    async def ignore(_message: AbstractIncomingMessage) -> None: ...

    await queue.consume(ignore, exclusive=True)
    async with await aio_pika.connect(broker.url) as other:
        rabbitmq = await (await other.channel()).get_queue(queue.name)
        with pytest.raises(ChannelAccessRefused, match="in exclusive use"):
            await rabbitmq.consume(ignore)


async def test_passive_declare_of_a_missing_queue_or_exchange_is_not_found(
    connection: AbstractRobustConnection,
) -> None:
    missing = unique_name("missing")
    channel = await connection.channel()
    with pytest.raises(ChannelNotFoundEntity, match=f"NOT_FOUND - no queue '{missing}' in vhost '/'"):
        await channel.declare_queue(missing, passive=True)
    channel = await connection.channel()
    with pytest.raises(ChannelNotFoundEntity, match=f"NOT_FOUND - no exchange '{missing}' in vhost '/'"):
        await channel.get_exchange(missing)


async def test_declaring_otherwise_is_a_failed_precondition(broker: BrokerProcess, queue: AbstractRobustQueue) -> None:
    async with await aio_pika.connect(broker.url) as other:
        with pytest.raises(ChannelPreconditionFailed, match="inequivalent arg 'auto_delete' for queue"):
            await (await other.channel()).declare_queue(queue.name, auto_delete=False)


async def test_channel_closed_by_the_broker_tells_so_to_its_callbacks(broker: BrokerProcess) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        reasons: asyncio.Queue[BaseException | None] = asyncio.Queue()
        channel.close_callbacks.add(lambda _channel, reason: reasons.put_nowait(reason))
        with pytest.raises(ChannelClosed):
            await channel.declare_queue("amq.reserved")
        assert isinstance(await reasons.get(), ChannelAccessRefused)
        assert channel.is_closed
        assert not connection.is_closed


async def test_bindings_route_and_unbinding_ends_it(channel: AbstractRobustChannel) -> None:
    topics = await channel.declare_exchange(unique_name("topics"), ExchangeType.TOPIC, auto_delete=True)
    keeper, queue = await channel.declare_queue(exclusive=True), await channel.declare_queue(exclusive=True)
    await keeper.bind(topics, "#")
    await queue.bind(topics, "orders.*.created")
    await topics.publish(Message(b"1"), "orders.eu.created")
    await topics.publish(Message(b"2"), "orders.eu.deleted")
    await queue.unbind(topics, "orders.*.created")
    await topics.publish(Message(b"3"), "orders.eu.created")
    assert (await queue.get(no_ack=True)).body == b"1"
    assert await queue.get(fail=False) is None
    assert [(await keeper.get(no_ack=True)).body for _ in range(3)] == [b"1", b"2", b"3"]


async def test_queue_tells_its_counts_and_is_purged_and_deleted(channel: AbstractRobustChannel) -> None:
    name = unique_name("counted")
    queue = await channel.declare_queue(name)
    await publish(channel, queue, "a", "b", "c")
    result = (await channel.declare_queue(name)).declaration_result
    assert (result.queue, result.message_count, result.consumer_count) == (name, 3, 0)
    assert (await queue.purge()).message_count == 3
    await publish(channel, queue, "d")
    assert (await queue.delete(if_empty=False)).message_count == 1
    with pytest.raises(ChannelNotFoundEntity):
        await channel.get_queue(name)
