"""A key is in use exactly while a message with it is in the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.amqp.deduplication_key import HEADER
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe.message_fate import ELSEWHERE, READY, fate
from amqp_broker.broker.queues.deduplicated import DeduplicatedPriorityQueue, DeduplicatedQueue, HeldKeys
from tests.broker_parts import new_message
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer

DEDUPLICATED = {"x-message-deduplication": True}
TYPES: dict[str, dict[str, Any]] = {"classic": {}, "priority": {"x-max-priority": 5}}
Put = Callable[..., None]


@pytest.fixture(params=TYPES)
def declare(request: pytest.FixtureRequest, peer: Peer) -> Callable[..., None]:
    def declared(name: str = "q", **arguments: Any) -> None:
        table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        peer.declare(name, arguments={**DEDUPLICATED, **TYPES[request.param], **table})

    return declared


def put(peer: Peer, value: Any, body: bytes = b"", queue: str = "q", **options: Any) -> None:
    peer.publish(queue, body, headers={HEADER: value}, **options)


def bodies(lab: Lab, queue: str = "q") -> list[bytes]:
    return [message.body for message in lab.vhost.queues[queue].messages()]


def held(lab: Lab, queue: str = "q") -> int:
    """Return the number of keys in use."""
    found = lab.vhost.queues[queue]
    assert isinstance(found, (DeduplicatedQueue, DeduplicatedPriorityQueue))
    return len(found.keys)


def test_a_duplicate_of_a_ready_message_is_dropped(declare: Put, peer: Peer) -> None:
    declare()
    put(peer, "a", b"1")
    put(peer, "a", b"2")
    put(peer, "b", b"3")
    assert bodies(peer.lab) == [b"1", b"3"]


def test_messages_without_the_header_are_never_duplicates(declare: Put, peer: Peer) -> None:
    declare()
    peer.publish("q", b"1")
    peer.publish("q", b"2", headers={"other": "a"})
    peer.publish("q", b"3", headers={"other": "a"})
    assert bodies(peer.lab) == [b"1", b"2", b"3"]
    assert held(peer.lab) == 0


def test_an_argument_names_the_header(declare: Put, peer: Peer) -> None:
    declare(deduplication_header="id")
    for body in (b"1", b"2"):
        peer.publish("q", body, headers={"id": 7})
    put(peer, "a", b"3")
    put(peer, "a", b"4")
    assert bodies(peer.lab) == [b"1", b"3", b"4"]


def test_a_duplicate_of_an_unacked_message_is_dropped_until_the_ack(declare: Put, peer: Peer) -> None:
    declare()
    peer.consume("q")
    put(peer, "a", b"1")
    put(peer, "a", b"2")
    assert peer.bodies() == [b"1"]
    peer.send(Basic.Ack(1))
    assert held(peer.lab) == 0
    put(peer, "a", b"3")
    assert peer.bodies() == [b"3"]


def test_many_acks_at_once_free_the_keys(declare: Put, peer: Peer) -> None:
    declare()
    for number in range(5):
        put(peer, number)
    peer.consume("q")
    peer.deliveries()
    peer.send(Basic.Ack(3, multiple=True))
    assert held(peer.lab) == 2


def test_a_consumer_without_acks_frees_the_key_at_once(declare: Put, peer: Peer) -> None:
    declare()
    peer.consume("q", no_ack=True)
    put(peer, "a", b"1")
    put(peer, "a", b"2")
    assert peer.bodies() == [b"1", b"2"]
    assert held(peer.lab) == 0


def test_basic_get_without_acks_frees_the_key(declare: Put, peer: Peer) -> None:
    declare()
    put(peer, "a")
    peer.get("q")
    assert held(peer.lab) == 0


def test_a_requeued_message_keeps_its_key(declare: Put, peer: Peer) -> None:
    declare()
    put(peer, "a", b"1")
    peer.get("q", no_ack=False)
    peer.send(Basic.Nack(delivery_tag=1, requeue=True))
    put(peer, "a", b"2")
    assert bodies(peer.lab) == [b"1"]


def test_a_message_of_a_lost_connection_keeps_its_key(declare: Put, peer: Peer) -> None:
    declare()
    put(peer, "a", b"1")
    other = peer.lab.connect()
    other.consume("q")
    other.disconnect()
    put(peer, "a", b"2")
    assert bodies(peer.lab) == [b"1"]


def test_a_rejected_message_frees_its_key(declare: Put, peer: Peer) -> None:
    declare()
    put(peer, "a")
    peer.get("q", no_ack=False)
    peer.send(Basic.Reject(1, requeue=False))
    assert held(peer.lab) == 0


def test_an_expired_message_frees_its_key_before_the_next_is_compared(declare: Put, peer: Peer) -> None:
    declare(message_ttl=1000)
    put(peer, "a", b"1")
    peer.lab.now += 1000
    peer.lab.broker.now = peer.lab.now
    put(peer, "a", b"2")
    assert bodies(peer.lab) == [b"2"]
    peer.lab.advance(1000)
    assert held(peer.lab) == 0


def test_a_message_that_expires_when_it_comes_holds_no_key(declare: Put, peer: Peer) -> None:
    declare()
    put(peer, "a", expiration="0")
    assert held(peer.lab) == 0
    declare("none", message_ttl=0)
    put(peer, "a", queue="none")
    assert held(peer.lab, "none") == 0


def test_a_message_that_the_limit_drops_frees_its_key(declare: Put, peer: Peer) -> None:
    declare(max_length=1)
    put(peer, "a", b"1")
    put(peer, "b", b"2")
    put(peer, "a", b"3")
    assert bodies(peer.lab) == [b"3"]
    assert held(peer.lab) == 1


def test_a_purge_frees_the_keys_of_ready_messages_only(declare: Put, peer: Peer) -> None:
    declare()
    put(peer, "unacked")
    peer.get("q", no_ack=False)
    put(peer, "ready")
    peer.call(Queue.Purge(queue="q"))
    assert held(peer.lab) == 1
    put(peer, "unacked", b"1")
    put(peer, "ready", b"2")
    assert bodies(peer.lab) == [b"2"]
    peer.send(Basic.Ack(1))
    peer.call(Queue.Purge(queue="q"))
    assert held(peer.lab) == 0


def test_a_dead_letter_is_compared_too(declare: Put, peer: Peer) -> None:
    declare()
    peer.declare("dying", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    put(peer, "a", b"1")
    for value in ("a", "b"):
        put(peer, value, b"2", queue="dying")
        got = peer.get("dying", no_ack=False)
        assert got is not None
        peer.send(Basic.Reject(got[0].delivery_tag, requeue=False))
    assert bodies(peer.lab) == [b"1", b"2"]


def test_a_dead_letter_may_come_back_to_its_queue(declare: Put, peer: Peer) -> None:
    declare(dead_letter_exchange="")
    put(peer, "a", b"1")
    peer.get("q", no_ack=False)
    peer.send(Basic.Reject(1, requeue=False))
    assert bodies(peer.lab) == [b"1"]
    put(peer, "a", b"2")
    assert bodies(peer.lab) == [b"1"]


def test_a_duplicate_is_confirmed_with_an_ack_and_not_returned(declare: Put, peer: Peer) -> None:
    declare()
    peer.call(Confirm.Select())
    for number in (1, 2):
        put(peer, "a", mandatory=True)
        assert peer.expect(Basic.Ack).delivery_tag == number
    peer.expect_nothing()


def test_a_full_queue_refuses_a_duplicate_first(declare: Put, peer: Peer) -> None:
    declare(max_length=1, overflow="reject-publish")
    peer.call(Confirm.Select())
    put(peer, "a")
    peer.expect(Basic.Ack)
    put(peer, "a")
    peer.expect(Basic.Nack)
    assert held(peer.lab) == 1


def test_a_transaction_is_compared_when_it_is_committed(declare: Put, peer: Peer) -> None:
    declare()
    peer.call(Tx.Select())
    put(peer, "a", b"1")
    put(peer, "a", b"2")
    peer.call(Tx.Rollback())
    assert held(peer.lab) == 0
    put(peer, "a", b"3")
    put(peer, "a", b"4")
    peer.call(Tx.Commit())
    assert bodies(peer.lab) == [b"3"]


def test_other_queues_of_a_publish_get_the_duplicate(declare: Put, peer: Peer) -> None:
    declare()
    peer.declare("plain")
    peer.call(Exchange.Declare(exchange="x", exchange_type="fanout"))
    for queue in ("q", "plain"):
        peer.call(Queue.Bind(queue=queue, exchange="x"))
    for body in (b"1", b"2"):
        peer.publish("", body, exchange="x", headers={HEADER: "a"})
    assert (bodies(peer.lab), bodies(peer.lab, "plain")) == ([b"1"], [b"1", b"2"])


def test_an_ack_that_a_fault_loses_keeps_the_key(declare: Put, peer: Peer) -> None:
    declare()
    peer.lab.broker.faults.add(Rule(vhost="/", action="drop_ack", queue="q"))
    put(peer, "a")
    peer.get("q", no_ack=False)
    peer.send(Basic.Ack(1))
    assert held(peer.lab) == 1


def test_the_fate_of_a_duplicate_says_why(declare: Put, peer: Peer) -> None:
    declare()
    log = peer.lab.broker.event_logs.start(peer.lab.vhost)
    put(peer, "a")
    put(peer, "a")
    assert fate(log.timeline(1), "q", ["q"]).state == READY
    found = fate(log.timeline(2), "q", ["q"])
    assert found.state == ELSEWHERE
    text = "It was dropped as a duplicate: the queue had a message with the same deduplication header."
    assert found.sentences[:2] == ("It never came here.", text)


def test_deleting_a_queue_drops_its_keys(declare: Put, peer: Peer) -> None:
    declare()
    put(peer, "a")
    peer.get("q", no_ack=False)
    queue = peer.lab.vhost.queues["q"]
    peer.call(Queue.Delete(queue="q"))
    assert len(queue.keys) == 0


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_other_types_of_queues_ignore_the_argument(kind: str, peer: Peer) -> None:
    peer.declare("q", durable=True, arguments={**DEDUPLICATED, "x-queue-type": kind})
    put(peer, "a")
    put(peer, "a")
    assert peer.lab.vhost.queues["q"].ready_count == 2


def test_false_turns_deduplication_off(peer: Peer) -> None:
    peer.declare("q", arguments={"x-message-deduplication": False, HEADER: 1})
    put(peer, "a")
    put(peer, "a")
    assert len(bodies(peer.lab)) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"x-message-deduplication": "true"},
            "invalid arg 'x-message-deduplication' for queue 'q' in vhost '/': {unacceptable_type,longstr}",
        ),
        ({**DEDUPLICATED, HEADER: 1}, "Invalid argument, 'x-deduplication-header' must be the name of a header"),
    ],
)
def test_a_wrong_argument_closes_the_channel(arguments: dict[str, Any], text: str, peer: Peer) -> None:
    peer.send(Queue.Declare(queue="q", arguments=arguments))
    assert peer.expect_channel_close(406) == f"PRECONDITION_FAILED - {text}"
    assert "q" not in peer.lab.vhost.queues


def test_the_ack_of_a_duplicate_waits_for_the_commit_of_its_original() -> None:
    journal = MemoryJournal()
    lab = Lab()
    lab.broker.journal = journal
    peer = lab.connect()
    peer.declare("q", durable=True, arguments=DEDUPLICATED)
    journal.commit()
    lab.broker.on_committed()
    peer.call(Confirm.Select())
    other = lab.connect()
    other.call(Confirm.Select())
    put(peer, "a", delivery_mode=2)
    put(other, "a", delivery_mode=2)
    other.expect_nothing()
    journal.commit()
    lab.broker.on_committed()
    other.expect(Basic.Ack)
    put(other, "a", delivery_mode=2)
    other.expect(Basic.Ack)


def test_the_ack_of_a_duplicate_waits_for_a_commit_that_is_under_way() -> None:
    journal = MemoryJournal()
    lab = Lab()
    lab.broker.journal = journal
    peer = lab.connect()
    peer.declare("q", durable=True, arguments=DEDUPLICATED)
    put(peer, "a", delivery_mode=2)
    journal.take_batch()
    peer.call(Confirm.Select())
    put(peer, "a", delivery_mode=2)
    peer.expect_nothing()
    journal.on_committed()
    lab.broker.on_committed()
    peer.expect(Basic.Ack)


def test_keys_are_held_until_their_message_leaves() -> None:
    keys = HeldKeys(HEADER)
    one, other, free = (new_message(headers=headers) for headers in ({HEADER: "a"}, {HEADER: "b"}, {}))
    assert keys.add(one)
    assert not keys.add(one)
    assert keys.add(free)
    assert keys.add(free)
    keys.remove(free)
    keys.remove(one)
    keys.add_all([(0, one, False), (1, other, True)])
    assert len(keys) == 2
    keys.clear()
    assert len(keys) == 0
