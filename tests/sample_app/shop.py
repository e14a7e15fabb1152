"""A small order service as its users write one.

Orders are published with confirms, failures retried through a dead-letter exchange, and prices asked for by RPC.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from pamqp.common import FieldTable

ATTEMPTS_MAX = 3
RETRY_MS = 50


class Shop:
    """Publishes orders, and handles them with `charge`, which may fail."""

    def __init__(self, channel: AbstractChannel, charge: Callable[[dict[str, object]], Awaitable[None]]) -> None:
        self.channel = channel
        self.charge = charge
        self.orders: AbstractQueue
        self.failed: AbstractQueue

    async def declare(self) -> None:
        retry: FieldTable = {
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "orders",
            "x-message-ttl": RETRY_MS,
        }
        dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.retry"}
        self.orders = await self.channel.declare_queue("orders", durable=True, arguments=dead)
        await self.channel.declare_queue("orders.retry", durable=True, arguments=retry)
        self.failed = await self.channel.declare_queue("orders.failed", durable=True)

    async def order(self, **fields: object) -> None:
        """Return when the broker has the order. Raise aio_pika's DeliveryError if no queue takes it."""
        message = aio_pika.Message(json.dumps(fields).encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self.channel.default_exchange.publish(message, "orders", mandatory=True)

    async def work(self) -> None:
        await self.channel.set_qos(prefetch_count=10)
        await self.orders.consume(self._handle)

    async def _handle(self, message: AbstractIncomingMessage) -> None:
        try:
            await self.charge(json.loads(message.body))
        except RuntimeError:
            if 1 + retries_of(message) < ATTEMPTS_MAX:
                await message.reject()
                return
            await self.channel.default_exchange.publish(aio_pika.Message(message.body), "orders.failed")
        await message.ack()


def retries_of(message: AbstractIncomingMessage) -> int:
    """How often it came back from `orders.retry`, as the broker has noted in its header."""
    deaths: Any = message.headers.get("x-death", [])
    return sum(death["count"] for death in deaths if death["queue"] == "orders")


async def serve_prices(channel: AbstractChannel, prices: dict[str, int]) -> None:
    """Answer who asks for the price of something."""

    async def answer(message: AbstractIncomingMessage) -> None:
        assert message.reply_to is not None
        body = json.dumps(prices.get(message.body.decode())).encode()
        reply = aio_pika.Message(body, correlation_id=message.correlation_id)
        await channel.default_exchange.publish(reply, message.reply_to)
        await message.ack()

    await channel.set_qos(prefetch_count=10)
    queue = await channel.declare_queue("prices", durable=True)
    await queue.consume(answer)


async def price_of(channel: AbstractChannel, article: str) -> int | None:
    """Ask for a price, and wait for the answer."""
    answers: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
    replies = await channel.declare_queue(exclusive=True)
    tag = await replies.consume(answers.put, no_ack=True)
    question = aio_pika.Message(article.encode(), reply_to=replies.name, correlation_id=str(uuid.uuid4()))
    await channel.default_exchange.publish(question, "prices", mandatory=True)
    answer = await asyncio.wait_for(answers.get(), 10)
    assert answer.correlation_id == question.correlation_id
    await replies.cancel(tag)
    price: int | None = json.loads(answer.body)
    return price
