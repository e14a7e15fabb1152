"""The applications of the soak: each does one kind of work, checks its results, and cleans up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aio_pika
import aiohttp
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from pamqp import commands

from compat.unique_names import unique_name
from tests.client import Client

MESSAGES_MAX = 200
BODY_BYTES_MAX = 4096
TTL_MS = 20
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Place:
    """A broker's addresses, and a session for its HTTP API."""

    url: str
    port: int
    management_url: str
    http: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer of the HTTP API, None without content. Raise ClientResponseError for a refusal."""
        async with self.http.request(method, f"{self.management_url}/api/{path}", json=body) as answer:
            answer.raise_for_status()
            return await answer.json() if answer.status == 200 else None


# An application works once and returns the number of messages published. It raises an error for a wrong result.
Application = Callable[[Place, random.Random], Awaitable[int]]


async def publish(channel: AbstractChannel, queue: str, dice: random.Random) -> list[bytes]:
    """Publish some messages with confirms; return their unique bodies."""
    count = dice.randrange(MESSAGES_MAX)
    bodies = [b"%d " % number + dice.randbytes(dice.randrange(BODY_BYTES_MAX)) for number in range(count)]
    mode = dice.choice(list(aio_pika.DeliveryMode))
    for body in bodies:
        message = aio_pika.Message(body, delivery_mode=mode, priority=dice.randrange(10))
        await channel.default_exchange.publish(message, queue, mandatory=True)
    return bodies


async def consume(
    queue: AbstractQueue,
    count: int,
    settle: Callable[[AbstractIncomingMessage], Awaitable[bool]],
    arguments: dict[str, Any] | None = None,
) -> None:
    """Consume until `settle` has finished this number of messages."""
    done, left = asyncio.Event(), count

    async def take(message: AbstractIncomingMessage) -> None:
        nonlocal left
        if await settle(message):
            left -= 1
        if left <= 0:
            done.set()

    tag = await queue.consume(take, arguments=arguments)
    if count:
        await asyncio.wait_for(done.wait(), TIMEOUT_S)
    await queue.cancel(tag)


async def work_queue(place: Place, dice: random.Random) -> int:
    """Use a durable queue whose messages are acked, some of them after a redelivery."""
    async with await aio_pika.connect(place.url) as connection:
        channel = await connection.channel()
        await channel.set_qos(dice.randrange(1, 50))
        kind = dice.choice(["classic", "quorum"])
        queue = await channel.declare_queue(unique_name("work"), durable=True, arguments={"x-queue-type": kind})
        bodies, got = await publish(channel, queue.name, dice), set[bytes]()

        async def settle(message: AbstractIncomingMessage) -> bool:
            if not message.redelivered and dice.random() < 0.2:
                await message.nack(requeue=True)
                return False
            got.add(message.body)
            await message.ack()
            return True

        await consume(queue, len(bodies), settle)
        assert got == set(bodies)
        await queue.delete(if_unused=False, if_empty=False)
    return len(bodies)


async def dead_letters(place: Place, dice: random.Random) -> int:
    """Check that rejected and expired messages reach the dead letter queue."""
    async with await aio_pika.connect(place.url) as connection:
        channel = await connection.channel()
        dead = await channel.declare_queue(unique_name("dead"), durable=True)
        arguments: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
        expires = dice.random() < 0.5
        if expires:
            arguments["x-message-ttl"] = TTL_MS
        queue = await channel.declare_queue(unique_name("dying"), durable=True, arguments=arguments)
        bodies = await publish(channel, queue.name, dice)

        async def reject(message: AbstractIncomingMessage) -> bool:
            await message.reject(requeue=False)
            return True

        if not expires:
            await consume(queue, len(bodies), reject)
        await consume(dead, len(bodies), acknowledge)
        await queue.delete(if_unused=False, if_empty=False)
        await dead.delete(if_unused=False, if_empty=False)
    return len(bodies)


async def acknowledge(message: AbstractIncomingMessage) -> bool:
    await message.ack()
    return True


async def stream(place: Place, dice: random.Random) -> int:
    """Read a stream twice from its beginning."""
    async with await aio_pika.connect(place.url) as connection:
        channel = await connection.channel()
        await channel.set_qos(20)
        queue = await channel.declare_queue(unique_name("log"), durable=True, arguments={"x-queue-type": "stream"})
        bodies = await publish(channel, queue.name, dice)
        for _ in range(2):
            await consume(queue, len(bodies), acknowledge, {"x-stream-offset": "first"})
        await queue.delete(if_unused=False, if_empty=False)
    return len(bodies)


async def cut_off(place: Place, dice: random.Random) -> int:
    """Reset the socket of a client with an exclusive priority queue while it works."""

    def work() -> None:
        client = Client(place.port).open()
        client.send(commands.Queue.Declare(queue="", exclusive=True, arguments={"x-max-priority": 5}))
        queue = client.expect(commands.Queue.DeclareOk).queue or ""
        client.send(commands.Basic.Consume(queue=queue))
        client.expect(commands.Basic.ConsumeOk)
        for _ in range(count):
            client.publish(queue, b"x" * BODY_BYTES_MAX)
        client.reset()

    count = dice.randrange(MESSAGES_MAX)
    await asyncio.to_thread(work)
    return count


async def administer(place: Place, dice: random.Random) -> int:
    """Create a vhost with a user, a policy and a queue, read it, and delete it."""
    name = unique_name("tenant")
    await place.ask("PUT", f"vhosts/{name}")
    await place.ask("PUT", f"users/{name}", {"password": "secret", "tags": ""})
    await place.ask("PUT", f"permissions/{name}/{name}", {"configure": ".*", "write": ".*", "read": ".*"})
    await place.ask("PUT", f"policies/{name}/short", {"pattern": ".*", "definition": {"max-length": 5}})
    await place.ask("PUT", f"queues/{name}/q", {"durable": dice.random() < 0.5})
    async with await aio_pika.connect(place.url.replace("guest:guest", f"{name}:secret") + name) as connection:
        channel = await connection.channel()
        for _ in range(10):
            await channel.default_exchange.publish(aio_pika.Message(b"x"), "q")
        for path in ("overview", "queues", "channels", "connections", f"queues/{name}/q"):
            await place.ask("GET", path)
    await place.ask("DELETE", f"vhosts/{name}")
    await place.ask("DELETE", f"users/{name}")
    return 10


APPLICATIONS: tuple[Application, ...] = (work_queue, dead_letters, stream, cut_off, administer)
