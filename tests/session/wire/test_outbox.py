"""The outbox: what a connection says next, and when the shell may write it."""

from __future__ import annotations

from amqp_broker.session.wire.outbox import Outbox
from tests.peer import Lab, publish_bytes

LARGE = Outbox.JOINED_BYTES_MAX + 1


def test_a_session_is_added_to_the_list_to_flush_once(lab: Lab) -> None:
    outbox = lab.peer().session.outbox
    outbox.append(b"a")
    outbox.append(b"b", b"c")
    assert lab.dirty.count(outbox.session) == 1
    assert outbox.take() == [b"abc"]


def test_pieces_are_joined_unless_one_is_large(lab: Lab) -> None:
    outbox = lab.peer().session.outbox
    large = bytes(LARGE)
    outbox.append(b"a", large)
    outbox.append(b"b")
    assert outbox.take() == [b"a", large, b"b"]
    outbox.append(b"a")
    outbox.append(large[1:])
    assert outbox.take() == [b"a" + large[1:]]


def test_a_large_delivery_is_written_in_pieces(lab: Lab) -> None:
    peer = lab.connect()
    peer.declare("q")
    peer.consume("q")
    peer.session.outbox.take()
    peer.send_bytes(publish_bytes("q", bytes(LARGE - 100)))
    assert len(peer.session.outbox.take()) == 1
    peer.send_bytes(publish_bytes("q", bytes(LARGE)))
    assert max(map(len, peer.session.outbox.take())) < LARGE + 100


def test_an_outbox_is_empty_after_its_pieces_were_taken(lab: Lab) -> None:
    outbox: Outbox = lab.peer().session.outbox
    outbox.append(b"a")
    outbox.take()
    assert outbox.take() == []
    assert outbox.flush_count == 2


def test_a_session_can_be_flushed_without_output(lab: Lab) -> None:
    outbox = lab.peer().session.outbox
    outbox.request_flush()
    assert lab.dirty == [outbox.session]


def test_an_outbox_without_an_end_of_its_hold_is_released_only_by_discarding_it(lab: Lab) -> None:
    peer = lab.peer()
    outbox = peer.session.outbox
    outbox.append(b"a")
    outbox.hold_forever()
    peer.session.gate.on_committed(1_000_000)
    assert outbox.held_until
    outbox.discard()
    assert (outbox.held_until, outbox.pieces) == (0, [])
