"""Message TTL and the expiration of single messages."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands
from pamqp.common import FieldTable

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


def test_a_message_expires_when_its_time_is_over_and_not_before(lab: Lab, peer: Peer) -> None:
    with_dead_letters(peer, message_ttl=1_800_000)
    peer.publish("q", b"x")
    lab.advance(1_799_999)
    assert (ready(lab, "q"), ready(lab, "dead")) == (1, 0)
    lab.advance(1)
    assert (ready(lab, "q"), ready(lab, "dead")) == (0, 1)


@pytest.mark.parametrize(("queue_ttl", "expiration"), [(500, "1000"), (1000, "500")])
def test_the_shorter_of_queue_and_expiration_counts(lab: Lab, peer: Peer, queue_ttl: int, expiration: str) -> None:
    declare(peer, message_ttl=queue_ttl)
    peer.publish("q", b"x", expiration=expiration)
    lab.advance(499)
    assert ready(lab, "q") == 1
    lab.advance(1)
    assert ready(lab, "q") == 0


def test_only_the_head_expires(lab: Lab, peer: Peer) -> None:
    declare(peer)
    peer.publish("q", b"stays")
    peer.publish("q", b"expires", expiration="10")
    lab.advance(1000)
    assert ready(lab, "q") == 2
    pulled = peer.get("q")
    assert pulled is not None
    assert (pulled[1].body, pulled[0].message_count) == (b"stays", 0)


@pytest.mark.parametrize(
    ("queue_type", "no_ack", "count"),
    [("classic", False, 0), ("classic", True, 0), ("quorum", False, 1), ("quorum", True, 0)],
)
def test_a_get_from_a_quorum_queue_counts_what_has_expired_behind_its_message(
    lab: Lab, peer: Peer, queue_type: str, no_ack: bool, count: int
) -> None:
    """Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    peer.declare("q", durable=True, arguments={"x-queue-type": queue_type})
    peer.publish("q", b"stays")
    peer.publish("q", b"expires", expiration="10")
    lab.advance(1000)
    pulled = peer.get("q", no_ack=no_ack)
    assert pulled is not None
    assert (pulled[1].body, pulled[0].message_count) == (b"stays", count)
    assert ready(lab, "q") == 0


def test_dead_letters_of_messages_that_have_expired_follow_the_answer_to_a_get(lab: Lab, peer: Peer) -> None:
    arguments: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "next"}
    peer.declare("q", arguments=arguments)
    peer.declare("next", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-max-length": 1})
    peer.publish("next", b"returns")
    peer.publish("q", b"stays")
    peer.publish("q", b"expires", expiration="10")
    lab.advance(1000)
    pulled = peer.get("q")
    assert pulled is not None
    assert (pulled[1].body, pulled[0].message_count) == (b"stays", 0)
    assert ready(lab, "q") == 1


def test_a_new_head_expires_while_the_consumer_is_full(lab: Lab, peer: Peer) -> None:
    with_dead_letters(peer)
    peer.call(commands.Basic.Qos(prefetch_count=1))
    peer.publish("q", b"stays")
    peer.publish("q", b"expires", expiration="10")
    peer.consume("q")
    peer.expect_delivery()
    lab.advance(10)
    assert (ready(lab, "q"), ready(lab, "dead")) == (0, 1)


def test_a_message_with_an_expiration_of_0_reaches_a_ready_consumer(lab: Lab, peer: Peer) -> None:
    declare(peer)
    peer.call(commands.Basic.Qos(prefetch_count=1))
    peer.consume("q")
    peer.publish("q", b"1", expiration="0")
    peer.publish("q", b"2", expiration="0")
    assert peer.bodies() == [b"1"]
    assert ready(lab, "q") == 0


def test_a_requeued_message_keeps_its_deadline(lab: Lab, peer: Peer) -> None:
    declare(peer, message_ttl=1000)
    peer.publish("q", b"x")
    peer.get("q", no_ack=False)
    lab.advance(900)
    peer.send(commands.Basic.Nack(1, requeue=True))
    lab.advance(99)
    assert ready(lab, "q") == 1
    lab.advance(1)
    assert ready(lab, "q") == 0


def test_an_unsettled_message_does_not_expire_until_it_comes_back(lab: Lab, peer: Peer) -> None:
    with_dead_letters(peer, message_ttl=1000)
    peer.publish("q", b"x")
    peer.get("q", no_ack=False)
    lab.advance(5000)
    assert ready(lab, "dead") == 0
    peer.send(commands.Basic.Nack(1, requeue=True))
    assert (ready(lab, "q"), ready(lab, "dead")) == (0, 1)


def test_a_settled_message_leaves_no_deadline(lab: Lab, peer: Peer) -> None:
    declare(peer, message_ttl=1000)
    for _ in range(2):
        peer.publish("q", b"x")
        peer.get("q", no_ack=False)
    peer.send(commands.Basic.Ack(2, multiple=True))
    assert not lab.vhost.queues["q"].deadlines


def test_a_new_head_expires_while_the_channel_is_full(lab: Lab, peer: Peer) -> None:
    with_dead_letters(peer)
    for body, expiration in ((b"lives", None), (b"due", "500")):
        peer.publish("q", body, expiration=expiration)
    peer.send(commands.Basic.Qos(prefetch_count=1, global_=True))
    peer.expect(commands.Basic.QosOk)
    peer.consume("q")
    assert peer.bodies() == [b"lives"]
    lab.advance(500)
    assert (ready(lab, "q"), ready(lab, "dead")) == (0, 1)


def test_a_due_message_behind_a_full_channel_expires_when_it_comes_to_the_head(lab: Lab, peer: Peer) -> None:
    with_dead_letters(peer)
    peer.publish("q", b"lives")
    peer.publish("q", b"due", expiration="500")
    lab.advance(500)
    assert ready(lab, "q") == 2
    peer.send(commands.Basic.Qos(prefetch_count=1, global_=True))
    peer.expect(commands.Basic.QosOk)
    peer.consume("q")
    assert peer.bodies() == [b"lives"]
    assert (ready(lab, "q"), ready(lab, "dead")) == (0, 1)


@pytest.mark.parametrize("waits_ms", [0, 500])
def test_a_message_that_becomes_the_head_by_a_new_limit_expires(lab: Lab, peer: Peer, waits_ms: int) -> None:
    peer.declare("q")
    peer.publish("q", b"lives")
    peer.publish("q", b"due", expiration="500")
    lab.advance(waits_ms)
    lab.vhost.policies.set(Policy("short", "q", {"max-length": 1}))
    lab.advance(500 - waits_ms)
    assert ready(lab, "q") == 0


def test_a_due_message_behind_a_batch_expires(lab: Lab, peer: Peer) -> None:
    with_dead_letters(peer)
    peer.publish("q", bytes(300_000))
    peer.publish("q", b"due", expiration="500")
    lab.advance(500)
    peer.consume("q")
    assert (ready(lab, "q"), ready(lab, "dead")) == (0, 1)


@pytest.mark.parametrize("argument", ["message_ttl", "expires"])
def test_a_deleted_queue_leaves_no_timer(lab: Lab, peer: Peer, argument: str) -> None:
    before = lab.broker.timers.next_deadline()
    declare(peer, "q", **{argument: 10})
    peer.publish("q", b"x")
    assert lab.broker.timers.next_deadline() == lab.now + 10
    peer.call(commands.Queue.Delete(queue="q"))
    assert lab.broker.timers.next_deadline() == before
