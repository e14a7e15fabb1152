"""Publisher confirms: numbers from 1, once each, together where one read brought several."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import frame
from pamqp.commands import Basic, Channel, Confirm, Queue, Tx

from tests.peer import Lab, Peer, publish_bytes


@pytest.fixture
def publisher(peer: Peer) -> Peer:
    peer.declare("q")
    peer.call(Confirm.Select())
    return peer


def expect_ack(peer: Peer, tag: int, multiple: bool = False, channel: int = 1) -> None:
    ack = peer.expect(Basic.Ack, channel)
    assert (ack.delivery_tag, ack.multiple) == (tag, multiple)


def test_each_publish_is_confirmed_from_1_on(peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"before")
    peer.call(Confirm.Select())
    for number in (1, 2, 3):
        peer.publish("q", b"%d" % number)
        expect_ack(peer, number)
    peer.expect_nothing()


def test_without_confirm_select_nothing_is_confirmed(peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"1")
    peer.expect_nothing()


def test_publishes_of_one_read_are_confirmed_with_one_multiple_ack(publisher: Peer) -> None:
    publisher.send_bytes(publish_bytes("q", b"1") * 1000)
    expect_ack(publisher, 1000, multiple=True)
    publisher.send_bytes(publish_bytes("q", b"1"))
    expect_ack(publisher, 1001)
    publisher.expect_nothing()


def test_a_confirm_waits_for_the_end_of_the_read_but_not_longer(publisher: Peer) -> None:
    data = publish_bytes("q", b"1") * 3
    publisher.send_bytes(data[:-1])
    expect_ack(publisher, 2, multiple=True)
    publisher.send_bytes(data[-1:])
    expect_ack(publisher, 3)


def test_a_message_in_pieces_is_confirmed_when_it_is_whole(publisher: Peer) -> None:
    data = publish_bytes("q", b"12345", frame_size=2)
    for octet in data[:-1]:
        publisher.send_bytes(bytes([octet]))
    publisher.expect_nothing()
    publisher.send_bytes(data[-1:])
    expect_ack(publisher, 1)


@pytest.mark.parametrize(
    ("routing_key", "properties"),
    [("missing", {}), ("q", {"delivery_mode": 2}), ("q", {"headers": {"CC": ["q", "other"]}}), ("q", {"priority": 1})],
)
def test_every_publish_has_a_publish_number(publisher: Peer, routing_key: str, properties: dict[str, Any]) -> None:
    publisher.publish(routing_key, b"1", **properties)
    expect_ack(publisher, 1)


def test_a_message_to_many_queues_is_confirmed_once(publisher: Peer) -> None:
    publisher.declare("p")
    for queue in ("p", "q"):
        publisher.call(Queue.Bind(queue=queue, exchange="amq.fanout"))
    publisher.publish(exchange="amq.fanout")
    expect_ack(publisher, 1)
    publisher.expect_nothing()


def test_a_return_comes_before_its_confirm(publisher: Peer) -> None:
    publisher.send_bytes(publish_bytes("q") + publish_bytes("missing", b"back", mandatory=True) + publish_bytes("q"))
    assert publisher.expect(Basic.Return).reply_code == 312
    assert publisher.expect_content().body == b"back"
    expect_ack(publisher, 3, multiple=True)


def test_channels_have_separate_publish_numbers(publisher: Peer) -> None:
    publisher.open_channel(2)
    publisher.call(Confirm.Select(), channel=2)
    publisher.open_channel(3)
    data = [publish_bytes("q", b"1", channel=number) for number in (1, 2, 3, 2, 1, 2)]
    publisher.send_bytes(b"".join(data))
    expect_ack(publisher, 2, multiple=True)
    expect_ack(publisher, 3, multiple=True, channel=2)
    publisher.publish("q", channel=2)
    expect_ack(publisher, 4, channel=2)
    publisher.expect_nothing()


def test_clients_have_separate_publish_numbers(lab: Lab, publisher: Peer, other: Peer) -> None:
    other.call(Confirm.Select())
    publisher.publish("q")
    other.publish("q")
    expect_ack(publisher, 1)
    expect_ack(other, 1)


def test_selecting_confirms_again_continues_the_numbers(publisher: Peer) -> None:
    publisher.publish("q")
    expect_ack(publisher, 1)
    publisher.call(Confirm.Select())
    publisher.publish("q")
    expect_ack(publisher, 2)


def test_confirms_leave_at_the_end_of_the_read(publisher: Peer) -> None:
    publisher.send_bytes(publish_bytes("q") + frame.marshal(Channel.Close(200, "bye", 0, 0), 1))
    expect_ack(publisher, 1)
    publisher.expect(Channel.CloseOk)


def test_a_publish_that_is_refused_is_not_confirmed_but_those_before_it_are(publisher: Peer) -> None:
    publisher.send_bytes(
        publish_bytes("q") * 2 + publish_bytes("q", exchange="missing") + publish_bytes("q", b"ignored")
    )
    expect_ack(publisher, 2, multiple=True)
    publisher.expect_channel_close(404)
    publisher.expect_nothing()


def test_a_channel_opened_again_does_not_confirm(publisher: Peer) -> None:
    publisher.publish("q", exchange="missing")
    publisher.expect_channel_close(404)
    publisher.open_channel(1)
    publisher.publish("q")
    publisher.expect_nothing()


def test_an_ack_from_the_client_for_its_own_publish_is_refused(publisher: Peer) -> None:
    publisher.publish("q")
    expect_ack(publisher, 1)
    publisher.send(Basic.Ack(1))
    publisher.expect_channel_close(406)


def test_a_client_may_consume_its_own_confirmed_messages(publisher: Peer) -> None:
    publisher.consume("q")
    publisher.publish("q", b"1")
    assert publisher.expect_delivery()[1].body == b"1"
    expect_ack(publisher, 1)


def test_a_channel_with_confirms_takes_no_transactions(publisher: Peer) -> None:
    publisher.send(Tx.Select())
    assert publisher.expect_channel_close(406) == "PRECONDITION_FAILED - cannot switch from confirm to tx mode"


def test_a_channel_with_transactions_takes_no_confirms(peer: Peer) -> None:
    peer.call(Tx.Select())
    peer.send(Confirm.Select())
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - cannot switch from tx to confirm mode"


# Refused by a queue


def limited(peer: Peer, overflow: str = "reject-publish") -> None:
    peer.declare("limited", arguments={"x-max-length": 1, "x-overflow": overflow})
    peer.call(Confirm.Select())


def confirms(peer: Peer) -> list[str]:
    """All acks and nacks that wait, in order; a star stands for multiple."""
    texts = []
    while peer.session.outbox.pieces or peer._received:
        confirm, _ = peer.next()
        texts.append(f"{type(confirm).__name__.lower()} {confirm.delivery_tag}{'*' * confirm.multiple}")
    return texts


def test_a_message_that_a_full_queue_refuses_is_nacked(peer: Peer) -> None:
    limited(peer)
    peer.publish("limited", b"1")
    expect_ack(peer, 1)
    peer.publish("limited", b"2")
    nack = peer.expect(Basic.Nack)
    # RabbitMQ's requeue bit is always set here; clients ignore it.
    assert (nack.delivery_tag, nack.requeue) == (2, True)
    got = peer.get("limited")
    assert got is not None
    assert got[1].body == b"1"
    peer.publish("limited", b"3")
    expect_ack(peer, 3)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # l goes to the queue with room for one message, q to the one with room for all
        ("ll", ["ack 1", "nack 2"]),
        ("lll", ["ack 1", "nack 2", "nack 3"]),
        ("qlqlq", ["ack 3*", "ack 5", "nack 4"]),
        ("lqlq", ["ack 2*", "ack 4", "nack 3"]),
        ("qqq", ["ack 3*"]),
    ],
)
def test_acks_precede_nacks_and_each_publish_is_confirmed_once(peer: Peer, keys: str, expected: list[str]) -> None:
    peer.declare("q")
    limited(peer)
    names = {"l": "limited", "q": "q"}
    peer.send_bytes(b"".join(publish_bytes(names[key]) for key in keys))
    assert confirms(peer) == expected


def test_a_message_refused_by_one_of_two_queues_is_nacked(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    limited(peer)
    for queue in ("q", "limited"):
        peer.call(Queue.Bind(queue=queue, exchange="amq.fanout"))
    for _ in range(2):
        peer.publish(exchange="amq.fanout")
    assert confirms(peer) == ["ack 1", "nack 2*"]
    assert lab.vhost.queues["q"].ready_count == 2


def test_a_message_that_drops_others_from_a_full_queue_is_acked(lab: Lab, peer: Peer) -> None:
    limited(peer, "drop-head")
    peer.send_bytes(publish_bytes("limited") * 3)
    assert confirms(peer) == ["ack 3*"]
    assert lab.vhost.queues["limited"].ready_count == 1
