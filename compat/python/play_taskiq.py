"""taskiq with taskiq-aio-pika: sender and receiver in this process."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aiormq.exceptions import AMQPConnectionError, ProbableAuthenticationError
from protocol import CA_FILE, PATIENCE_S, TLS_URL, URL, WRONG_URL, ask, main, name
from taskiq import SimpleRetryMiddleware
from taskiq.api import run_receiver_task
from taskiq_aio_pika import AioPikaBroker
from taskiq_aio_pika.exchange import Exchange
from taskiq_aio_pika.queue import Queue

numbers = itertools.count(1)


def new_broker(url: str, **options: Any) -> AioPikaBroker:
    """With queues of its own: a task that is not acked when its receiver ends is no other receiver's."""
    number = next(numbers)
    return AioPikaBroker(
        url,
        exchange=Exchange(name=name(f"taskiq-{number}")),
        task_queues=[Queue(name=name(f"taskiq-{number}"))],
        dead_letter_queue=Queue(name=name(f"taskiq-dead-{number}")),
        delay_queue=Queue(name=name(f"taskiq-delay-{number}")),
        **options,
    )


class App:
    """A broker of taskiq, its receiver, and what its tasks have done."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.broker = new_broker(URL).with_middlewares(SimpleRetryMiddleware(default_retry_count=3))

        @self.broker.task
        async def note(value: Any) -> None:
            self.done.append(value)

        @self.broker.task(retry_on_error=True)
        async def flaky(value: str) -> None:
            self.done.append(value)
            if self.done.count(value) < 3:
                raise RuntimeError("again")

        self.note, self.flaky = note, flaky

    async def wait(self, is_so: Callable[[list[Any]], object], patience_s: float = 2 * PATIENCE_S) -> None:
        async with asyncio.timeout(patience_s):
            while not is_so(self.done):
                await asyncio.sleep(0.02)


@asynccontextmanager
async def working() -> AsyncIterator[App]:
    app = App()
    app.broker.is_worker_process = True
    await app.broker.startup()
    receiver = asyncio.create_task(run_receiver_task(app.broker))
    try:
        yield app
    finally:
        receiver.cancel()
        await asyncio.gather(receiver, return_exceptions=True)
        await app.broker.shutdown()


async def connect() -> None:
    async with working() as app:
        await app.note.kiq("hello")
        await app.wait(lambda done: done == ["hello"])


async def confirms() -> None:
    async with working() as app:
        await asyncio.gather(*(app.note.kiq(number) for number in range(100)))
        await app.wait(lambda done: sorted(done) == list(range(100)))


async def requeue() -> None:
    async with working() as app:
        await app.flaky.kiq("try")
        await app.wait(lambda done: done == ["try"] * 3)


async def ttl() -> None:
    """A delay by its queue with a time to live and a dead-letter exchange."""
    async with working() as app:
        await app.note.kicker().with_labels(delay=0.2).kiq("later")
        await app.wait(lambda done: done == ["later"])


async def large() -> None:
    async with working() as app:
        await app.note.kiq("0123456789abcdef" * ((1 << 20) - 64))
        await app.wait(lambda done: done and len(done[0]) == (16 << 20) - 1024)


async def tls() -> None:
    for authority in (CA_FILE, None):
        broker = new_broker(TLS_URL, ssl=True, ssl_context=ssl.create_default_context(cafile=authority))
        try:
            await broker.startup()
        except AMQPConnectionError as error:
            assert authority is None, error
            assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
        else:
            assert authority, "connected without the authority"
            await broker.shutdown()


async def wrong_password() -> None:
    try:
        await new_broker(WRONG_URL).startup()
    except ProbableAuthenticationError as error:
        assert "ACCESS_REFUSED" in str(error), error
    else:
        raise AssertionError("not refused")


async def recovers(what: str) -> None:
    """aio-pika's robust connection brings the sender and the receiver back."""
    async with working() as app:
        await app.note.kiq("before")
        await app.wait(lambda done: done == ["before"])
        await asyncio.to_thread(ask, what)
        async with asyncio.timeout(2 * PATIENCE_S):
            while True:
                try:
                    await asyncio.wait_for(app.note.kiq("after"), 2)
                    break
                except Exception:
                    await asyncio.sleep(0.2)
        await app.wait(lambda done: "after" in done)


async def forced_close() -> None:
    await recovers("CLOSE")


async def reconnect() -> None:
    await recovers("RESTART")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    return lambda: asyncio.run(scenario())


SCENARIOS = (connect, confirms, requeue, ttl, large, tls, wrong_password, forced_close, reconnect)

main({scenario.__name__: run(scenario) for scenario in SCENARIOS})
