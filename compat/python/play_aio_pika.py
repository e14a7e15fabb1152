"""aio-pika, with the robust connection that its users take."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed, ProbableAuthenticationError
from aiormq.exceptions import ChannelLockedResource
from protocol import CA_FILE, PATIENCE_S, QUIET_S, TLS_URL, URL, WRONG_URL, ask, deaths, main, name, unsupported


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect_robust(URL)
    async with connection, await connection.channel(**options) as channel:
        yield channel


async def queue(channel: AbstractChannel, stem: str, **arguments: Any) -> AbstractQueue:
    return await channel.declare_queue(name(stem), exclusive=True, arguments=arguments)


async def send(channel: AbstractChannel, key: str, body: bytes, **properties: Any) -> None:
    await channel.default_exchange.publish(Message(body, **properties), key)


class Inbox(asyncio.Queue[AbstractIncomingMessage]):
    async def next(self) -> AbstractIncomingMessage:
        return await asyncio.wait_for(self.get(), PATIENCE_S)

    async def bodies(self, count: int) -> list[bytes]:
        return [(await self.next()).body for _ in range(count)]


async def consume_into_inbox(queue: AbstractQueue, **options: Any) -> Inbox:
    inbox = Inbox()
    await queue.consume(inbox.put, **options)
    return inbox


async def connect() -> None:
    async with opened() as channel:
        q = await queue(channel, "connect")
        inbox = await consume_into_inbox(q, no_ack=True)
        await send(channel, q.name, b"hello", content_type="text/plain", message_id="m1", headers={"n": 1})
        got = await inbox.next()
        assert (got.body, got.content_type, got.message_id, got.headers) == (b"hello", "text/plain", "m1", {"n": 1})
        await channel.close()


async def topology() -> None:
    async with opened() as channel:
        first = await channel.declare_exchange(name("events"), ExchangeType.TOPIC, durable=True)
        second = await channel.declare_exchange(name("archive"), ExchangeType.FANOUT, durable=True)
        q = await channel.declare_queue(name("topology"), durable=True)
        await second.bind(first, "order.#")
        await q.bind(second)
        await first.publish(Message(b"1"), "order.created")
        await second.unbind(first, "order.#")
        await first.publish(Message(b"2"), "order.created")
        await q.unbind(second)
        assert (await q.purge()).message_count == 1
        async with opened() as other:
            try:
                await other.declare_queue(name("missing"), passive=True)
            except ChannelNotFoundEntity:
                pass
            else:
                raise AssertionError("not refused with 404")
        async with opened() as other:
            try:
                await other.declare_queue(q.name, durable=False)
            except ChannelPreconditionFailed:
                pass
            else:
                raise AssertionError("not refused with 406")
        await q.delete()
        await first.delete()
        await second.delete()


async def confirms() -> None:
    async with opened() as channel:
        q = await queue(channel, "confirms")
        await asyncio.gather(*(send(channel, q.name, b"x", delivery_mode=DeliveryMode.PERSISTENT) for _ in range(100)))
        assert (await q.declare()).message_count == 100


async def returns() -> None:
    async with opened(on_return_raises=True) as channel:
        try:
            await channel.default_exchange.publish(Message(b"lost"), name("nobody"), mandatory=True)
        except aio_pika.exceptions.PublishError as error:
            assert "NO_ROUTE" in str(error) or "312" in str(error), error
        else:
            raise AssertionError("not returned")


async def consume() -> None:
    async with opened() as channel:
        q = await queue(channel, "consume")
        for number in range(10):
            await send(channel, q.name, b"%d" % number)
        await channel.set_qos(3)
        inbox = await consume_into_inbox(q)
        await asyncio.sleep(QUIET_S)
        assert inbox.qsize() == 3
        messages = [await inbox.next() for _ in range(3)]
        await messages[-1].ack(multiple=True)
        assert await inbox.bodies(3) == [b"3", b"4", b"5"]


async def requeue() -> None:
    async with opened() as channel:
        q = await queue(channel, "requeue")
        inbox = await consume_into_inbox(q)
        await send(channel, q.name, b"again")
        first = await inbox.next()
        await first.nack()
        second = await inbox.next()
        assert (first.redelivered, second.redelivered) == (False, True)


async def dead_letter() -> None:
    async with opened() as channel:
        to = "x-dead-letter-routing-key"
        work = await queue(channel, "work", **{"x-dead-letter-exchange": "", to: name("wait")})
        await queue(channel, "wait", **{"x-dead-letter-exchange": "", to: name("work"), "x-message-ttl": 200})
        inbox = await consume_into_inbox(work)
        await send(channel, work.name, b"try")
        await (await inbox.next()).reject()
        again = await inbox.next()
        history = deaths(again.headers)
        assert history == [(name("wait"), "expired", 1), (name("work"), "rejected", 1)], history


async def ttl() -> None:
    async with opened() as channel:
        inbox = await consume_into_inbox(await queue(channel, "dead"), no_ack=True)
        to_dead: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("dead")}
        await queue(channel, "own", **to_dead)
        await queue(channel, "all", **to_dead, **{"x-message-ttl": 200})
        await send(channel, name("own"), b"own", expiration=0.1)
        assert await inbox.bodies(1) == [b"own"]
        await send(channel, name("all"), b"all")
        assert await inbox.bodies(1) == [b"all"]


async def priority() -> None:
    async with opened() as channel:
        q = await queue(channel, "priority", **{"x-max-priority": 5})
        for number in (1, 5, 3):
            await send(channel, q.name, b"%d" % number, priority=number)
        inbox = await consume_into_inbox(q, no_ack=True)
        assert await inbox.bodies(3) == [b"5", b"3", b"1"]


async def rpc() -> None:
    async with opened() as server, opened(publisher_confirms=False) as client:
        q = await queue(server, "rpc")

        async def serve(question: AbstractIncomingMessage) -> None:
            assert question.reply_to is not None
            await send(server, question.reply_to, question.body.upper(), correlation_id=question.correlation_id)

        await q.consume(serve, no_ack=True)
        reply_to = await client.get_queue("amq.rabbitmq.reply-to", ensure=False)
        inbox = await consume_into_inbox(reply_to, no_ack=True)
        await send(client, q.name, b"question", reply_to=reply_to.name, correlation_id="7")
        answer = await inbox.next()
        assert (answer.body, answer.correlation_id) == (b"QUESTION", "7")


async def server_named() -> None:
    async with opened() as channel:
        # The client names it, not the broker.
        q = await channel.declare_queue(exclusive=True)
        async with opened() as other:
            try:
                await consume_into_inbox(await other.get_queue(q.name, ensure=False))
            except ChannelLockedResource:
                pass
            else:
                raise AssertionError("not refused with 405")


async def stream() -> None:
    async with opened() as channel:
        q = await channel.declare_queue(name("stream"), durable=True, arguments={"x-queue-type": "stream"})
        for number in range(10):
            await send(channel, q.name, b"%d" % number)
        for offset, expected in (("first", [b"0", b"1", b"2"]), (7, [b"7", b"8", b"9"])):
            async with opened() as reader:
                await reader.set_qos(10)
                again = await reader.get_queue(q.name)
                inbox = await consume_into_inbox(again, arguments={"x-stream-offset": offset})
                assert await inbox.bodies(3) == expected
        await q.delete(if_empty=False, if_unused=False)


async def large() -> None:
    async with opened() as channel:
        q = await queue(channel, "large")
        body = b"0123456789abcdef" * (1 << 20)
        await send(channel, q.name, body)
        inbox = await consume_into_inbox(q, no_ack=True)
        assert await inbox.bodies(1) == [body]


async def tls() -> None:
    trusting = ssl.create_default_context(cafile=CA_FILE)
    await (await aio_pika.connect(TLS_URL, ssl_context=trusting)).close()
    try:
        await aio_pika.connect(TLS_URL, ssl_context=ssl.create_default_context())
    except aio_pika.exceptions.AMQPConnectionError as error:
        assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
    else:
        raise AssertionError("connected without the authority")


async def wrong_password() -> None:
    try:
        await aio_pika.connect(WRONG_URL)
    except ProbableAuthenticationError as error:
        assert "ACCESS_REFUSED" in str(error), error
    else:
        raise AssertionError("not refused")


async def forced_close() -> None:
    """The robust connection comes back by itself, with the queue and its consumer."""
    async with opened() as channel:
        q = await queue(channel, "forced_close")
        inbox = await consume_into_inbox(q, no_ack=True)
        await recover("CLOSE", channel)
        await send(channel, q.name, b"after")
        assert await inbox.bodies(1) == [b"after"]


async def reconnect() -> None:
    async with opened() as channel:
        q = await channel.declare_queue(name("reconnect"), durable=True)
        await send(channel, q.name, b"kept", delivery_mode=DeliveryMode.PERSISTENT)
        await recover("RESTART", channel)
        inbox = await consume_into_inbox(q, no_ack=True)
        assert await inbox.bodies(1) == [b"kept"]
        await q.delete(if_empty=False, if_unused=False)


async def recover(what: str, channel: Any) -> None:
    """Have that done, and wait until the connection has come back."""
    back = asyncio.Event()
    channel._connection.reconnect_callbacks.add(lambda *_: back.set())
    await asyncio.to_thread(ask, what)
    await asyncio.wait_for(back.wait(), PATIENCE_S + 15)


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
