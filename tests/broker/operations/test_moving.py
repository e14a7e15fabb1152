from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.operations import moving
from amqp_broker.broker.operations.moving import Moved
from amqp_broker.broker.operations.restoring import restore
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import CollectingConsumer, bind, new_broker, new_exchange, new_message, new_queue, push
from tests.memory_journal import MemoryJournal
from tests.peer import Lab

TYPES: list[dict[str, Any]] = [{}, {"x-queue-type": "quorum"}, {"x-max-priority": 3}, {"x-max-length-bytes": 1000}]


@pytest.fixture
def vhost() -> VHost:
    return new_broker().vhosts["/"]


def move_to_queue(source: Queue, count: int, destination: Queue) -> Moved:
    return finished(moving.move_to_queue(source, count, destination))


def move_to_exchange(source: Queue, count: int, vhost: VHost, exchange: Exchange) -> Moved:
    return finished(moving.move_to_exchange(source, count, vhost, exchange))


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.messages()]


@pytest.mark.parametrize("arguments", TYPES)
def test_the_first_messages_are_moved_in_their_order(vhost: VHost, arguments: dict[str, Any]) -> None:
    queue = new_queue(vhost, is_durable=True, arguments=arguments)
    other = new_queue(vhost, "other", is_durable=True, arguments=arguments)
    push(queue, b"one", b"two", b"three")
    assert move_to_queue(queue, 2, other) == Moved(2)
    assert (bodies(queue), bodies(other)) == ([b"three"], [b"one", b"two"])


@pytest.mark.parametrize("arguments", TYPES)
def test_messages_refused_by_a_full_queue_stay(vhost: VHost, arguments: dict[str, Any]) -> None:
    queue = new_queue(vhost, is_durable=True, arguments=arguments)
    other = new_queue(vhost, "other", is_durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    push(queue, b"one", b"two", b"three")
    assert move_to_queue(queue, 3, other) == Moved(1, "queue 'other' in vhost '/' is full")
    assert (bodies(queue), bodies(other)) == ([b"two", b"three"], [b"one"])
    assert queue.unacked_count == 0


def test_a_failed_move_does_not_count_against_the_delivery_limit(vhost: VHost) -> None:
    queue = new_queue(vhost, is_durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 1})
    push(queue, b"one")
    for _ in range(5):
        assert move_to_exchange(queue, 1, vhost, vhost.exchanges["amq.direct"]).messages == 0
    assert bodies(queue) == [b"one"]
    pulled = queue.pull()
    assert pulled is not None
    assert not pulled[2]


def test_a_failed_move_leaves_the_byte_count_unchanged(vhost: VHost) -> None:
    queue = new_queue(vhost, is_durable=True, arguments={"x-max-length-bytes": 6})
    push(queue, b"one", b"two")
    move_to_exchange(queue, 2, vhost, vhost.exchanges["amq.direct"])
    push(queue, b"new")
    assert bodies(queue) == [b"two", b"new"]


def test_a_moved_message_keeps_its_properties_and_routing_key(vhost: VHost) -> None:
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    exchange = new_exchange(vhost, "e", "topic")
    bind(exchange, other, vhost, "a.#")
    queue.push(Message.build(Address("", "a.b"), Properties(message_id="i", priority=3), b"x"))
    assert move_to_exchange(queue, 1, vhost, exchange) == Moved(1)
    (message,) = other.messages()
    assert (message.exchange, message.routing_key, message.properties().as_dict()) == (
        "e",
        "a.b",
        {"message_id": "i", "priority": 3},
    )


def test_the_expiration_of_a_moved_message_starts_anew() -> None:
    peer = (lab := Lab()).connect()
    vhost = lab.vhost
    for name in ("first", "second", "third"):
        peer.declare(name)
    bind(new_exchange(vhost, "e", "fanout"), vhost.queues["third"], vhost)
    peer.publish("first", b"x", expiration="100")
    lab.broker.now += 99
    assert move_to_queue(vhost.queues["first"], 1, vhost.queues["second"]) == Moved(1)
    lab.broker.now += 99
    assert move_to_exchange(vhost.queues["second"], 1, vhost, vhost.exchanges["e"]) == Moved(1)
    lab.now = lab.broker.now
    lab.advance(99)
    assert bodies(vhost.queues["third"]) == [b"x"]
    lab.advance(1)
    assert bodies(vhost.queues["third"]) == []


def test_unroutable_messages_stay(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"one")
    moved = move_to_exchange(queue, 1, vhost, vhost.exchanges["amq.direct"])
    assert moved == Moved(0, "exchange 'amq.direct' in vhost '/' routes 'q' to no queue")
    assert bodies(queue) == [b"one"]


