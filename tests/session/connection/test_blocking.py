"""Alarms: a connection is blocked from its next publish on until there is memory and disk again.

Source: rabbit_reader.erl, maybe_block; the same was observed at RabbitMQ 3.10.8, 4.0.5 and 4.3.6.
"""

from __future__ import annotations

import pytest
from pamqp import commands

from tests.memory_journal import MemoryJournal
from tests.peer import CAPABILITIES, Lab, Peer, publish_bytes


@pytest.fixture
def publisher(lab: Lab, peer: Peer) -> Peer:
    peer.declare("q")
    peer.publish("q", b"1")
    return peer


@pytest.mark.parametrize(
    ("alarms", "reason"),
    [(["memory"], "low on memory"), (["disk"], "low on disk"), (["memory", "disk"], "low on disk & memory")],
)
def test_the_next_publish_blocks_the_connection_with_the_reason_and_waits(
    lab: Lab, publisher: Peer, alarms: list[str], reason: str
) -> None:
    for alarm in alarms:
        lab.broker.set_alarm(alarm, True)
    publisher.expect_nothing()
    assert publisher.session.status == "blocking"
    publisher.publish("q", b"2")
    assert publisher.expect(commands.Connection.Blocked, channel=0).reason == reason
    assert (publisher.session.blocking.is_blocked, publisher.session.status) == (True, "blocked")
    assert lab.vhost.queues["q"].ready_count == 1
    for alarm in alarms:
        lab.broker.set_alarm(alarm, False)
    publisher.expect(commands.Connection.Unblocked, channel=0)
    assert (publisher.session.blocking.is_blocked, publisher.session.status) == (False, "running")
    assert lab.vhost.queues["q"].ready_count == 2


def test_a_publisher_may_get_and_ack_during_an_alarm_until_it_publishes(lab: Lab, publisher: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    publisher.send(commands.Basic.Get(queue="q"))
    publisher.expect(commands.Basic.GetOk)
    publisher.send(commands.Basic.Ack(1))
    assert lab.vhost.queues["q"].unacked_count == 0
    assert not publisher.session.blocking.is_blocked


def test_all_that_follows_a_held_publish_waits_with_it(lab: Lab, publisher: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    publisher.send_bytes(publish_bytes("q", b"2") + publish_bytes("q", b"3"))
    publisher.expect(commands.Connection.Blocked, channel=0)
    publisher.send(commands.Queue.Declare(queue="q", passive=True))
    publisher.expect_nothing()
    lab.broker.set_alarm("memory", False)
    publisher.expect(commands.Connection.Unblocked, channel=0)
    assert publisher.expect(commands.Queue.DeclareOk).message_count == 3
    publisher.publish("q", b"4")
    assert lab.vhost.queues["q"].ready_count == 4


def test_a_publish_is_held_before_its_content_has_arrived(lab: Lab, publisher: Peer) -> None:
    data = publish_bytes("q", b"2")
    lab.broker.set_alarm("memory", True)
    publisher.send_bytes(data[:-20])
    publisher.expect(commands.Connection.Blocked, channel=0)
    publisher.send_bytes(data[-20:])
    lab.broker.set_alarm("memory", False)
    publisher.expect(commands.Connection.Unblocked, channel=0)
    assert lab.vhost.queues["q"].ready_count == 2


def test_a_connection_that_opens_during_an_alarm_is_blocked_when_it_publishes(lab: Lab) -> None:
    lab.broker.set_alarm("memory", True)
    peer = lab.connect()
    peer.declare("q")
    peer.publish("q", b"1")
    peer.expect(commands.Connection.Blocked, channel=0)
    assert lab.vhost.queues["q"].ready_count == 0


def test_a_second_alarm_sends_nothing_and_the_last_to_clear_unblocks(lab: Lab, publisher: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    publisher.publish("q", b"2")
    publisher.expect(commands.Connection.Blocked, channel=0)
    lab.broker.set_alarm("disk", True)
    lab.broker.set_alarm("memory", False)
    publisher.expect_nothing()
    lab.broker.set_alarm("disk", False)
    publisher.expect(commands.Connection.Unblocked, channel=0)
    assert not publisher.session.blocking.is_blocked


def test_a_connection_that_only_consumes_is_not_blocked(lab: Lab, publisher: Peer, other: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    other.consume("q")
    assert other.bodies() == [b"1"]
    other.send(commands.Basic.Ack(1))
    other.expect_nothing()
    assert not other.session.blocking.is_blocked


def test_a_publisher_whose_confirm_waits_for_the_disk_is_blocked_at_once(lab: Lab, peer: Peer) -> None:
    journal = lab.broker.journal = MemoryJournal()
    peer.declare("q", durable=True)
    journal.commit()
    lab.broker.on_committed()
    peer.call(commands.Confirm.Select())
    peer.publish("q", b"1", delivery_mode=2)
    lab.broker.set_alarm("disk", True)
    peer.expect(commands.Connection.Blocked, channel=0)
    lab.broker.set_alarm("disk", False)
    peer.expect(commands.Connection.Unblocked, channel=0)
    peer.publish("q", b"2", delivery_mode=2)
    assert lab.vhost.queues["q"].ready_count == 2


def test_a_client_that_does_not_know_is_blocked_without_a_word(lab: Lab) -> None:
    peer = lab.connect(capabilities={**CAPABILITIES, "connection.blocked": False})
    peer.publish("q", b"1")
    lab.dirty.clear()
    lab.broker.set_alarm("disk", True)
    peer.publish("q", b"2")
    peer.expect_nothing()
    assert peer.session.blocking.is_blocked
    assert peer.session in lab.dirty


def test_a_blocked_connection_misses_no_heartbeats(lab: Lab) -> None:
    peer = lab.peer()
    peer.open(heartbeat=10)
    peer.open_channel(1)
    peer.publish("q", b"1")
    lab.broker.set_alarm("memory", True)
    peer.publish("q", b"2")
    lab.advance(100_000)
    assert not peer.is_dropped
    lab.broker.set_alarm("memory", False)
    lab.advance(40_000)
    assert peer.is_dropped


def test_a_connection_closed_while_it_is_blocked_is_read_again(lab: Lab, publisher: Peer) -> None:
    lab.broker.set_alarm("memory", True)
    publisher.publish("q", b"2")
    publisher.expect(commands.Connection.Blocked, channel=0)
    publisher.session.force_close("bye", lab.now)
    assert not publisher.session.blocking.is_blocked
    publisher.expect_connection_close(320)
