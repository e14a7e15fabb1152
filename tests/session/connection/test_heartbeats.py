"""Heartbeats in both directions, on the lab's clock (spec 4.2.7)."""

from __future__ import annotations

import pytest
from pamqp import frame
from pamqp.commands import Basic, Channel, Connection
from pamqp.heartbeat import Heartbeat

from tests.peer import Lab, Peer

HEARTBEAT = frame.marshal(Heartbeat(), 0)


def connect(lab: Lab, heartbeat_s: int) -> Peer:
    peer = lab.peer()
    peer.open(heartbeat=heartbeat_s)
    peer.open_channel(1)
    return peer


def live(lab: Lab, peer: Peer, duration_ms: int) -> list[int]:
    """Let time pass while the client sends a heartbeat every 500 ms; returns when it got heartbeats."""
    start, heard = lab.now, []
    for _ in range(duration_ms // 500):
        lab.advance(500)
        if peer.session.outbox.pieces:
            assert peer.session.outbox.take() == [HEARTBEAT]
            heard.append(lab.now - start)
        peer.send_bytes(HEARTBEAT)
    return heard


def test_an_idle_broker_sends_a_heartbeat_in_every_half_interval(lab: Lab) -> None:
    assert live(lab, connect(lab, 2), 5000) == [2000, 3000, 4000, 5000]


def test_no_heartbeats_are_sent_while_there_is_other_output(lab: Lab) -> None:
    peer = connect(lab, 2)
    for _ in range(20):
        peer.call(Basic.Qos())
        lab.advance(500)
    peer.expect_nothing()


def test_a_client_that_is_silent_for_two_intervals_is_dropped_without_a_close(lab: Lab) -> None:
    peer = connect(lab, 10)
    lab.advance(29_999)
    assert not peer.is_dropped
    peer.session.outbox.take()
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()


@pytest.mark.parametrize("said", [HEARTBEAT, frame.marshal(Basic.Get(queue="q"), 1)[:1], b"\x08"])
def test_any_octet_counts_as_a_heartbeat(lab: Lab, said: bytes) -> None:
    peer = connect(lab, 1)
    for octet in said:
        lab.advance(1900)
        peer.send_bytes(bytes([octet]))
    lab.advance(1900)
    assert not peer.is_dropped


def test_each_received_octet_grants_two_more_intervals(lab: Lab) -> None:
    peer = connect(lab, 10)
    lab.advance(19_000)
    peer.send_bytes(HEARTBEAT)
    lab.advance(20_999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped


def test_a_silent_client_without_heartbeats_is_not_dropped(lab: Lab) -> None:
    peer = connect(lab, 0)
    lab.advance(24 * 3_600_000)
    assert not peer.is_dropped
    peer.expect_nothing()


def test_a_client_may_send_heartbeats_without_an_agreed_interval(peer: Peer) -> None:
    peer.send_bytes(HEARTBEAT * 3)
    peer.call(Channel.Flow(True))


def test_a_heartbeat_waits_for_a_socket_that_is_full(lab: Lab) -> None:
    peer = connect(lab, 1)
    peer.session.pause()
    live_until = lab.now + 5000
    while lab.now < live_until:
        lab.advance(500)
        peer.send_bytes(HEARTBEAT)
    peer.expect_nothing()
    peer.session.resume(lab.now)
    lab.advance(1000)
    assert b"".join(peer.session.outbox.take()) == HEARTBEAT


def test_heartbeats_continue_while_the_broker_waits_for_close_ok(lab: Lab) -> None:
    peer = connect(lab, 1)
    peer.session.force_close("shutdown", lab.now)
    peer.expect(Connection.Close, channel=0)
    lab.advance(3000)
    assert peer.is_dropped


def test_a_closed_connection_keeps_no_timers(lab: Lab) -> None:
    peer = connect(lab, 1)
    peer.disconnect()
    assert lab.broker.timers.next_deadline() is None
    lab.advance(60_000)
    peer.expect_nothing()
