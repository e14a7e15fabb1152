"""A test in another thread reads the event log of a server, and waits for events."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import aio_pika
import pytest
from pamqp import commands

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter, NotFound
from amqp_broker.broker.observe.matching import Criteria
from amqp_broker.testing.embedded_broker import EmbeddedBroker
from amqp_broker.testing.event_log import EmbeddedEventLog
from tests.client import Client
from tests.running import RunningServer

# A timeout that no test reaches.
LONG_S = 60.0


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with RunningServer() as running:
        yield running


@pytest.fixture
def client(running: RunningServer) -> Iterator[Client]:
    with Client(running.port).open() as client:
        yield client


@pytest.fixture
def log(running: RunningServer, client: Client) -> EmbeddedEventLog:
    client.declare("q")
    return EmbeddedEventLog(running)


def test_a_wait_ends_with_its_last_event(log: EmbeddedEventLog, client: Client) -> None:
    timer = threading.Timer(0.05, client.publish, ("q", b"2"))
    client.publish("q", b"1")
    timer.start()
    found = log.wait(Criteria(queue="q"), 2, timeout_s=LONG_S)
    assert [event.message.body for event in found if event.message] == [b"1", b"2"]
    assert log.count(Criteria()) == len(log.matching(Criteria())) == 2
    assert [event.kind for event in log.timeline(found[0].number)] == ["publish"]


def test_a_failed_wait_names_the_closest_events(log: EmbeddedEventLog, client: Client) -> None:
    client.publish("q", b"1")
    with pytest.raises(AssertionError, match="1 wanted, 0 found: event publish, queue 'q', body '2'") as raised:
        log.wait(Criteria(queue="q", body=b"2"), timeout_s=0.2)
    assert "body is '1', not '2'" in str(raised.value)


def test_several_threads_wait_at_once(log: EmbeddedEventLog, client: Client) -> None:
    found: list[int] = []

    def wait(number: int) -> None:
        [event] = log.wait(Criteria(body=b"%d" % number), timeout_s=LONG_S)
        found.append(event.number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for number in range(8):
        client.publish("q", b"%d" % number)
    for thread in threads:
        thread.join(LONG_S)
    assert sorted(found) == list(range(1, 9))


def test_waiting_for_none_fails_as_soon_as_an_event_matches(log: EmbeddedEventLog, client: Client) -> None:
    log.none(Criteria("return"), timeout_s=0.01)
    started = time.monotonic()
    threading.Timer(0.02, client.publish, ("nowhere", b""), {"mandatory": True}).start()
    with pytest.raises(AssertionError, match="none wanted, 1 found: event return"):
        log.none(Criteria("return"), timeout_s=LONG_S)
    assert time.monotonic() - started < LONG_S


def test_idle_waits_for_a_queue(log: EmbeddedEventLog, client: Client) -> None:
    client.publish("q", b"x")
    log.wait(Criteria())
    with pytest.raises(AssertionError, match="not idle: queue 'q' has 1 ready and 0 unacked"):
        log.idle(timeout_s=0.01)
    client.consume("q")
    client.expect_delivery()
    threading.Timer(0.05, client.send, (commands.Basic.Ack(1),)).start()
    log.idle("q", timeout_s=LONG_S)


def test_a_missing_queue_is_not_idle(log: EmbeddedEventLog, client: Client) -> None:
    client.declare("orders")
    with pytest.raises(NotFound, match=r"no queue 'order' in vhost '/': .*'orders'"):
        log.idle("order")


def test_the_log_is_switched_on_and_cleared(log: EmbeddedEventLog, client: Client) -> None:
    client.publish("q", b"x")
    log.wait(Criteria())
    log.clear()
    log.none(Criteria(None))


def test_invalid_criteria_and_vhosts_are_refused(running: RunningServer, log: EmbeddedEventLog) -> None:
    with pytest.raises(InvalidParameter, match="is not one of"):
        log.count(Criteria("acked"))
    with pytest.raises(DoesNotExist, match="'none' does not exist"):
        EmbeddedEventLog(running, "none")


def test_the_log_of_a_vhost_goes_on_after_a_restart() -> None:
    with EmbeddedBroker() as broker, broker.vhost() as vhost:
        log = vhost.event_log()
        broker.restart()
        with Client(broker.port).open(vhost=vhost.name) as client:
            client.publish("nowhere", b"1")
            assert [event.message.body for event in log.wait(Criteria()) if event.message] == [b"1"]


async def test_an_asyncio_client_works_while_its_test_awaits() -> None:
    with EmbeddedBroker() as broker:
        log = EmbeddedEventLog(broker)
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("orders", durable=True)
            waiting = asyncio.create_task(log.wait_async(Criteria(event="ack", queue="orders"), 2))
            for body in (b"1", b"2"):
                await channel.default_exchange.publish(aio_pika.Message(body), "orders")
            with pytest.raises(AssertionError, match="not idle: queue 'orders' has 2 ready"):
                await log.idle_async(timeout_s=0)
            idle = asyncio.create_task(log.idle_async())
            for _ in range(2):
                await (await queue.get()).ack()
            assert [event.kind for event in await waiting] == ["ack", "ack"]
            await idle
            await log.none_async(Criteria(event="return"))
            with pytest.raises(AssertionError, match="none wanted, 2 found"):
                await log.none_async(Criteria(event="ack"))
            with pytest.raises(AssertionError, match="3 wanted, 2 found"):
                await log.wait_async(Criteria(event="ack"), 3, timeout_s=0)


async def test_a_broker_in_the_loop_of_the_test_is_awaited() -> None:
    async with EmbeddedBroker().run_in_loop() as broker:
        log = EmbeddedEventLog(broker)
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            await channel.default_exchange.publish(aio_pika.Message(b""), "nowhere", mandatory=False)
            assert [event.kind for event in await log.wait_async(Criteria())] == ["publish"]
        assert log.count(Criteria()) == 1
        with pytest.raises(RuntimeError, match="use the method that ends with _async"):
            log.wait(Criteria())
