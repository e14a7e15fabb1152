"""The journal forgets a persistent message that has left its durable queue, however it left."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Confirm, Queue, Tx

from amqp_broker.broker.durability import paged_buffer
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer, shown


@pytest.fixture
def journal(lab: Lab) -> MemoryJournal:
    """The journal of the lab's broker."""
    journal = lab.broker.journal = MemoryJournal()
    return journal


def hold(peer: Peer) -> None:
    """Get the message, unacked."""
    assert peer.get("q", no_ack=False) is not None


LEAVES = [
    [Basic.Ack(1)],
    [Basic.Ack(0, multiple=True)],
    [Basic.Reject(1, requeue=False)],
    [Basic.Nack(1, requeue=False)],
    [Tx.Select(), Basic.Ack(1), Tx.Commit()],
    [Tx.Select(), Basic.Reject(1, requeue=False), Tx.Commit()],
]
STAYS = [
    [],
    [Basic.Reject(1, requeue=True)],
    [Basic.Recover(requeue=True)],
    [Tx.Select(), Basic.Ack(1)],
    [Tx.Select(), Basic.Ack(1), Tx.Rollback()],
    [Tx.Select(), Basic.Reject(1, requeue=False), Channel.Close(200, "bye", 0, 0)],
    [Channel.Close(200, "bye", 0, 0)],
    [Basic.Ack(99)],
]


@pytest.mark.parametrize("methods", LEAVES, ids=shown)
def test_the_journal_forgets_settled_messages(journal: MemoryJournal, peer: Peer, methods: list[Basic.Ack]) -> None:
    peer.declare("q", durable=True)
    peer.publish("q", delivery_mode=2)
    hold(peer)
    peer.send(*methods)
    assert journal.positions == []


@pytest.mark.parametrize("methods", STAYS, ids=shown)
def test_the_journal_keeps_messages_that_will_be_redelivered(
    journal: MemoryJournal, peer: Peer, methods: list[Basic.Ack]
) -> None:
    peer.declare("q", durable=True)
    peer.publish("q", delivery_mode=2)
    hold(peer)
    peer.send(*methods)
    peer.disconnect()
    assert journal.positions == [0]


def test_the_journal_forgets_purged_messages_and_gets_without_ack(journal: MemoryJournal, peer: Peer) -> None:
    peer.declare("q", durable=True)
    for _ in range(2):
        peer.publish("q", delivery_mode=2)
    assert peer.get("q", no_ack=True) is not None
    peer.call(Queue.Purge(queue="q"))
    assert journal.positions == []


def test_the_journal_forgets_deliveries_without_acks(journal: MemoryJournal, peer: Peer) -> None:
    peer.declare("q", durable=True)
    peer.publish("q", delivery_mode=2)
    peer.consume("q", no_ack=True)
    peer.publish("q", delivery_mode=2)
    assert journal.positions == []


@pytest.mark.parametrize(("durable", "mode"), [(True, 1), (False, 2), (False, 1)])
def test_the_journal_keeps_only_persistent_messages_of_durable_queues(
    journal: MemoryJournal, peer: Peer, durable: bool, mode: int
) -> None:
    peer.declare("q", durable=durable)
    peer.publish("q", delivery_mode=mode)
    hold(peer)
    peer.send(Basic.Ack(1))
    assert journal.positions == []


def test_commit_ok_waits_for_the_commit_of_the_journal(journal: MemoryJournal, peer: Peer) -> None:
    peer.declare("q", durable=True)
    peer.call(Tx.Select())
    peer.publish("q", delivery_mode=2)
    journal.commit()
    peer.lab.broker.on_committed()
    peer.send(Tx.Commit())
    assert peer.session.outbox.held_until == journal.batch
    journal.commit()
    peer.lab.broker.on_committed()
    assert not peer.session.outbox.held_until


def test_a_confirm_does_not_wait_for_an_empty_batch(journal: MemoryJournal, peer: Peer) -> None:
    peer.declare("q", durable=True)
    peer.call(Confirm.Select())
    peer.publish("q", delivery_mode=2)
    journal.take_batch()
    # During the commit comes a publish that the journal does not contain.
    peer.publish("missing", delivery_mode=2)
    peer.expect_nothing()
    journal.on_committed()
    peer.lab.broker.on_committed()
    ack = peer.expect(Basic.Ack)
    assert (ack.delivery_tag, ack.multiple, journal.has_work) == (2, True, False)


def test_commit_ok_waits_for_the_batch_that_is_being_committed(journal: MemoryJournal, peer: Peer) -> None:
    peer.declare("q", durable=True)
    peer.publish("q", delivery_mode=2)
    journal.take_batch()
    peer.call(Tx.Select())
    peer.send(Tx.Commit())
    assert peer.session.outbox.held_until == journal.batch - 1
    journal.on_committed()
    peer.lab.broker.on_committed()
    peer.expect(Tx.CommitOk)


def test_messages_that_a_get_reads_from_the_journal_expire_at_once(
    journal: MemoryJournal, lab: Lab, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PAGE_BYTES", "BUFFER_BYTES_MAX", "BUFFERS_BYTES_MAX"):
        monkeypatch.setattr(paged_buffer, name, 1)
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q", b"1")
    peer.publish("q", b"2", expiration="100")
    lab.advance(100)
    hold(peer)
    assert lab.vhost.queues["q"].ready_count == 0
