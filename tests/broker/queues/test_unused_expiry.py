"""x-expires: queues that are not used are deleted."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    return lab.connect()


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
    lab.advance(1)
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
