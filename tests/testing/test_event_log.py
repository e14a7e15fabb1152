"""A test in another thread reads the event log of a server, and waits for events."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from pamqp import commands

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.observe.matching import Criteria
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
    return EmbeddedEventLog(running.server)


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


def test_the_log_is_switched_on_and_cleared(log: EmbeddedEventLog, client: Client) -> None:
    client.publish("q", b"x")
    log.wait(Criteria())
    log.clear()
    log.none(Criteria(None))


def test_invalid_criteria_and_vhosts_are_refused(running: RunningServer, log: EmbeddedEventLog) -> None:
    with pytest.raises(InvalidParameter, match="is not one of"):
        log.count(Criteria("acked"))
    with pytest.raises(DoesNotExist, match="'none' does not exist"):
        EmbeddedEventLog(running.server, "none")
