"""Published messages are captured with their times."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.broker.observe.capture import MESSAGE_BYTES, Capture, CapturedMessage
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


def bodies(capture: Capture) -> list[bytes]:
    return [captured.message.body for captured in capture.take()[0]]


def test_a_message_is_captured_with_its_time(lab: Lab, peer: Peer) -> None:
    capture = Capture(lab.vhost)
    capture.start()
    lab.advance(250)
    peer.publish("q", b"one", content_type="text/plain")
    lab.advance(1000)
    peer.publish("nowhere", b"two", mandatory=True)
    (first, second), skipped = capture.take()
    assert (first.at_us, first.mandatory, first.user, skipped) == (250_000, False, "guest", 0)
    assert (first.message.exchange, first.message.routing_key, first.message.body) == ("", "q", b"one")
    assert first.message.properties().as_dict() == {"content_type": "text/plain"}
    assert (second.at_us, second.mandatory) == (1_250_000, True)
    assert capture.take() == ([], 0)


def test_only_publishes_between_start_and_stop_are_captured(lab: Lab, peer: Peer) -> None:
    capture = Capture(lab.vhost)
    peer.publish("q", b"before")
    capture.start()
    peer.call(Confirm.Select())
    peer.publish("q", b"within")
    peer.expect(Basic.Ack)
    peer.send(Basic.Get(queue="q", no_ack=True))
    peer.send(Queue.Purge(queue="q"))
    capture.stop()
    peer.publish("q", b"after")
    assert bodies(capture) == [b"within"]
    assert lab.vhost.trace is None


@pytest.mark.parametrize(
    ("exchange", "routing_key", "expected"),
    [
        ("amq.topic", None, [b"topic"]),
        ("", None, [b"default"]),
        ("amq.default", None, [b"default"]),
        (None, "orders.*", [b"topic"]),
        (None, "order?", [b"default"]),
        ("amq.topic", "orders", []),
        (None, "items[0]", [b"item"]),
    ],
)
def test_a_capture_filters_by_exchange_and_routing_key(
    lab: Lab, peer: Peer, exchange: str | None, routing_key: str | None, expected: list[bytes]
) -> None:
    capture = Capture(lab.vhost, exchange, routing_key)
    capture.start()
    peer.publish("orders.new", b"topic", exchange="amq.topic")
    peer.publish("items[0]", b"item", exchange="amq.direct")
    peer.publish("orders", b"default")
    assert bodies(capture) == expected


def test_other_vhosts_are_not_captured(lab: Lab, peer: Peer) -> None:
    capture = Capture(lab.broker.add_vhost("other"))
    capture.start()
    peer.publish("q", b"here")
    assert capture.take() == ([], 0)


def test_the_bcc_header_is_captured(lab: Lab, peer: Peer) -> None:
    capture = Capture(lab.vhost)
    capture.start()
    peer.publish("q", b"x", headers={"BCC": ["other"], "a": 1})
    ((captured,), _) = capture.take()
    assert captured.message.properties().headers == {"BCC": ["other"], "a": 1}


def test_untaken_messages_are_limited_and_skipped_ones_counted(lab: Lab, peer: Peer) -> None:
    capture = Capture(lab.vhost, bytes_max=3 * (MESSAGE_BYTES + 200))
    capture.start()
    for number in range(9):
        peer.publish("q", b"%d" % number * 150)
    taken, skipped = capture.take()
    assert ([captured.message.body[:1] for captured in taken], skipped) == ([b"0", b"1", b"2"], 6)
    peer.publish("q", b"again")
    assert bodies(capture) == [b"again"]


def test_one_message_above_the_limit_is_captured(lab: Lab, peer: Peer) -> None:
    capture = Capture(lab.vhost, bytes_max=10)
    capture.start()
    peer.publish("q", b"large" * 100)
    assert len(capture.take()[0]) == 1


def test_on_more_is_called_once_until_messages_are_taken(lab: Lab, peer: Peer) -> None:
    woken: list[list[CapturedMessage]] = []
    capture = Capture(lab.vhost, on_more=lambda: woken.append([]))
    capture.start()
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    assert len(woken) == 1
    capture.take()
    peer.publish("q", b"3")
    assert len(woken) == 2
