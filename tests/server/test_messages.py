"""A test in its own thread looks at what a server records, and waits for it."""

from __future__ import annotations

import threading
import time

import pytest
from pamqp import commands

from amqp_broker.broker.matching import Criteria
from amqp_broker.errors import DoesNotExist, InvalidParameter
from amqp_broker.server.messages import Messages
from tests.client import Client
from tests.running import RunningServer

# Long enough to be noticed if somebody waited for it.
LONG_S = 60.0


@pytest.fixture
def messages(running: RunningServer, client: Client) -> Messages:
    client.declare("q")
    return Messages(running.server)


def test_a_wait_ends_with_the_message_that_was_waited_for(messages: Messages, client: Client) -> None:
    timer = threading.Timer(0.05, client.publish, ("q", b"2"))
    client.publish("q", b"1")
    timer.start()
    found = messages.wait(Criteria(queue="q"), 2, timeout_s=LONG_S)
    assert [event.message.body for event in found if event.message] == [b"1", b"2"]
    assert messages.count(Criteria()) == len(messages.matching(Criteria())) == 2
    assert [event.kind for event in messages.timeline(found[0].number)] == ["publish"]


def test_a_wait_in_vain_tells_what_came_closest(messages: Messages, client: Client) -> None:
    client.publish("q", b"1")
    with pytest.raises(AssertionError, match="1 wanted, 0 there: event publish, queue 'q', body '2'") as raised:
        messages.wait(Criteria(queue="q", body=b"2"), timeout_s=0.2)
    assert "body is '1', not '2'" in str(raised.value)


def test_several_threads_may_wait_at_once(messages: Messages, client: Client) -> None:
    found: list[int] = []

    def wait(number: int) -> None:
        [event] = messages.wait(Criteria(body=b"%d" % number), timeout_s=LONG_S)
        found.append(event.number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for number in range(8):
        client.publish("q", b"%d" % number)
    for thread in threads:
        thread.join(LONG_S)
    assert sorted(found) == list(range(1, 9))


def test_that_nothing_comes_is_known_when_the_time_is_over(messages: Messages, client: Client) -> None:
    messages.none(Criteria("return"), timeout_s=0.01)
    started = time.monotonic()
    threading.Timer(0.02, client.publish, ("nowhere", b""), {"mandatory": True}).start()
    with pytest.raises(AssertionError, match="none wanted, 1 there: event return"):
        messages.none(Criteria("return"), timeout_s=LONG_S)
    assert time.monotonic() - started < LONG_S


def test_a_queue_is_waited_for_until_it_is_idle(messages: Messages, client: Client) -> None:
    client.publish("q", b"x")
    messages.wait(Criteria())
    with pytest.raises(AssertionError, match="not idle: queue 'q' has 1 ready and 0 unacked"):
        messages.idle(timeout_s=0.01)
    client.consume("q")
    client.expect_delivery()
    threading.Timer(0.05, client.send, (commands.Basic.Ack(1),)).start()
    messages.idle("q", timeout_s=LONG_S)


def test_a_record_begins_where_there_is_none_and_forgets_what_it_is_told(messages: Messages, client: Client) -> None:
    client.publish("q", b"x")
    messages.wait(Criteria())
    messages.clear()
    messages.none(Criteria(None))


def test_what_cannot_be_asked_is_refused(running: RunningServer, messages: Messages) -> None:
    with pytest.raises(InvalidParameter, match="is none of"):
        messages.count(Criteria("acked"))
    with pytest.raises(DoesNotExist, match="'none' does not exist"):
        Messages(running.server, "none")
