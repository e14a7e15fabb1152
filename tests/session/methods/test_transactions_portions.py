"""Transactions of thousands of messages are committed in portions, and become safe as a whole."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pamqp.commands import Basic, Queue, Tx

from amqp_broker.session.methods.transactions import COMMITTED_MAX
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer, publish_bytes
from tests.restarting import durable_lab, restarted

COUNT: Final = 5 * COMMITTED_MAX + 7
# The most messages that a turn publishes.
TURN_MAX: Final = 1100


def select(lab: Lab, **arguments: Any) -> Peer:
    peer = lab.connect()
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments={f"x-{key.replace('_', '-')}": value for key, value in arguments.items()})
    peer.call(Tx.Select())
    return peer


def publish(peer: Peer, count: int = COUNT) -> None:
    peer.send_bytes(b"".join(publish_bytes("q", b"%d" % number, delivery_mode=2) for number in range(count)))
    peer.lab.drain()


def hold(peer: Peer, count: int = COUNT) -> None:
    """Have a client hold messages that it has committed."""
    publish(peer, count)
    peer.send(Tx.Commit())
    finish(peer.lab)
    peer.expect(Tx.CommitOk)
    peer.consume("q")
    peer.lab.drain()
    assert len(peer.bodies()) == count


def finish(lab: Lab) -> None:
    lab.drain()
    if isinstance(lab.broker.journal, MemoryJournal):
        lab.broker.journal.commit()
        lab.broker.on_committed()


def counts(lab: Lab, queue: str = "q") -> tuple[int, int]:
    found = lab.vhost.queues[queue]
    return found.ready_count, found.unacked_count


def bodies(lab: Lab, queue: str = "q") -> list[int]:
    return [int(message.body) for message in lab.vhost.queues[queue].messages()]


def test_others_are_served_while_many_messages_are_committed() -> None:
    lab = durable_lab("4.2")
    peer = select(lab)
    publish(peer)
    assert counts(lab) == (0, 0)
    peer.send(Tx.Commit(), Basic.Qos())
    turns, before = 0, 0
    while lab.broker.undrained:
        ready = counts(lab)[0]
        assert ready - before <= TURN_MAX
        assert lab.connect().declare("other", durable=True).queue == "other"
        turns, before = turns + 1, ready
        lab.broker.drain_on()
    assert turns > 3
    finish(lab)
    peer.expect(Tx.CommitOk)
    peer.expect(Basic.QosOk)
    assert bodies(lab) == list(range(COUNT))


def test_a_large_transaction_is_safe_as_a_whole_or_not_at_all() -> None:
    lab = durable_lab("4.2")
    peer = select(lab)
    publish(peer)
    peer.send(Tx.Commit())
    journal = lab.broker.journal
    assert isinstance(journal, MemoryJournal)
    while lab.broker.undrained:
        assert not journal.has_work
        assert not journal.disk.messages
        lab.broker.drain_on()
    assert peer.session.outbox.held_until
    assert journal.has_work
    finish(lab)
    peer.expect(Tx.CommitOk)
    assert bodies(restarted(lab)) == list(range(COUNT))


@pytest.mark.parametrize("is_requeued", [None, False, True])
def test_many_settlements_are_committed_in_portions(is_requeued: bool | None) -> None:
    lab = durable_lab("4.2")
    peer = select(lab, dead_letter_exchange="", dead_letter_routing_key="dead")
    hold(peer)
    peer.send(Basic.Cancel("c", nowait=True))
    settle = Basic.Ack(0, multiple=True) if is_requeued is None else Basic.Nack(0, multiple=True, requeue=is_requeued)
    peer.send(settle)
    assert counts(lab) == (0, COUNT)
    peer.send(Tx.Commit())
    assert is_requeued is None or 0 < counts(lab)[1] < COUNT
    assert peer.session.outbox.held_until
    finish(lab)
    peer.expect(Tx.CommitOk)
    expected = list(range(COUNT))
    assert bodies(lab) == (expected if is_requeued else [])
    assert bodies(lab, "dead") == (expected if is_requeued is False else [])
    assert counts(lab)[1] == 0
    again = restarted(lab)
    assert (bodies(again), bodies(again, "dead")) == (bodies(lab), bodies(lab, "dead"))


def test_a_commit_goes_on_when_its_client_leaves() -> None:
    lab = durable_lab("4.2")
    peer = select(lab)
    publish(peer)
    peer.send(Tx.Commit())
    peer.disconnect()
    finish(lab)
    assert lab.broker.journal.open_works == 0
    assert bodies(restarted(lab)) == list(range(COUNT))


def test_a_large_commit_that_a_queue_refuses_closes_the_channel() -> None:
    lab = Lab()
    peer = select(lab, max_length=10, overflow="reject-publish")
    publish(peer)
    peer.send(Tx.Commit())
    lab.drain()
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - partial tx completion"
    assert counts(lab) == (10, 0)
    peer.open_channel(1)
    assert peer.call(Queue.Delete(queue="q")).message_count == 10
