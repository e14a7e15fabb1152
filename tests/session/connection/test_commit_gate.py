"""The commit gate: confirms and replies wait until the journal has committed what they promise."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Confirm, Queue

from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer


@pytest.fixture
def journal(lab: Lab) -> MemoryJournal:
    journal = lab.broker.journal = MemoryJournal()
    return journal


def commit(lab: Lab, journal: MemoryJournal) -> None:
    journal.commit()
    lab.broker.on_committed()


def test_a_confirm_waits_for_the_commit_of_its_message(lab: Lab, journal: MemoryJournal, peer: Peer) -> None:
    peer.declare("q", durable=True)
    peer.call(Confirm.Select())
    commit(lab, journal)
    peer.publish("q", delivery_mode=2)
    peer.expect_nothing()
    assert lab.broker.awaiting_commit == {peer.session.gate: None}
    commit(lab, journal)
    assert peer.expect(Basic.Ack).delivery_tag == 1
    assert lab.broker.awaiting_commit == {}


def test_a_confirm_of_a_transient_message_does_not_wait(lab: Lab, journal: MemoryJournal, peer: Peer) -> None:
    peer.call(Confirm.Select())
    peer.publish("missing")
    assert peer.expect(Basic.Ack).delivery_tag == 1


def test_a_declaration_holds_all_output_until_its_commit(lab: Lab, journal: MemoryJournal, peer: Peer) -> None:
    outbox = peer.session.outbox
    peer.send(Queue.Declare(queue="q", durable=True))
    assert outbox.held_until == journal.batch
    commit(lab, journal)
    assert not outbox.held_until
    peer.expect(Queue.DeclareOk)


def test_a_redeclaration_by_another_connection_waits_for_the_same_commit(
    lab: Lab, journal: MemoryJournal, peer: Peer, other: Peer
) -> None:
    peer.send(Queue.Declare(queue="q", durable=True))
    other.send(Queue.Declare(queue="q", durable=True))
    assert other.session.outbox.held_until == peer.session.outbox.held_until == journal.batch


def test_an_earlier_batch_does_not_shorten_a_hold(lab: Lab, journal: MemoryJournal, peer: Peer) -> None:
    gate, outbox = peer.session.gate, peer.session.outbox
    gate.hold(journal.batch + 1)
    gate.hold(journal.batch)
    assert outbox.held_until == journal.batch + 1


def test_a_committed_batch_holds_nothing(lab: Lab, journal: MemoryJournal, peer: Peer) -> None:
    peer.session.gate.hold(journal.committed)
    assert not peer.session.outbox.held_until


def test_confirms_of_a_closed_connection_are_forgotten(lab: Lab, journal: MemoryJournal, peer: Peer) -> None:
    peer.declare("q", durable=True)
    peer.call(Confirm.Select())
    commit(lab, journal)
    peer.publish("q", delivery_mode=2)
    peer.disconnect()
    commit(lab, journal)
    assert lab.broker.awaiting_commit == {}
    assert peer.session.gate.waiting == {}