def test_moved_messages_are_delivered_to_consumers(vhost: VHost) -> None:
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    collector = CollectingConsumer(other).start()
    push(queue, b"one")
    move_to_queue(queue, 1, other)
    assert collector.bodies == [b"one"]


def test_a_move_ends_if_the_exchange_routes_back_to_the_queue(vhost: VHost) -> None:
    queue = new_queue(vhost)
    push(queue, b"one", b"two")
    assert move_to_exchange(queue, 10**30, vhost, vhost.default_exchange) == Moved(2)
    assert bodies(queue) == [b"one", b"two"]


def test_a_moved_message_may_be_delayed(vhost: VHost) -> None:
    queue = new_queue(vhost)
    exchange = new_exchange(
        vhost, "later", "x-delayed-message", is_durable=True, arguments={"x-delayed-type": "fanout"}
    )
    headers = {"x-delay": fields.Long(5)}
    queue.push(Message.build(Address("", "q"), Properties(headers=headers), b"x"))
    assert move_to_exchange(queue, 1, vhost, exchange) == Moved(1)
    assert isinstance(exchange, DelayedExchange)
    assert (queue.ready_count, exchange.messages_delayed) == (0, 1)


def test_a_move_stops_at_the_limit_of_messages_per_request(vhost: VHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "MESSAGES_MAX", 5)
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    push(queue, *([b"x"] * 6))
    assert move_to_queue(queue, 6, other) == Moved(5, "the limit of messages per request is reached")
    assert (queue.ready_count, other.ready_count) == (1, 5)


def test_a_move_ends_with_its_destination(vhost: VHost) -> None:
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three")
    steps = moving.move_to_queue(queue, 3, other)
    next(steps)
    vhost.remove_queue(other)
    assert finished(steps) == Moved(1, "queue 'other' in vhost '/' was deleted")
    assert bodies(queue) == [b"two", b"three"]


def test_a_move_ends_with_its_source(vhost: VHost) -> None:
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three")
    steps = moving.move_to_queue(queue, 3, other)
    next(steps)
    vhost.remove_queue(queue)
    assert finished(steps) == Moved(1)


def test_messages_that_arrive_during_a_move_stay(vhost: VHost) -> None:
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    push(queue, b"one", b"two")
    steps = moving.move_to_queue(queue, queue.ready_count, other)
    next(steps)
    push(queue, b"late")
    assert finished(steps) == Moved(2)
    assert bodies(queue) == [b"late"]


def restarted(journal: MemoryJournal) -> VHost:
    """The vhost after a crash: only what was committed is there."""
    later = MemoryJournal(journal.disk)
    broker = new_broker(later, has_defaults=False)
    later.is_restoring = True
    assert restore(broker, later.definitions_of)
    later.is_restoring = False
    return broker.vhosts["/"]


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}, {"x-max-priority": 3}])
@pytest.mark.parametrize("is_committed", [True, False])
def test_after_a_crash_each_moved_message_is_in_one_queue(arguments: dict[str, Any], is_committed: bool) -> None:
    journal = MemoryJournal()
    vhost = new_broker(journal).vhosts["/"]
    queue = new_queue(vhost, is_durable=True, arguments=arguments)
    other = new_queue(vhost, "other", is_durable=True, arguments=arguments)
    for body in (b"one", b"two", b"three"):
        queue.push(new_message(body, delivery_mode=2))
    journal.commit()
    move_to_queue(queue, 2, other)
    if is_committed:
        journal.commit()
    after = restarted(journal).queues
    expected = ([b"three"], [b"one", b"two"]) if is_committed else ([b"one", b"two", b"three"], [])
    assert (bodies(after["q"]), bodies(after["other"])) == expected


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}, {"x-max-priority": 3}])
def test_a_message_that_could_not_be_moved_survives_a_crash(arguments: dict[str, Any]) -> None:
    journal = MemoryJournal()
    vhost = new_broker(journal).vhosts["/"]
    queue = new_queue(vhost, is_durable=True, arguments=arguments)
    queue.push(new_message(b"one", delivery_mode=2))
    journal.commit()
    move_to_exchange(queue, 1, vhost, vhost.exchanges["amq.direct"])
    journal.commit()
    assert bodies(restarted(journal).queues["q"]) == [b"one"]


def test_a_move_ends_with_its_exchange(vhost: VHost) -> None:
    queue, other, exchange = new_queue(vhost), new_queue(vhost, "other"), new_exchange(vhost, "x", "fanout")
    bind(exchange, other, vhost)
    push(queue, b"one", b"two")
    steps = moving.move_to_exchange(queue, 2, vhost, exchange)
    next(steps)
    vhost.delete_exchange("x", if_unused=False)
    assert finished(steps) == Moved(1, "exchange 'x' in vhost '/' was deleted")
    assert (bodies(queue), bodies(other)) == ([b"two"], [b"one"])
