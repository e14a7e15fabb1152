"""The service's tests: they know nothing of the broker but its URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aio_pika
import pytest
import pytest_asyncio
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import DeliveryError
from celery.contrib.testing.worker import start_worker
from kombu import pools
from shop import ATTEMPTS_MAX, Shop, price_of, serve_prices
from tasks import app, invoice


@pytest_asyncio.fixture
async def channel(amqp_url: str) -> AsyncIterator[AbstractChannel]:
    async with await aio_pika.connect(amqp_url) as connection:
        yield await connection.channel(publisher_confirms=True, on_return_raises=True)


class Till:
    """A payment that succeeds after a given number of failures."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.attempts = 0
        self.charged: asyncio.Queue[dict[str, object]] = asyncio.Queue()

    async def charge(self, order: dict[str, object]) -> None:
        self.attempts += 1
        if self.attempts <= self.failures:
            raise RuntimeError("the bank is closed")
        self.charged.put_nowait(order)


async def test_an_order_is_charged(channel: AbstractChannel) -> None:
    till = Till()
    shop = Shop(channel, till.charge)
    await shop.declare()
    await shop.order(number=1)
    await shop.work()
    assert await asyncio.wait_for(till.charged.get(), 10) == {"number": 1}


async def test_an_unroutable_order_is_an_error(channel: AbstractChannel) -> None:
    with pytest.raises(DeliveryError):
        await Shop(channel, Till().charge).order(number=1)


async def test_a_failure_is_tried_again(channel: AbstractChannel) -> None:
    till = Till(failures=2)
    shop = Shop(channel, till.charge)
    await shop.declare()
    await shop.work()
    await shop.order(number=1)
    assert await asyncio.wait_for(till.charged.get(), 10) == {"number": 1}
    assert till.attempts == 3


async def test_an_order_that_fails_too_often_is_put_aside(channel: AbstractChannel) -> None:
    till, failed = Till(failures=99), asyncio.Queue[bytes]()
    shop = Shop(channel, till.charge)
    await shop.declare()
    await shop.work()

    async def note(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        failed.put_nowait(message.body)

    await shop.failed.consume(note, no_ack=True)
    await shop.order(number=1)
    assert await asyncio.wait_for(failed.get(), 10) == b'{"number": 1}'
    assert till.attempts == ATTEMPTS_MAX


async def test_prices_are_answered(channel: AbstractChannel) -> None:
    await serve_prices(channel, {"tea": 4})
    assert await price_of(channel, "tea") == 4
    assert await price_of(channel, "gold") is None


def test_invoices_are_written_by_a_worker(amqp_url: str) -> None:
    app.conf.broker_url = amqp_url
    # Its heart is what wakes the worker when it is to end.
    with start_worker(app, pool="solo", perform_ping_check=False, without_heartbeat=False, shutdown_timeout=60):
        assert invoice.delay(7, 12).get(timeout=30) == "invoice 7: 12 EUR"
    # Celery keeps connections for what comes next.
    app.backend.result_consumer.stop()
    pools.reset()
    app.close()
