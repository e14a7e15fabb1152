"""FastStream's RabbitBroker: subscribers in this process."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aiormq.exceptions import AMQPConnectionError, ProbableAuthenticationError
from faststream import AckPolicy
from faststream.rabbit import Channel, ExchangeType, QueueType, RabbitBroker, RabbitExchange, RabbitMessage, RabbitQueue
from faststream.security import BaseSecurity
from protocol import CA_FILE, PATIENCE_S, QUIET_S, TLS_URL, URL, WRONG_URL, ask, main, name


class Inbox(asyncio.Queue[Any]):
    async def take(self, count: int) -> list[Any]:
        return [await asyncio.wait_for(self.get(), PATIENCE_S) for _ in range(count)]


def queue(stem: str, **arguments: Any) -> RabbitQueue:
    return RabbitQueue(name(stem), exclusive=True, arguments=arguments)


@asynccontextmanager
async def running(*queues: RabbitQueue, **options: Any) -> AsyncIterator[tuple[RabbitBroker, Inbox]]:
    """A broker with one subscriber for these queues that puts bodies into an inbox."""
    broker, inbox = RabbitBroker(URL), Inbox()

    async def take(body: Any) -> None:
        await inbox.put(body)

    for one in queues:
        broker.subscriber(one, **options)(take)
    async with broker:
        await broker.start()
        yield broker, inbox


async def connect() -> None:
    q = queue("connect")
    async with running(q) as (broker, inbox):
        await broker.publish({"n": 1}, q, message_id="m1")
        assert await inbox.take(1) == [{"n": 1}]


async def topology() -> None:
    exchange = RabbitExchange(name("events"), type=ExchangeType.TOPIC)
    q = RabbitQueue(name("topology"), exclusive=True, routing_key="order.#")
    async with running(q, exchange=exchange) as (broker, inbox):
        await broker.publish("1", exchange=exchange, routing_key="order.created")
        await broker.publish("2", exchange=exchange, routing_key="invoice.created")
        await broker.publish("3", exchange=exchange, routing_key="order.paid")
        assert await inbox.take(2) == ["1", "3"]
        await (await broker.declare_exchange(exchange)).delete()


async def confirms() -> None:
    q = queue("confirms")
    async with running(q) as (broker, inbox):
        await asyncio.gather(*(broker.publish(number, q, persist=True) for number in range(100)))
        assert sorted(await inbox.take(100)) == list(range(100))


async def returns() -> None:
    """Unroutable messages are reported with this setting of the connection's channel."""
    async with RabbitBroker(URL, default_channel=Channel(on_return_raises=True)) as broker:
        try:
            await broker.publish("lost", name("nobody"), mandatory=True)
        except Exception as error:
            assert "NO_ROUTE" in str(error) or "312" in str(error), error
        else:
            raise AssertionError("not returned")


async def consume() -> None:
    q, gate, begun = queue("consume"), asyncio.Event(), Inbox()
    broker = RabbitBroker(URL)

    @broker.subscriber(q, channel=Channel(prefetch_count=3))
    async def take(body: int) -> None:
        await begun.put(body)
        await gate.wait()

    async with broker:
        await broker.start()
        for number in range(10):
            await broker.publish(number, q)
        await asyncio.sleep(QUIET_S)
        assert begun.qsize() == 3, begun.qsize()
        gate.set()
        assert sorted(await begun.take(10)) == list(range(10))


