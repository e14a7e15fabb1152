"""x-expires: queues that are not used are deleted."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.policies import Policy
from tests.peer import Lab, Peer


def declare(peer: Peer, queue: str = "q", **arguments: Any) -> None:
    peer.declare(queue, arguments={f"x-{name.replace('_', '-')}": value for name, value in arguments.items()})


def with_dead_letters(peer: Peer, **arguments: Any) -> None:
    peer.declare("dead")
    declare(peer, dead_letter_exchange="", dead_letter_routing_key="dead", **arguments)


def ready(lab: Lab, queue: str) -> int:
    count: int = lab.vhost.queues[queue].ready_count
    return count


def test_an_unused_queue_expires(lab: Lab, peer: Peer) -> None:
    declare(peer, expires=1000)
    lab.advance(999)
    assert "q" in lab.vhost.queues
    lab.advance(1)
    assert "q" not in lab.vhost.queues


@pytest.mark.parametrize(
    "use",
    [
        commands.Queue.Declare(queue="q", passive=True),
        commands.Queue.Declare(queue="q", arguments={"x-expires": 1000}),
        commands.Basic.Get(queue="q"),
    ],
    ids=lambda use: f"{use.name}",
)
def test_declaring_and_pulling_count_as_uses(lab: Lab, peer: Peer, use: Any) -> None:
    declare(peer, expires=1000)
    lab.advance(900)
    peer.call(use)
    lab.advance(999)
    assert "q" in lab.vhost.queues
    lab.advance(1)
    assert "q" not in lab.vhost.queues


def test_publishing_and_unsettled_messages_do_not_count_as_uses(lab: Lab, peer: Peer) -> None:
    declare(peer, expires=1000)
    peer.publish("q", b"x")
    peer.get("q", no_ack=False)
    lab.advance(900)
    peer.publish("q", b"x")
    lab.advance(100)
    assert "q" not in lab.vhost.queues
    peer.send(commands.Basic.Ack(1))
    peer.expect_nothing()


def test_a_quorum_queue_does_not_expire_while_a_message_is_unsettled(lab: Lab, peer: Peer) -> None:
    # Source: rabbit_fifo.erl, is_expired.
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-expires": 1000})
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    lab.advance(20_000)
    assert "q" in lab.vhost.queues
    peer.send(commands.Basic.Ack(1))
    lab.advance(999)
    assert "q" in lab.vhost.queues
    lab.advance(1)
    assert "q" not in lab.vhost.queues


def declare_quorum(peer: Peer, **arguments: Any) -> None:
    peer.call(commands.Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": "quorum", **arguments}))


@pytest.mark.parametrize("compat", ["3.13", "4.0", "4.2", "4.3"])
def test_declaring_does_not_count_as_a_use_of_a_quorum_queue(compat: str) -> None:
    """Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6; there a queue is deleted up to 5 s later."""
    lab = Lab(compat=compat)
    peer = lab.connect()
    declare_quorum(peer, **{"x-expires": 1000})
    lab.advance(900)
    declare_quorum(peer, **{"x-expires": 1000})
    peer.call(commands.Queue.Declare(queue="q", passive=True))
    peer.publish("q", b"1")
    peer.call(commands.Queue.Purge(queue="q"))
    lab.advance(99)
    assert "q" in lab.vhost.queues
    lab.advance(1)
    assert "q" not in lab.vhost.queues


@pytest.mark.parametrize("take", ["get", "consume"])
@pytest.mark.parametrize(
    "settle",
    [
        commands.Basic.Ack(1),
        commands.Basic.Ack(0, multiple=True),
        commands.Basic.Nack(1, requeue=True),
        commands.Basic.Reject(1, requeue=False),
        commands.Channel.Close(200, "", 0, 0),
    ],
    ids=lambda settle: settle.name,
)
def test_settling_a_message_without_consumers_counts_as_a_use_of_a_quorum_queue(
    lab: Lab, peer: Peer, take: str, settle: Any
) -> None:
    declare_quorum(peer, **{"x-expires": 1000})
    peer.publish("q", b"1")
    if take == "get":
        peer.get("q", no_ack=False)
    else:
        peer.consume("q", "c")
        peer.deliveries()
        peer.call(commands.Basic.Cancel("c"))
    lab.advance(5000)
    peer.send(settle)
    lab.advance(999)
    assert "q" in lab.vhost.queues
    lab.advance(1)
    assert "q" not in lab.vhost.queues


def test_giving_up_a_waiting_message_does_not_count_as_a_use_of_a_quorum_queue(lab: Lab, peer: Peer) -> None:
    declare_quorum(peer, **{"x-expires": 1000, "x-message-ttl": 500, "x-max-length": 1})
    for body in (b"dropped", b"expired"):
        peer.publish("q", body)
    lab.advance(999)
    assert "q" in lab.vhost.queues
    lab.advance(1)
    assert "q" not in lab.vhost.queues


@pytest.mark.parametrize(
    ("queue_type", "compat", "is_use"),
    [
        ("classic", "4.3", True),
        ("quorum", "3.13", True),
        ("quorum", "4.0", True),
        ("quorum", "4.2", True),
        ("quorum", "4.3", False),
    ],
)
def test_another_policy_counts_as_a_use_except_of_a_quorum_queue_in_4_3(
    queue_type: str, compat: str, is_use: bool
) -> None:
    """Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    lab = Lab(compat=compat)
    peer = lab.connect()
    declare_quorum(peer, **{"x-queue-type": queue_type, "x-expires": 1000})
    lab.advance(900)
    lab.broker.tick(lab.now)
    lab.vhost.policies.set(Policy("p", ".*", {"message-ttl": 5000}))
    lab.advance(100)
    assert ("q" in lab.vhost.queues) is is_use
    lab.advance(900)
    assert "q" not in lab.vhost.queues


def test_the_time_starts_when_the_last_consumer_leaves(lab: Lab, peer: Peer) -> None:
    declare(peer, expires=1000)
    peer.consume("q", "one")
    peer.consume("q", "two")
    lab.advance(5000)
    peer.call(commands.Basic.Cancel("one"))
    lab.advance(5000)
    peer.call(commands.Basic.Cancel("two"))
    lab.advance(999)
    assert "q" in lab.vhost.queues
    lab.advance(1)
    assert "q" not in lab.vhost.queues


def test_an_expired_queue_does_not_dead_letter_its_messages(lab: Lab, peer: Peer) -> None:
    with_dead_letters(peer, expires=1000)
    peer.publish("q", b"x")
    lab.advance(1000)
    assert "q" not in lab.vhost.queues
    assert ready(lab, "dead") == 0
