"""The outbox: what a connection says next, and when the shell may write it."""

from __future__ import annotations

from amqp_broker.session.outbox import Outbox
from tests.peer import Lab


def test_a_session_is_added_to_the_list_to_flush_once(lab: Lab) -> None:
    outbox = lab.peer().session.outbox
    outbox.append(b"a")
    outbox.append(b"b", b"c")
    assert lab.dirty.count(outbox.session) == 1
    assert outbox.take() == [b"a", b"b", b"c"]


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
