"""Full quorum queues that refuse publishes.

Source: rabbit_fifo.erl, evaluate_limit; the same was seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6.
"""

from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.admin.policies import Policy
from tests.peer import Lab, Peer


@pytest.fixture
def peer(lab: Lab) -> Peer:
    return confirming(lab)


def confirming(lab: Lab) -> Peer:
    peer = lab.connect()
    peer.call(commands.Confirm.Select())
    return peer


def declare(peer: Peer, length: int, queue: str = "q") -> None:
    arguments = {"x-queue-type": "quorum", "x-overflow": "reject-publish", "x-max-length": length}
    peer.declare(queue, durable=True, arguments=arguments)


def publish(peer: Peer, count: int = 1) -> list[bool]:
    """Return whether each publish is confirmed."""
    taken = []
    for _ in range(count):
        peer.publish("q", b"m")
        verdict, _ = peer.next()
        assert isinstance(verdict, (commands.Basic.Ack, commands.Basic.Nack))
        taken.append(isinstance(verdict, commands.Basic.Ack))
    return taken


def get(peer: Peer, count: int = 1) -> None:
    for _ in range(count):
        assert peer.get("q") is not None


@pytest.mark.parametrize(("length", "taken"), [(0, [True, False]), (2, [True, True, True, False, False])])
def test_a_full_quorum_queue_takes_one_message_more(peer: Peer, length: int, taken: list[bool]) -> None:
    declare(peer, length)
    assert publish(peer, len(taken)) == taken


def test_a_publisher_is_refused_until_four_fifths_of_the_limit_are_left(peer: Peer) -> None:
    declare(peer, 5)
    assert publish(peer, 6) == [True] * 6
    get(peer)
    assert publish(peer) == [False]
    get(peer)
    assert publish(peer, 3) == [True, True, False]


def test_a_publisher_that_the_queue_does_not_know_is_refused_only_above_the_limit(lab: Lab, peer: Peer) -> None:
    declare(peer, 5)
    publish(peer, 6)
    assert publish(confirming(lab)) == [False]
    get(peer)
    assert publish(confirming(lab), 2) == [True, False]


def test_room_between_two_publishes_counts_even_if_messages_return(peer: Peer) -> None:
    declare(peer, 5)
    publish(peer, 6)
    for _ in range(6):
        peer.get("q", no_ack=False)
    peer.send(commands.Basic.Ack(1))
    peer.send(commands.Basic.Nack(6, multiple=True, requeue=True))
    assert publish(peer, 2) == [True, False]


def test_returned_messages_may_exceed_the_limit(peer: Peer) -> None:
    declare(peer, 1)
    publish(peer)
    peer.get("q", no_ack=False)
    publish(peer)
    peer.get("q", no_ack=False)
    peer.send(commands.Basic.Nack(0, multiple=True, requeue=True))
    assert publish(peer) == [False]


def test_a_policy_that_drops_the_head_refuses_no_publishes(lab: Lab, peer: Peer) -> None:
    arguments = {"x-queue-type": "quorum"}
    peer.declare("q", durable=True, arguments=arguments)
    lab.vhost.policies.set(Policy("p", "^q", {"max-length": 1, "overflow": "reject-publish"}))
    assert publish(peer, 3) == [True, True, False]
    lab.vhost.policies.set(Policy("p", "^q", {"max-length": 1}))
    assert publish(peer) == [True]
    assert lab.vhost.queues["q"].ready_count == 1


def test_a_policy_refuses_those_who_have_published_until_four_fifths_are_left(lab: Lab, peer: Peer) -> None:
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    publish(peer, 2)
    lab.vhost.policies.set(Policy("p", "^q", {"max-length": 1, "overflow": "reject-publish"}))
    get(peer)
    assert publish(peer) == [False]
    assert publish(confirming(lab)) == [True]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_dead_letters_enter_a_full_quorum_queue(lab: Lab, peer: Peer, kind: str) -> None:
    declare(peer, 1)
    arguments = {"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    peer.declare("source", durable=True, arguments=arguments)
    publish(peer, 2)
    peer.publish("source", b"dead")
    peer.expect(commands.Basic.Ack)
    peer.get("source", no_ack=False)
    peer.send(commands.Basic.Reject(1, requeue=False))
    assert lab.vhost.queues["q"].ready_count == 3


def test_a_full_quorum_queue_refuses_dead_letters_that_must_arrive(lab: Lab, peer: Peer) -> None:
    declare(peer, 1)
    given = {
        "x-queue-type": "quorum",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q",
    }
    peer.declare("source", durable=True, arguments=given)
    publish(peer, 2)
    peer.publish("source", b"dead")
    peer.expect(commands.Basic.Ack)
    peer.get("source", no_ack=False)
    peer.send(commands.Basic.Reject(1, requeue=False))
    assert lab.vhost.queues["q"].ready_count == 2
