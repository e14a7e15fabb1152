"""Reads that are small and mean much work: others are served before it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pamqp import base, frame
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.broker.scheduling.portions import WORK_MAX
from tests.peer import Lab, Peer, publish_bytes

COUNT = 400
Messages = list[bytes]


def to_many_queues(peer: Peer) -> Messages:
    bind(peer, "amq.fanout", [""] * 100)
    return [publish_bytes("", exchange="amq.fanout", message=b"%d" % number) for number in range(COUNT)]


def to_many_queues_by_copies(peer: Peer) -> Messages:
    bind(peer, "amq.direct", [f"k{number}" for number in range(100)])
    headers = {"CC": [f"k{number}" for number in range(1, 100)]}
    return [
        publish_bytes("k0", exchange="amq.direct", message=b"%d" % number, headers=headers) for number in range(COUNT)
    ]


def of_large_bodies(peer: Peer) -> Messages:
    bind(peer, "amq.fanout", [""] * 10)
    return [publish_bytes("", exchange="amq.fanout", message=b"%d" % number + b"." * 50_000) for number in range(COUNT)]


def of_new_keys(peer: Peer) -> Messages:
    bind(peer, "amq.topic", ["#"])
    return [publish_bytes(f"k{number}", exchange="amq.topic", message=b"%d" % number) for number in range(3 * COUNT)]


def that_many_patterns_match_halfway(peer: Peer) -> Messages:
    patterns = [".".join("*#"[number >> (at % 6) & 1] for at in range(60)) for number in range(64)]
    bind(peer, "amq.topic", patterns)
    keys = [".".join(["a"] * 59 + [str(number)]) for number in range(100)]
    return [publish_bytes(key, exchange="amq.topic", message=b"%d" % number) for number, key in enumerate(keys)]


def that_many_bindings_are_tried_for(peer: Peer, exchange: str = "amq.headers") -> Messages:
    bind(peer, exchange, [""], h=1)
    for number in range(200):
        bind(peer, exchange, [""], **{"x-match": "any", "i": number, "j": number})
    return [publish_bytes("", exchange=exchange, message=b"%d" % number, headers={"h": 1}) for number in range(COUNT)]


def that_many_bindings_of_a_delayed_exchange_are_tried_for(peer: Peer) -> Messages:
    peer.call(
        Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments={"x-delayed-type": "headers"})
    )
    return that_many_bindings_are_tried_for(peer, "x")


def bind(peer: Peer, exchange: str, keys: list[str], **arguments: Any) -> None:
    """Bind a queue with each key; q0 is the first one."""
    first = len(peer.lab.vhost.queues)
    for number, key in enumerate(keys, first):
        peer.declare(f"q{number}")
        peer.call(Queue.Bind(queue=f"q{number}", exchange=exchange, routing_key=key, arguments=dict(arguments)))


@pytest.mark.parametrize(
    "make",
    [
        to_many_queues,
        to_many_queues_by_copies,
        of_large_bodies,
        of_new_keys,
        that_many_patterns_match_halfway,
        that_many_bindings_are_tried_for,
        that_many_bindings_of_a_delayed_exchange_are_tried_for,
    ],
)
def test_others_are_served_between_publishes(make: Callable[[Peer], Messages]) -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(Confirm.Select())
    messages = make(peer)
    lab.drain()
    queue = lab.vhost.queues["q0"]
    peer.send_bytes(b"".join(messages))
    assert 0 < queue.ready_count < len(messages)
    assert peer.session.blocking.is_blocked
    assert peer.session.status == "running"
    assert lab.connect().declare("other").queue == "other"
    turns = 1
    while lab.broker.drain_on():
        turns += 1
    assert turns < len(messages)
    assert not peer.session.blocking.is_blocked
    assert queue.ready_count == len(messages)
    confirmed = 0
    while confirmed < len(messages):
        ack = peer.expect(Basic.Ack)
        assert ack.delivery_tag > confirmed
        confirmed = ack.delivery_tag
    reader = lab.connect()
    bodies = [reader.get("q0", no_ack=True) for _ in messages]
    assert [body and int(body[1].body.rstrip(b".")) for body in bodies] == list(range(len(messages)))


def test_a_turn_delivers_some_megabytes_of_a_read_to_many_queues() -> None:
    """The octets of a read are those of each queue, and a socket that is not read takes them slowly."""
    lab = Lab()
    peer = lab.connect()
    bind(peer, "amq.fanout", [""] * 100)
    lab.drain()
    queue = lab.vhost.queues["q0"]
    peer.send_bytes(b"".join(publish_bytes("", exchange="amq.fanout", message=bytes(20_000)) for _ in range(13)))
    delivered_bytes = queue.ready_count * 100 * 20_000
    # A third message would be too much.
    assert delivered_bytes == 2 * 100 * 20_000
    lab.drain()
    assert queue.ready_count == 13


ROLLBACKS = [Basic.Ack(0, multiple=True), Tx.Rollback()]
RETURNS = [Basic.Nack(0, multiple=True, requeue=True), Basic.Qos()]


@pytest.mark.parametrize("methods", [ROLLBACKS, RETURNS])
def test_others_are_served_between_settlements_of_many_deliveries(methods: list[base.Frame]) -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    for number in range(1000):
        peer.publish("q", b"%d" % number)
    peer.consume("q")
    lab.drain()
    assert len(peer.bodies()) == 1000
    if methods is ROLLBACKS:
        peer.call(Tx.Select())
    peer.send_bytes(b"".join(frame.marshal(method, 1) for method in methods * 60))
    assert peer.session.blocking.is_blocked
    assert lab.connect().declare("other").queue == "other"
    lab.drain()
    assert not peer.session.blocking.is_blocked
    assert len(peer.session.channels[1].unacked.deliveries) == 1000


def test_the_work_of_one_read_does_not_count_for_the_next(lab: Lab) -> None:
    peer = lab.connect()
    bind(peer, "amq.fanout", [""] * 100)
    lab.drain()
    for _ in range(2 * WORK_MAX // 100):
        peer.publish("", b"m", exchange="amq.fanout")
        assert not peer.session.is_working
