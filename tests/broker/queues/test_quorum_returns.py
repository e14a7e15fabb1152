"""Messages that come back to a quorum queue: their places, and what a full queue does with them.

The sources are the scenarios quorum_returns and quorum_overflows, played at RabbitMQ 3.10.8, 4.0.5 and 4.3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pamqp.commands import Basic, Channel, Connection, Tx

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.queues.quorum import QuorumQueue
from tests.peer import Lab, Peer

Way = Callable[[Peer], None]


def declare(peer: Peer, queue: str = "q", **arguments: Any) -> None:
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    peer.declare(queue, durable=True, arguments={"x-queue-type": "quorum", **given})


def declare_full(peer: Peer, **arguments: Any) -> None:
    """Declare a queue of at most three messages, with dead letters."""
    peer.declare("dead", durable=True)
    if "max_length_bytes" not in arguments:
        arguments["max_length"] = 3
    declare(peer, dead_letter_exchange="", dead_letter_routing_key="dead", **arguments)


def publish(peer: Peer, *bodies: bytes) -> None:
    for body in bodies:
        peer.publish("q", body)


def consume(peer: Peer, prefetch: int, tag: str = "c", channel: int = 1) -> None:
    peer.call(Basic.Qos(prefetch_count=prefetch), channel)
    peer.call(Basic.Consume(queue="q", consumer_tag=tag), channel)


def delivered(peer: Peer) -> list[bytes]:
    """The bodies of the deliveries since the last call."""
    return peer.bodies()


def drained(lab: Lab, queue: str = "q") -> list[bytes]:
    peer, found = lab.connect(), []
    while (pulled := peer.get(queue)) is not None:
        found.append(pulled[1].body)
    return found


WAYS: dict[str, Way] = {
    "close": lambda peer: peer.send(Channel.Close(200, "", 0, 0)),
    "error": lambda peer: peer.send(Basic.Ack(77)),
    "connection": lambda peer: peer.send(Connection.Close(200, "", 0, 0)),
    "reset": lambda peer: peer.session.connection_lost(peer.lab.now),
}


def nack_in_transaction(peer: Peer) -> None:
    peer.call(Tx.Select())
    peer.send(Basic.Nack(3, multiple=True))
    # The answer comes before deliveries.
    peer.call(Tx.Commit())


SAID: dict[str, Way] = {
    "nack": lambda peer: peer.send(Basic.Nack(3, multiple=True)),
    "rejects": lambda peer: peer.send(*(Basic.Reject(tag, requeue=True) for tag in (1, 2, 3))),
    "recover": lambda peer: peer.call(Basic.Recover(requeue=True)),
    "transaction": nack_in_transaction,
}
UNLIMITED: dict[str, dict[str, int]] = {
    "3.13": {},
    "4.0": {"delivery_limit": -1},
    "4.2": {"delivery_limit": -1},
    "4.3": {"delivery_limit": -1},
}


def order_after(compat: str, way: Way, *, pulls: bool, **arguments: Any) -> bytes:
    lab = Lab(compat=compat)
    peer = lab.connect()
    declare(peer, **arguments)
    publish(peer, b"1", b"2", b"3", b"4", b"5", b"6")
    if pulls:
        for _ in range(3):
            peer.get("q", no_ack=False)
    else:
        consume(peer, 3)
        assert delivered(peer) == [b"1", b"2", b"3"]
        peer.call(Basic.Cancel("c"))
    way(peer)
    return b"".join(drained(lab))


@pytest.mark.parametrize("pulls", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("compat", UNLIMITED)
def test_messages_of_a_lost_channel_return_to_the_head(compat: str, way: str, pulls: bool) -> None:
    assert order_after(compat, WAYS[way], pulls=pulls, **UNLIMITED[compat]) == b"123456"
    assert order_after(compat, WAYS[way], pulls=pulls, delivery_limit=5) == b"123456"


@pytest.mark.parametrize("pulls", [False, True])
@pytest.mark.parametrize("way", SAID)
@pytest.mark.parametrize("compat", UNLIMITED)
def test_messages_that_a_client_returns_go_to_the_tail_of_a_queue_without_a_delivery_limit_before_4_3(
    compat: str, way: str, pulls: bool
) -> None:
    expected = b"123456" if compat == "4.3" else b"456123"
    assert order_after(compat, SAID[way], pulls=pulls, **UNLIMITED[compat]) == expected
    assert order_after(compat, SAID[way], pulls=pulls, delivery_limit=5) == b"123456"


def test_a_negative_delivery_limit_gives_messages_up_with_their_first_return_up_to_3_13() -> None:
    assert order_after("3.13", SAID["nack"], pulls=True, delivery_limit=-1) == b"456"


@pytest.mark.parametrize(("way", "compat"), [(way, compat) for way in SAID for compat in ("4.0", "4.2", "4.3")])
def test_a_consumer_takes_its_messages_again_before_a_full_queue_drops_any(way: str, compat: str) -> None:
    lab = Lab(compat=compat)
    peer = lab.connect()
    declare_full(peer)
    consume(peer, 3)
    publish(peer, b"a", b"b", b"c", b"1", b"2", b"3")
    assert delivered(peer) == [b"a", b"b", b"c"]
    SAID[way](peer)
    assert delivered(peer) == [b"a", b"b", b"c"]
    assert drained(lab, "dead") == []
    assert drained(lab) == [b"1", b"2", b"3"]


def test_a_consumer_takes_other_messages_first_where_returned_ones_go_to_the_tail() -> None:
    lab = Lab(compat="3.13")
    peer = lab.connect()
    declare_full(peer)
    consume(peer, 1)
    publish(peer, b"0", b"1", b"2", b"3")
    peer.send(Basic.Nack(1))
    assert delivered(peer) == [b"0", b"1"]
    assert drained(lab, "dead") == []
    assert drained(lab) == [b"2", b"3", b"0"]


def test_another_consumer_takes_a_message_of_a_lost_channel_before_a_full_queue_drops_one() -> None:
    lab = Lab()
    lost, peer = lab.connect(), lab.connect()
    declare_full(lost)
    consume(lost, 1)
    publish(peer, b"0")
    consume(peer, 2)
    publish(peer, b"1", b"2", b"3", b"4")
    assert delivered(peer) == [b"1", b"2"]
    peer.call(Basic.Cancel("c"))
    consume(peer, 1, "another")
    assert delivered(peer) == [b"3"]
    publish(peer, b"5", b"6")
    lost.send(Channel.Close(200, "", 0, 0))
    assert drained(lab, "dead") == [b"0"]
    peer.send(Basic.Ack(3))
    assert delivered(peer) == [b"4"]


@pytest.mark.parametrize("compat", ["3.13", "4.2", "4.3"])
def test_messages_that_no_consumer_takes_are_dropped_from_the_head(compat: str) -> None:
    lab = Lab(compat=compat)
    peer = lab.connect()
    declare_full(peer)
    publish(peer, b"0", b"1", b"2")
    peer.get("q", no_ack=False)
    publish(peer, b"3")
    peer.send(Basic.Nack(1))
    assert drained(lab, "dead") == [b"1" if compat == "3.13" else b"0"]
    assert drained(lab) == ([b"2", b"3", b"0"] if compat == "3.13" else [b"1", b"2", b"3"])


@pytest.mark.parametrize(("compat", "expected"), [("3.13", b"cba"), ("4.2", b"cba"), ("4.3", b"abc")])
def test_of_several_messages_dropped_at_once_the_last_dies_first_before_4_3(compat: str, expected: bytes) -> None:
    lab = Lab(compat=compat)
    peer = lab.connect()
    declare_full(peer)
    consume(peer, 3)
    publish(peer, b"a", b"b", b"c", b"1", b"2", b"3")
    peer.send(Channel.Close(200, "", 0, 0))
    assert b"".join(drained(lab, "dead")) == expected


def test_a_limit_of_octets_waits_for_consumers_too() -> None:
    lab = Lab()
    peer = lab.connect()
    declare_full(peer, max_length_bytes=3)
    consume(peer, 1)
    publish(peer, b"00", b"1", b"22")
    peer.send(Basic.Nack(1))
    assert delivered(peer) == [b"00", b"00"]
    peer.send(Basic.Cancel("c"), Basic.Nack(2))
    assert drained(lab, "dead") == [b"00"]


@pytest.mark.parametrize("kind", ["policies", "operator_policies"])
def test_a_limit_that_a_policy_brings_while_messages_are_unacked_waits_for_consumers_too(kind: str) -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("dead", durable=True)
    declare(peer, dead_letter_exchange="", dead_letter_routing_key="dead")
    consume(peer, 2)
    publish(peer, b"a", b"b", b"1", b"2")
    getattr(lab.vhost, kind).set(Policy("limit", "q", {"max-length": 1}))
    assert drained(lab, "dead") == [b"1"]
    peer.send(Basic.Nack(2, multiple=True))
    assert delivered(peer) == [b"a", b"b", b"a", b"b"]
    assert drained(lab, "dead") == []
    peer.send(Channel.Close(200, "", 0, 0))
    assert drained(lab, "dead") == [b"b", b"a"]
    assert drained(lab) == [b"2"]


def test_consumers_that_need_several_batches_take_all_that_has_come_back_before_a_full_queue_drops_any() -> None:
    lab = Lab()
    lost, peer = lab.connect(), lab.connect()
    declare_full(lost)
    bodies = [bytes([65 + number]) * 200_000 for number in range(6)]
    consume(lost, 6)
    publish(lost, *bodies)
    consume(peer, 6)
    lost.send(Basic.Cancel("c"), Basic.Nack(6, multiple=True))
    lab.drain()
    assert [body[:1] for body in delivered(peer)] == [b"A", b"B", b"C", b"D", b"E", b"F"]
    assert drained(lab, "dead") == []


def test_a_delayed_message_makes_a_queue_full_only_after_the_next_delivery() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    declare_full(peer, delayed_retry_type="all", delayed_retry_min=1000)
    consume(peer, 1)
    publish(peer, b"0", b"1", b"2", b"3")
    peer.send(Basic.Reject(1, requeue=True))
    assert delivered(peer) == [b"0", b"1"]
    assert drained(lab, "dead") == []
    queue = lab.vhost.queues["q"]
    assert isinstance(queue, QuorumQueue)
    assert (queue.ready_count, queue.withheld_count) == (2, 1)


def test_the_next_single_active_consumer_takes_what_a_lost_one_returns_before_a_full_queue_drops_any() -> None:
    lab = Lab()
    first, second = lab.connect(), lab.connect()
    declare_full(first, single_active_consumer=True)
    consume(first, 1, "first")
    publish(first, b"0", b"1", b"2", b"3")
    consume(second, 1, "second")
    first.send(Channel.Close(200, "", 0, 0))
    assert delivered(second) == [b"0"]
    assert drained(lab, "dead") == []


def test_each_consumer_returns_its_messages_before_the_next_one_does() -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer)
    for tag in ("b", "a"):
        consume(peer, 2, tag)
    publish(peer, b"1", b"2", b"3", b"4")
    assert delivered(peer) == [b"1", b"2", b"3", b"4"]
    peer.send(Basic.Cancel("a"), Basic.Cancel("b"), Basic.Nack(0, multiple=True))
    assert drained(lab) == [b"2", b"4", b"1", b"3"]
