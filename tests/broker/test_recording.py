"""What is published is recorded with its time."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.broker.recording import MESSAGE_BYTES, Recorded, Recording
from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    lab = Lab()
    lab.broker.now_us = lambda: lab.now * 1000
    return lab


@pytest.fixture
def peer(lab: Lab) -> Peer:
    peer = lab.connect()
    peer.declare("q")
    return peer


def bodies(recording: Recording) -> list[bytes]:
    return [recorded.message.body for recorded in recording.take()[0]]


def test_a_message_is_recorded_as_it_was_published_and_when(lab: Lab, peer: Peer) -> None:
    recording = Recording(lab.vhost)
    recording.start()
    lab.advance(250)
    peer.publish("q", b"one", content_type="text/plain")
    lab.advance(1000)
    peer.publish("nowhere", b"two", mandatory=True)
    (first, second), skipped = recording.take()
    assert (first.at_us, first.mandatory, first.user, skipped) == (250_000, False, "guest", 0)
    assert (first.message.exchange, first.message.routing_key, first.message.body) == ("", "q", b"one")
    assert first.message.properties().as_dict() == {"content_type": "text/plain"}
    assert (second.at_us, second.mandatory) == (1_250_000, True)
    assert recording.take() == ([], 0)


def test_only_publishes_are_recorded_and_only_until_it_stops(lab: Lab, peer: Peer) -> None:
    recording = Recording(lab.vhost)
    peer.publish("q", b"before")
    recording.start()
    peer.call(Confirm.Select())
    peer.publish("q", b"within")
    peer.expect(Basic.Ack)
    peer.send(Basic.Get(queue="q", no_ack=True))
    peer.send(Queue.Purge(queue="q"))
    recording.stop()
    peer.publish("q", b"after")
    assert bodies(recording) == [b"within"]
    assert lab.vhost.trace is None


@pytest.mark.parametrize(
    ("exchange", "routing_key", "expected"),
    [
        ("amq.topic", None, [b"topic"]),
        ("", None, [b"default"]),
        (None, "orders.*", [b"topic"]),
        (None, "order?", [b"default"]),
        ("amq.topic", "orders", []),
    ],
)
def test_it_may_be_of_one_exchange_and_of_some_keys(
    lab: Lab, peer: Peer, exchange: str | None, routing_key: str | None, expected: list[bytes]
) -> None:
    recording = Recording(lab.vhost, exchange, routing_key)
    recording.start()
    peer.publish("orders.new", b"topic", exchange="amq.topic")
    peer.publish("orders", b"default")
    assert bodies(recording) == expected


def test_other_vhosts_are_not_in_it(lab: Lab, peer: Peer) -> None:
    recording = Recording(lab.broker.add_vhost("other"))
    recording.start()
    peer.publish("q", b"here")
    assert recording.take() == ([], 0)


def test_what_consumers_may_not_see_is_recorded(lab: Lab, peer: Peer) -> None:
    recording = Recording(lab.vhost)
    recording.start()
    peer.publish("q", b"x", headers={"BCC": ["other"], "a": 1})
    ((recorded,), _) = recording.take()
    assert recorded.message.properties().headers == {"BCC": ["other"], "a": 1}


def test_what_nobody_takes_is_bounded_and_what_is_missing_is_counted(lab: Lab, peer: Peer) -> None:
    recording = Recording(lab.vhost, bytes_max=3 * (MESSAGE_BYTES + 200))
    recording.start()
    for number in range(9):
        peer.publish("q", b"%d" % number * 150)
    taken, skipped = recording.take()
    assert ([recorded.message.body[:1] for recorded in taken], skipped) == ([b"0", b"1", b"2"], 6)
    peer.publish("q", b"again")
    assert bodies(recording) == [b"again"]


def test_one_message_that_is_larger_than_the_bound_is_recorded(lab: Lab, peer: Peer) -> None:
    recording = Recording(lab.vhost, bytes_max=10)
    recording.start()
    peer.publish("q", b"large" * 100)
    assert len(recording.take()[0]) == 1


def test_who_writes_is_woken_once_for_all_that_he_has_not_taken(lab: Lab, peer: Peer) -> None:
    woken: list[list[Recorded]] = []
    recording = Recording(lab.vhost, on_more=lambda: woken.append([]))
    recording.start()
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    assert len(woken) == 1
    recording.take()
    peer.publish("q", b"3")
    assert len(woken) == 2