async def requeue() -> None:
    q, seen = queue("requeue"), Inbox()
    broker = RabbitBroker(URL)

    @broker.subscriber(q, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def take(body: str, message: RabbitMessage) -> None:
        await seen.put(message.raw_message.redelivered)
        if not message.raw_message.redelivered:
            raise RuntimeError("again")

    async with broker:
        await broker.start()
        await broker.publish("again", q)
        assert await seen.take(2) == [False, True]


async def dead_letter() -> None:
    to = "x-dead-letter-routing-key"
    work = queue("work", **{"x-dead-letter-exchange": "", to: name("wait")})
    wait = queue("wait", **{"x-dead-letter-exchange": "", to: name("work"), "x-message-ttl": 200})
    seen, broker = Inbox(), RabbitBroker(URL)

    @broker.subscriber(work, ack_policy=AckPolicy.REJECT_ON_ERROR)
    async def take(body: str, message: RabbitMessage) -> None:
        await seen.put(message.headers.get("x-death"))
        if "x-death" not in message.headers:
            raise RuntimeError("later")

    async with broker:
        await broker.start()
        await broker.declare_queue(wait)
        await broker.publish("try", work)
        [nothing, deaths] = await seen.take(2)
        assert nothing is None
        assert [death["reason"] for death in deaths] == ["expired", "rejected"], deaths


async def ttl() -> None:
    dead = queue("dead")
    own = queue("own", **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name})
    async with running(dead) as (broker, inbox):
        await broker.declare_queue(own)
        await broker.publish("own", own, expiration=0.1)
        assert await inbox.take(1) == ["own"]


async def priority() -> None:
    q = queue("priority", **{"x-max-priority": 5})
    async with running() as (broker, inbox):
        await broker.declare_queue(q)
        for number in (1, 5, 3):
            await broker.publish(number, q, priority=number)

        async def take(body: int) -> None:
            await inbox.put(body)

        subscriber = broker.subscriber(q, channel=Channel(prefetch_count=1))
        subscriber(take)
        await subscriber.start()
        assert await inbox.take(3) == [5, 3, 1]


async def rpc() -> None:
    """`broker.request` asks through direct reply-to."""
    q, broker = queue("rpc"), RabbitBroker(URL)

    @broker.subscriber(q)
    async def upper(body: str) -> str:
        return body.upper()

    async with broker:
        await broker.start()
        answer = await broker.request("question", q, timeout=PATIENCE_S)
        assert await answer.decode() == "QUESTION"


async def stream() -> None:
    q = RabbitQueue(name("stream"), queue_type=QueueType.STREAM, durable=True)
    async with running() as (broker, _):
        declared = await broker.declare_queue(q)
        for number in range(10):
            await broker.publish(number, q)
        for offset, expected in (("first", [0, 1, 2]), (7, [7, 8, 9])):
            options = {"channel": Channel(prefetch_count=10), "consume_args": {"x-stream-offset": offset}}
            async with running(q, **options) as (_, inbox):
                assert await inbox.take(3) == expected
        await declared.delete(if_unused=False, if_empty=False)


async def large() -> None:
    q, body = queue("large"), "0123456789abcdef" * ((1 << 20) - 64)
    async with running(q) as (broker, inbox):
        await broker.publish(body, q)
        assert await inbox.take(1) == [body]


async def tls() -> None:
    for authority in (CA_FILE, None):
        secure = BaseSecurity(ssl_context=ssl.create_default_context(cafile=authority), use_ssl=True)
        try:
            async with RabbitBroker(TLS_URL, security=secure) as broker:
                await broker.connect()
        except AMQPConnectionError as error:
            assert authority is None, error
            assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
        else:
            assert authority, "connected without the authority"


async def wrong_password() -> None:
    try:
        await RabbitBroker(WRONG_URL).connect()
    except ProbableAuthenticationError as error:
        assert "ACCESS_REFUSED" in str(error), error
    else:
        raise AssertionError("not refused")


async def recovers(what: str) -> None:
    q = RabbitQueue(name(f"recovers-{what}"), durable=True)
    async with running(q) as (broker, inbox):
        await broker.publish("before", q)
        assert await inbox.take(1) == ["before"]
        await asyncio.to_thread(ask, what)
        async with asyncio.timeout(2 * PATIENCE_S):
            while inbox.empty():
                try:
                    await asyncio.wait_for(broker.publish("after", q), 2)
                except Exception:
                    await asyncio.sleep(0.2)
        assert await inbox.take(1) == ["after"]


async def forced_close() -> None:
    await recovers("CLOSE")


async def reconnect() -> None:
    await recovers("RESTART")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    return lambda: asyncio.run(scenario())


SCENARIOS = (
    connect, topology, confirms, returns, consume, requeue, dead_letter, ttl, priority, rpc, stream, large, tls,
    wrong_password, forced_close, reconnect,
)  # fmt: skip

main({scenario.__name__: run(scenario) for scenario in SCENARIOS})
