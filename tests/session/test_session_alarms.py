"""Alarms: connections that publish are blocked until there is memory and disk again; others are not."""

from __future__ import annotations

import pytest
from pamqp import commands

from tests.peer import CAPABILITIES, Lab, Peer


@pytest.fixture
def publisher(lab: Lab, peer: Peer) -> Peer:
    peer.declare("q")
    peer.publish("q", b"1")
    return peer


@pytest.mark.parametrize(
    ("alarms", "reason"),
    [(["memory"], "low on memory"), (["disk"], "low on disk"), (["memory", "disk"], "low on memory & disk")],
)
def test_a_connection_that_first_publishes_during_an_alarm_is_blocked_with_the_reason(
    lab: Lab, peer: Peer, alarms: list[str], reason: str
) -> None:
    for alarm in alarms:
        lab.broker.set_alarm(alarm, True)
    peer.declare("q")
    peer.expect_nothing()
    peer.publish("q", b"1")
    assert peer.expect(commands.Connection.Blocked, channel=0).reason == reason
    assert peer.session.is_blocked
    assert lab.vhost.queues["q"].ready_count == 1


def test_a_connection_that_has_published_is_blocked_at_once(lab: Lab, publisher: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    assert publisher.expect(commands.Connection.Blocked, channel=0).reason == "low on memory"
    assert publisher.session.is_blocked


def test_a_second_alarm_sends_nothing_and_the_last_to_clear_unblocks(lab: Lab, publisher: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    publisher.expect(commands.Connection.Blocked, channel=0)
    lab.broker.set_alarm("disk", True)
    lab.broker.set_alarm("memory", False)
    publisher.expect_nothing()
    lab.broker.set_alarm("disk", False)
    publisher.expect(commands.Connection.Unblocked, channel=0)
    assert not publisher.session.is_blocked


def test_a_connection_that_only_consumes_is_not_blocked(lab: Lab, publisher: Peer, other: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    other.consume("q")
    assert other.bodies() == [b"1"]
    other.send(commands.Basic.Ack(1))
    other.expect_nothing()
    assert not other.session.is_blocked


def test_a_client_that_does_not_know_is_blocked_without_a_word(lab: Lab) -> None:
    peer = lab.connect(capabilities={**CAPABILITIES, "connection.blocked": False})
    peer.publish("q", b"1")
    lab.dirty.clear()
    lab.broker.set_alarm("disk", True)
    peer.expect_nothing()
    assert peer.session.is_blocked
    assert peer.session in lab.dirty


def test_a_blocked_connection_misses_no_heartbeats(lab: Lab) -> None:
    peer = lab.peer()
    peer.open(heartbeat=10)
    peer.open_channel(1)
    peer.publish("q", b"1")
    lab.broker.set_alarm("memory", True)
    lab.advance(100_000)
    assert not peer.is_dropped
    lab.broker.set_alarm("memory", False)
    lab.advance(40_000)
    assert peer.is_dropped


def test_a_connection_closed_while_it_is_blocked_is_read_again(lab: Lab, publisher: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    publisher.expect(commands.Connection.Blocked, channel=0)
    publisher.session.force_close("bye", lab.now)
    assert not publisher.session.is_blocked
    publisher.expect_connection_close(320)
