"""aiormq, the layer below aio-pika: no recovery, and all as AMQP has it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiormq
from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import (
    ChannelLockedResource,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    ProbableAuthenticationError,
)
from pamqp.commands import Basic
from protocol import CA_FILE, PATIENCE_S, QUIET_S, TLS_URL, URL, WRONG_URL, ask, deaths, main, name, unsupported


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[AbstractChannel]:
    connection = await aiormq.connect(URL)
    try:
        yield await connection.channel(**options)
    finally:
        await connection.close()


async def queue(channel: AbstractChannel, stem: str, **arguments: Any) -> str:
    await channel.queue_declare(name(stem), exclusive=True, arguments=arguments)
    return name(stem)


async def send(channel: AbstractChannel, key: str, body: bytes, **properties: Any) -> None:
    await channel.basic_publish(body, routing_key=key, properties=Basic.Properties(**properties))


class Inbox(asyncio.Queue[DeliveredMessage]):
    async def next(self) -> DeliveredMessage:
        return await asyncio.wait_for(self.get(), PATIENCE_S)

    async def bodies(self, count: int) -> list[bytes]:
        return [(await self.next()).body for _ in range(count)]


def tag_of(message: DeliveredMessage) -> int:
    assert message.delivery_tag is not None
    return message.delivery_tag


async def consume_into_inbox(channel: AbstractChannel, queue: str, **options: Any) -> Inbox:
    inbox = Inbox()
    await channel.basic_consume(queue, inbox.put, **options)
    return inbox


async def connect() -> None:
    async with opened() as channel:
        q = await queue(channel, "connect")
        inbox = await consume_into_inbox(channel, q, no_ack=True)
        await send(channel, q, b"hello", content_type="text/plain", message_id="m1", headers={"n": 1})
        got = await inbox.next()
        properties = got.header.properties
        assert (got.body, properties.message_id, properties.headers) == (b"hello", "m1", {"n": 1})
        await channel.close()


async def topology() -> None:
    async with opened() as channel, opened() as missing, opened() as different:
        first, second, q = name("events"), name("archive"), name("topology")
        await channel.exchange_declare(first, exchange_type="topic", durable=True)
        await channel.exchange_declare(second, exchange_type="fanout", durable=True)
        await channel.queue_declare(q, durable=True)
        await channel.exchange_bind(second, first, routing_key="order.#")
        await channel.queue_bind(q, second)
        await channel.basic_publish(b"1", exchange=first, routing_key="order.created")
        await channel.exchange_unbind(second, first, routing_key="order.#")
        await channel.basic_publish(b"2", exchange=first, routing_key="order.created")
        await channel.queue_unbind(q, second)
        assert (await channel.queue_purge(q)).message_count == 1
        try:
            await missing.queue_declare(name("missing"), passive=True)
        except ChannelNotFoundEntity:
            pass
        else:
            raise AssertionError("not refused with 404")
        try:
            await different.queue_declare(q, durable=False)
        except ChannelPreconditionFailed:
            pass
        else:
            raise AssertionError("not refused with 406")
        await channel.queue_delete(q)
        await channel.exchange_delete(first)
        await channel.exchange_delete(second)


async def confirms() -> None:
    async with opened(publisher_confirms=True) as channel:
        q = await queue(channel, "confirms")
        await asyncio.gather(*(send(channel, q, b"x", delivery_mode=2) for _ in range(100)))
        assert (await channel.queue_declare(q, passive=True)).message_count == 100


async def returns() -> None:
    async with opened(publisher_confirms=True, on_return_raises=True) as channel:
        try:
            await channel.basic_publish(b"lost", routing_key=name("nobody"), mandatory=True)
        except aiormq.exceptions.PublishError as error:
            assert error.message is not None
            assert isinstance(error.message.delivery, Basic.Return), error
            assert error.message.delivery.reply_code == 312, error
        else:
            raise AssertionError("not returned")


async def consume() -> None:
    async with opened() as channel:
        q = await queue(channel, "consume")
        for number in range(10):
            await send(channel, q, b"%d" % number)
        await channel.basic_qos(prefetch_count=3)
        inbox = await consume_into_inbox(channel, q)
        await asyncio.sleep(QUIET_S)
        assert inbox.qsize() == 3
        messages = [await inbox.next() for _ in range(3)]
        await channel.basic_ack(tag_of(messages[-1]), multiple=True)
        assert await inbox.bodies(3) == [b"3", b"4", b"5"]


async def requeue() -> None:
    async with opened() as channel:
        q = await queue(channel, "requeue")
        inbox = await consume_into_inbox(channel, q)
        await send(channel, q, b"again")
        first = await inbox.next()
        await channel.basic_nack(tag_of(first))
        second = await inbox.next()
        assert (first.redelivered, second.redelivered) == (False, True)


async def dead_letter() -> None:
    async with opened() as channel:
        to = "x-dead-letter-routing-key"
        work = await queue(channel, "work", **{"x-dead-letter-exchange": "", to: name("wait")})
        await queue(channel, "wait", **{"x-dead-letter-exchange": "", to: work, "x-message-ttl": 200})
        inbox = await consume_into_inbox(channel, work)
        await send(channel, work, b"try")
        await channel.basic_reject(tag_of(await inbox.next()), requeue=False)
        history = deaths((await inbox.next()).header.properties.headers)
        assert history == [(name("wait"), "expired", 1), (work, "rejected", 1)], history


async def ttl() -> None:
    async with opened() as channel:
        dead = await queue(channel, "dead")
        inbox = await consume_into_inbox(channel, dead, no_ack=True)
        to_dead: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        await send(channel, await queue(channel, "own", **to_dead), b"own", expiration="100")
        assert await inbox.bodies(1) == [b"own"]
        await send(channel, await queue(channel, "all", **to_dead, **{"x-message-ttl": 200}), b"all")
        assert await inbox.bodies(1) == [b"all"]


async def priority() -> None:
    async with opened() as channel:
        q = await queue(channel, "priority", **{"x-max-priority": 5})
        for number in (1, 5, 3):
            await send(channel, q, b"%d" % number, priority=number)
        inbox = await consume_into_inbox(channel, q, no_ack=True)
        assert await inbox.bodies(3) == [b"5", b"3", b"1"]


async def rpc() -> None:
    async with opened() as server, opened(publisher_confirms=False) as client:
        q = await queue(server, "rpc")

        async def serve(question: DeliveredMessage) -> None:
            asked = question.header.properties
            await send(server, str(asked.reply_to), question.body.upper(), correlation_id=asked.correlation_id)

        await server.basic_consume(q, serve, no_ack=True)
        inbox = await consume_into_inbox(client, "amq.rabbitmq.reply-to", no_ack=True)
        await send(client, q, b"question", reply_to="amq.rabbitmq.reply-to", correlation_id="7")
        answer = await inbox.next()
        assert (answer.body, answer.header.properties.correlation_id) == (b"QUESTION", "7")


async def server_named() -> None:
    async with opened() as channel, opened() as other:
        q = (await channel.queue_declare(exclusive=True)).queue
        assert q is not None
        assert q.startswith("amq.gen-"), q
        try:
            await consume_into_inbox(other, q)
        except ChannelLockedResource:
            pass
        else:
            raise AssertionError("not refused with 405")


async def stream() -> None:
    async with opened() as channel:
        q = name("stream")
        await channel.queue_declare(q, durable=True, arguments={"x-queue-type": "stream"})
        for number in range(10):
            await send(channel, q, b"%d" % number)
        for offset, expected in (("first", [b"0", b"1", b"2"]), (7, [b"7", b"8", b"9"])):
            async with opened() as reader:
                await reader.basic_qos(prefetch_count=10)
                inbox = await consume_into_inbox(reader, q, arguments={"x-stream-offset": offset})
                assert await inbox.bodies(3) == expected
        await channel.queue_delete(q)


async def large() -> None:
    async with opened() as channel:
        q = await queue(channel, "large")
        body = b"0123456789abcdef" * (1 << 20)
        await send(channel, q, body)
        assert await (await consume_into_inbox(channel, q, no_ack=True)).bodies(1) == [body]


async def tls() -> None:
    trusting = ssl.create_default_context(cafile=CA_FILE)
    await (await aiormq.connect(TLS_URL, context=trusting)).close()
    try:
        await aiormq.connect(TLS_URL, context=ssl.create_default_context())
    except aiormq.exceptions.AMQPConnectionError as error:
        assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
    else:
        raise AssertionError("connected without the authority")


async def wrong_password() -> None:
    try:
        await aiormq.connect(WRONG_URL)
    except ProbableAuthenticationError as error:
        assert "ACCESS_REFUSED" in str(error), error
    else:
        raise AssertionError("not refused")


async def forced_close() -> None:
    connection = await aiormq.connect(URL)
    await connection.channel()
    await asyncio.to_thread(ask, "CLOSE")
    error = await ended(connection)
    assert "CONNECTION_FORCED" in str(error), repr(error)


async def reconnect() -> None:
    connection = await aiormq.connect(URL)
    channel = await connection.channel(publisher_confirms=True)
    await channel.queue_declare(name("reconnect"), durable=True)
    await send(channel, name("reconnect"), b"kept", delivery_mode=2)
    await asyncio.to_thread(ask, "RESTART")
    await ended(connection)
    async with opened() as channel:
        inbox = await consume_into_inbox(channel, name("reconnect"), no_ack=True)
        assert await inbox.bodies(1) == [b"kept"]
        await channel.queue_delete(name("reconnect"))


async def ended(connection: Any) -> BaseException:
    """Why the connection has ended, when it has."""
    try:
        await asyncio.wait_for(connection.closing, PATIENCE_S)
    except TimeoutError:
        raise AssertionError("the client did not report the lost connection") from None
    except BaseException as error:
        return error
    return AssertionError("closed without a reason")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    return lambda: asyncio.run(scenario())


SCENARIOS = (
    connect, topology, confirms, returns, consume, requeue, dead_letter, ttl, priority, rpc, server_named, stream,
    large, tls, wrong_password, forced_close, reconnect,
)  # fmt: skip

main(
    {scenario.__name__: run(scenario) for scenario in SCENARIOS}
    | {"cancel": unsupported("it does not report that the broker has cancelled a consumer")}
)
