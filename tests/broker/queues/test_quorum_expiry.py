"""Expiry in quorum queues, as in the scenarios of quorum_expiry at RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic

from amqp_broker.broker.admin.policies import Policy
from tests.peer import Lab, Peer
from tests.restarting import durable_lab, restarted


def connected(lab: Lab, **arguments: Any) -> Peer:
    """A client, its queue q and the queue of its dead letters."""
    peer = lab.connect()
    peer.declare("dead", durable=True)
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    given |= {"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare("q", durable=True, arguments=given)
    return peer


def drained(lab: Lab, queue: str) -> list[bytes]:
    peer, found = lab.connect(), []
    while (pulled := peer.get(queue)) is not None:
        found.append(pulled[1].body)
    return found


@pytest.mark.parametrize(("compat", "dead"), [("3.13", []), ("4.0", []), ("4.2", []), ("4.3", [b"low"])])
def test_from_4_3_on_a_message_expires_behind_one_of_higher_priority(compat: str, dead: list[bytes]) -> None:
    lab = Lab(compat=compat)
    peer = connected(lab)
    peer.publish("q", b"high", priority=5)
    peer.publish("q", b"low", priority=0, expiration="200")
    lab.advance(199)
    assert drained(lab, "dead") == []
    lab.advance(1)
    assert drained(lab, "dead") == dead
    assert drained(lab, "q") == [b"high"]


def test_messages_of_each_priority_expire_in_order_and_from_the_highest_on() -> None:
    lab = Lab(compat="4.3")
    peer = connected(lab)
    peer.publish("q", b"stays", priority=9)
    for body, priority in ((b"1", 1), (b"4", 4), (b"7", 7), (b"4 too", 4)):
        peer.publish("q", body, priority=priority, expiration="200")
    peer.publish("q", b"1 waits", priority=1)
    peer.publish("q", b"1 behind", priority=1, expiration="200")
    lab.advance(200)
    assert drained(lab, "dead") == [b"7", b"4", b"4 too", b"1"]
    assert drained(lab, "q") == [b"stays", b"1 waits"]
    assert drained(lab, "dead") == [b"1 behind"]


@pytest.mark.parametrize("kind", ["policies", "operator_policies", None])
def test_the_ttl_of_a_queue_applies_to_each_priority(kind: str | None) -> None:
    lab = Lab(compat="4.3")
    peer = connected(lab, **({"message_ttl": 200} if kind is None else {}))
    peer.publish("q", b"held", priority=9)
    peer.get("q", no_ack=False)
    if kind is not None:
        peer.publish("q", b"earlier", priority=7)
        getattr(lab.vhost, kind).set(Policy("ttl", "q", {"message-ttl": 200}))
    peer.publish("q", b"high", priority=5)
    lab.advance(100)
    peer.publish("q", b"low", priority=0, expiration="20")
    lab.advance(20)
    assert drained(lab, "dead") == [b"low"]
    lab.advance(80)
    assert drained(lab, "dead") == [b"high"]


def test_a_message_expires_behind_one_that_came_back_but_not_among_those() -> None:
    lab = Lab(compat="4.3")
    peer = connected(lab)
    peer.publish("q", b"first")
    peer.publish("q", b"second", expiration="200")
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    peer.publish("q", b"new", expiration="200")
    peer.send(Basic.Nack(2, multiple=True))
    lab.advance(200)
    assert drained(lab, "dead") == [b"new"]
    assert drained(lab, "q") == [b"first"]
    assert drained(lab, "dead") == [b"second"]


def test_a_message_expires_behind_one_that_a_full_consumer_will_take() -> None:
    lab = Lab(compat="4.3")
    peer = connected(lab, max_length_bytes=100)
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("q")
    peer.publish("q", b"held", priority=9)
    peer.publish("q", b"high", priority=5)
    peer.publish("q", b"low", priority=0, expiration="200")
    assert peer.bodies() == [b"held"]
    lab.advance(200)
    assert drained(lab, "dead") == [b"low"]
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"high"]
    assert lab.vhost.queues["q"].limit.ready_bytes == 0


def test_a_message_expires_behind_a_higher_priority_after_a_restart() -> None:
    lab = durable_lab(compat="4.3")
    peer = connected(lab)
    peer.publish("q", b"high", priority=5, delivery_mode=2)
    peer.publish("q", b"low", priority=0, expiration="200", delivery_mode=2)
    again = restarted(lab)
    again.advance(200)
    assert drained(again, "dead") == [b"low"]
