"""Texts of tests: messages that change their places without a method of a client."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pamqp.commands import Basic, Channel, Confirm, Exchange, Queue, Tx
from pamqp.common import FieldTable

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe.event_log import EventLog
from amqp_broker.management.documents.pytest_text import pytest_text
from tests.peer import Lab, Peer

pytest_plugins = ["pytester"]


class Played:
    """A client at a broker with an event log."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.log: EventLog = self.lab.broker.event_logs.start(self.lab.vhost)
        self.peer: Peer = self.lab.connect()

    def text(self, *numbers: int) -> str:
        """Return the test of all messages, or of those with these numbers."""
        firsts = [event for event in self.log.events if self.log.is_first(event) and event.kind != "dead_letter"]
        lives = [self.log.timeline(event.number) for event in firsts if not numbers or event.number in numbers]
        return pytest_text(lives, self.lab.vhost, self.log)


@pytest.fixture
def played() -> Played:
    return Played()


def a_lost_channel(played: Played) -> None:
    peer = played.peer
    peer.declare("q")
    for body in (b"1", b"2"):
        peer.publish("q", body)
        peer.get("q", no_ack=False)
    peer.call(Channel.Close(200, "", 0, 0))
    peer.open_channel(1)
    peer.get("q", no_ack=True)


def a_lost_connection(played: Played) -> None:
    played.peer.declare("q")
    consumer = played.lab.connect()
    consumer.consume("q")
    played.peer.publish("q", b"1")
    consumer.disconnect()
    played.peer.get("q", no_ack=False)
    played.peer.send(Basic.Ack(1))


def a_message_that_is_due(played: Played) -> None:
    peer = played.peer
    peer.declare("q")
    arguments: FieldTable = {"x-delayed-type": "direct"}
    peer.call(Exchange.Declare(exchange="later", exchange_type="x-delayed-message", arguments=arguments))
    peer.call(Queue.Bind(queue="q", exchange="later", routing_key="k"))
    for delay_ms in (1000, 2000, 60_000):
        peer.publish("k", b"1", exchange="later", headers={"x-delay": delay_ms})
    played.lab.advance(3000)
    peer.get("q", no_ack=True)


def a_deleted_queue(played: Played) -> None:
    peer = played.peer
    peer.declare("q")
    for body in (b"1", b"2"):
        peer.publish("q", body)
    peer.get("q", no_ack=False)
    peer.call(Queue.Delete(queue="q"))
    peer.send(Basic.Ack(1))


def a_queue_that_refuses(played: Played) -> None:
    peer = played.peer
    peer.declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    for body in (b"1", b"2"):
        peer.publish("q", body)


@pytest.mark.parametrize(
    "play",
    [a_lost_channel, a_lost_connection, a_message_that_is_due, a_deleted_queue, a_queue_that_refuses],
    ids=lambda play: play.__name__,
)
def test_the_test_passes(play: Callable[[Played], None], played: Played, pytester: pytest.Pytester) -> None:
    # The clock of the program is the number `lab.now`, that of the log is real: both have to pass.
    played.lab.broker.now_us = lambda: played.lab.now * 1000
    play(played)
    pytester.makepyfile(played.text())
    pytester.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_transaction_is_not_repeated(played: Played) -> None:
    played.peer.declare("q")
    played.peer.call(Tx.Select())
    played.peer.publish("q", b"1")
    with pytest.raises(InvalidParameter, match="cannot repeat that a message is published in a transaction"):
        played.text()
    played.peer.call(Tx.Rollback())
    with pytest.raises(InvalidParameter, match="cannot repeat that a message is published in a transaction"):
        played.text()


def test_a_confirm_that_is_still_delayed_has_no_test(played: Played) -> None:
    played.peer.declare("q")
    played.peer.call(Confirm.Select())
    played.lab.broker.faults.add(Rule("confirm_delay", delay_ms=1000))
    played.peer.publish("q", b"1")
    with pytest.raises(InvalidParameter, match="the delayed confirm of message 1 has not been sent"):
        played.text()
    played.lab.advance(1000)
    assert "confirm_delay" in played.text()


@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish"])
def test_a_full_queue_needs_all_its_messages(played: Played, overflow: str) -> None:
    played.peer.declare("q", arguments={"x-max-length": 2, "x-overflow": overflow})
    for body in (b"1", b"2", b"3", b"4"):
        played.peer.publish("q", body)
    numbers = (1, 3) if overflow == "drop-head" else (1, 4)
    with pytest.raises(InvalidParameter, match="queue 'q' was full: a test needs the messages that it had, too"):
        played.text(*numbers)
    assert played.text().count("basic_publish") == 4
