"""A persistent message that left its durable queue for good is forgotten by the journal, whichever way it left."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pamqp.commands import Basic, Channel, Queue, Tx

from tests.peer import Lab, Peer
from tests.taker import RecordingJournal


def hold(peer: Peer) -> None:
    """Get the message, unacked."""
    assert peer.get("q", no_ack=False) is not None


def commit(peer: Peer, settle: Basic.Ack | Basic.Reject) -> None:
    peer.call(Tx.Select())
    hold(peer)
    peer.send(settle)
    peer.call(Tx.Commit())


def send(*methods: Basic.Ack | Basic.Nack | Basic.Reject) -> Callable[[Peer], None]:
    def act(peer: Peer) -> None:
        hold(peer)
        peer.send(*methods)

    return act


WAYS_TO_LEAVE: dict[str, Callable[[Peer], None]] = {
    "ack": send(Basic.Ack(1)),
    "ack multiple": send(Basic.Ack(1, multiple=True)),
    "reject": send(Basic.Reject(1, requeue=False)),
    "nack": send(Basic.Nack(1, requeue=False)),
    "get without ack": lambda peer: peer.get("q", no_ack=True) and None,
    "consume without ack": lambda peer: peer.consume("q", no_ack=True),
    "committed ack": lambda peer: commit(peer, Basic.Ack(1)),
    "committed reject": lambda peer: commit(peer, Basic.Reject(1, requeue=False)),
    "purge": lambda peer: peer.call(Queue.Purge(queue="q")),
}
WAYS_TO_STAY: dict[str, Callable[[Peer], None]] = {
    "nothing": lambda peer: None,
    "get": hold,
    "consume": lambda peer: peer.consume("q"),
    "requeue": send(Basic.Nack(1, requeue=True)),
    "uncommitted ack": lambda peer: (peer.call(Tx.Select()), hold(peer), peer.send(Basic.Ack(1))) and None,
    "closed channel": lambda peer: (hold(peer), peer.call(Channel.Close(200, "bye", 0, 0))) and None,
    "lost connection": lambda peer: (hold(peer), peer.disconnect()) and None,
}


def live(way: Callable[[Peer], None], **properties: int) -> list[tuple[str, str, int]]:
    """What the journal was told about a message."""
    lab = Lab()
    journal = lab.broker.journal = RecordingJournal()
    lab.broker.is_durable = True
    peer = lab.connect()
    peer.declare("q", durable=True)
    peer.publish("q", b"1", **properties)
    way(peer)
    return journal.records


@pytest.mark.parametrize("way", WAYS_TO_LEAVE)
def test_what_left_for_good_is_forgotten(way: str) -> None:
    assert live(WAYS_TO_LEAVE[way], delivery_mode=2) == [("put", "q", 0), ("remove", "q", 0)]


@pytest.mark.parametrize("way", WAYS_TO_STAY)
def test_what_may_come_back_is_kept(way: str) -> None:
    assert live(WAYS_TO_STAY[way], delivery_mode=2) == [("put", "q", 0)]


@pytest.mark.parametrize("way", WAYS_TO_LEAVE)
def test_a_transient_message_is_none_of_its_business(way: str) -> None:
    assert live(WAYS_TO_LEAVE[way]) == []


def test_a_message_that_passes_through_to_a_consumer_without_acks_is_forgotten_at_once() -> None:
    lab = Lab()
    journal = lab.broker.journal = RecordingJournal()
    lab.broker.is_durable = True
    peer = lab.connect()
    peer.declare("q", durable=True)
    peer.consume("q", no_ack=True)
    for _ in range(2):
        peer.publish("q", delivery_mode=2)
    assert journal.records == [("put", "q", 0), ("remove", "q", 0), ("put", "q", 1), ("remove", "q", 1)]
