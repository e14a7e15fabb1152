"""channel.flow and access.request."""

from __future__ import annotations

from pamqp.commands import Channel, Queue

from tests.peer import Peer

CLOSE = Channel.Close(200, "bye", 0, 0)
MISSING = Queue.Declare(queue="missing", passive=True)


def test_flow_that_is_active_is_answered(peer: Peer) -> None:
    assert peer.call(Channel.Flow(True)).active is True


def test_flow_that_is_not_active_is_not_implemented(peer: Peer) -> None:
    peer.send(Channel.Flow(False))
    assert peer.expect_connection_close(540) == "NOT_IMPLEMENTED - active=false"


def test_access_is_granted_with_ticket_1(peer: Peer) -> None:
    payload = b"\x00\x1e\x00\x0a\x05/data\x1c"
    peer.send_bytes(b"\x01\x00\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce")
    answer = b"".join(peer.session.outbox.take())
    assert answer == b"\x01\x00\x01\x00\x00\x00\x06\x00\x1e\x00\x0b\x00\x01\xce"
