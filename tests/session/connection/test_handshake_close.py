"""After a client's connection.close the socket is the client's to close."""

from __future__ import annotations

import pytest
from pamqp.commands import Connection

from tests.peer import Lab, Peer


def test_a_client_that_closes_is_answered_and_leaves_the_list_of_connections(lab: Lab, peer: Peer) -> None:
    peer.call(Connection.Close(65535, "é" * 100, 1, 2), channel=0)
    assert not lab.broker.connections


def test_a_client_that_has_closed_closes_the_socket(lab: Lab, peer: Peer) -> None:
    peer.call(Connection.Close(200, "bye", 0, 0), channel=0)
    assert not peer.is_dropped
    peer.disconnect()
    assert peer.is_dropped
    assert lab.broker.real_timers.next_deadline() is None


@pytest.mark.parametrize(("heartbeat_s", "wait_ms"), [(0, 30_000), (7, 7000), (60, 30_000)])
def test_a_closed_client_is_dropped_if_it_leaves_the_socket_open(lab: Lab, heartbeat_s: int, wait_ms: int) -> None:
    peer = lab.connect(heartbeat=heartbeat_s)
    peer.send(Connection.Close(200, "bye", 0, 0), channel=0)
    peer.expect(Connection.CloseOk, channel=0)
    lab.advance(wait_ms - 1)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()
