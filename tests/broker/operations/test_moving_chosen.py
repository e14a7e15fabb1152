"""Messages are chosen by their positions, which stay the same while others come and go."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import NotImplemented_, PreconditionFailed
from amqp_broker.broker.durability import paged_buffer
from amqp_broker.broker.operations import moving
from amqp_broker.broker.operations.moving import Moved
from amqp_broker.broker.queues import arrival_backlog
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.broker.vhost import VHost
from tests.broker.operations.test_moving import TYPES, bodies, restarted
from tests.broker_parts import CollectingConsumer, new_broker, new_message, new_queue, push
from tests.memory_journal import MemoryJournal
from tests.present import present


@pytest.fixture
def vhost() -> VHost:
    return new_broker().vhosts["/"]


def position_of(queue: Queue, body: bytes) -> int:
    return next(position for position, message, _ in queue.peek() if message.body == body)


def move_chosen(source: Queue, destination: Queue, *chosen: bytes) -> Moved:
    positions = frozenset(position_of(source, body) for body in chosen)
    return finished(moving.move_to_queue(source, positions, destination))


@pytest.mark.parametrize("arguments", TYPES)
def test_chosen_messages_are_moved_and_the_others_keep_their_order(vhost: VHost, arguments: dict[str, Any]) -> None:
    queue = new_queue(vhost, is_durable=True, arguments=arguments)
    other = new_queue(vhost, "other", is_durable=True, arguments=arguments)
    push(queue, b"one", b"two", b"three", b"four", b"five")
    assert move_chosen(queue, other, b"four", b"two") == Moved(2)
    assert (bodies(queue), bodies(other)) == ([b"one", b"three", b"five"], [b"two", b"four"])
    assert move_chosen(queue, other, b"one", b"five") == Moved(2)
    assert (bodies(queue), queue.unacked_count) == ([b"three"], 0)


@pytest.mark.parametrize("arguments", TYPES)
def test_positions_stay_when_other_messages_leave_or_return(vhost: VHost, arguments: dict[str, Any]) -> None:
    queue = new_queue(vhost, is_durable=True, arguments=arguments)
    other = new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three", b"four")
    before = {message.body: position for position, message, _ in queue.peek()}
    move_chosen(queue, other, b"two")
    del before[b"two"]
    assert {message.body: position for position, message, _ in queue.peek()} == before


def test_a_chosen_message_that_has_left_is_not_replaced_by_another(vhost: VHost) -> None:
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three")
    positions = frozenset(position_of(queue, body) for body in (b"one", b"three"))
    queue.pull()
    moved = finished(moving.move_to_queue(queue, positions, other))
    assert moved == Moved(1, "not ready here any more, or too far behind others: 1 of the chosen")
    assert (bodies(queue), bodies(other)) == ([b"two"], [b"three"])


def test_a_chosen_message_that_is_refused_stays_at_its_place(vhost: VHost) -> None:
    queue = new_queue(vhost)
    other = new_queue(vhost, "other", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    push(queue, b"one", b"two", b"three", b"four")
    assert move_chosen(queue, other, b"two", b"three", b"four") == Moved(1, "queue 'other' in vhost '/' is full")
    assert (bodies(queue), queue.unacked_count) == ([b"one", b"three", b"four"], 0)


def flags(queue: Queue) -> dict[bytes, bool]:
    return {message.body: redelivered for _, message, redelivered in queue.peek()}


@pytest.mark.parametrize("arguments", TYPES)
def test_messages_before_a_chosen_one_do_not_count_as_delivered(vhost: VHost, arguments: dict[str, Any]) -> None:
    queue, other = new_queue(vhost, is_durable=True, arguments=arguments), new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three")
    assert move_chosen(queue, other, b"three") == Moved(1)
    assert flags(queue) == {b"one": False, b"two": False}
    consumer = CollectingConsumer(queue).start()
    assert [(one.message.body, one.redelivered) for one in consumer.taken] == [(b"one", False), (b"two", False)]


@pytest.mark.parametrize("arguments", TYPES)
def test_returned_messages_are_chosen_and_refused_as_they_were(vhost: VHost, arguments: dict[str, Any]) -> None:
    queue = new_queue(vhost, is_durable=True, arguments=arguments)
    other = new_queue(vhost, "other", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    push(queue, b"one", b"two", b"three")
    for _ in range(2):
        message, position, _ = present(queue.pull())
        queue.unacked_count += 1
        queue.requeue(position, message)
    before = (bodies(queue), flags(queue))
    for body in (b"one", b"two", b"three"):
        assert move_chosen(queue, other, body).messages == 0
        assert (bodies(queue), flags(queue)) == before
    assert move_chosen(queue, new_queue(vhost, "third"), b"one", b"two") == Moved(2)
    assert flags(queue) == {b"three": False}


@pytest.mark.parametrize("arguments", TYPES)
def test_a_queue_works_on_while_messages_are_chosen(
    vhost: VHost, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival_backlog, "PORTION", 1)
    queue, other = new_queue(vhost, is_durable=bool(arguments), arguments=arguments), new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three", b"four", b"five")
    positions = frozenset(position_of(queue, body) for body in (b"two", b"four"))
    steps = moving.move_to_queue(queue, positions, other)
    next(steps)
    assert (queue.message_count + other.message_count, queue.unacked_count, queue.holds) == (5, 0, 0)
    with pytest.raises((PreconditionFailed, NotImplemented_)):
        queue.check_deletable(if_unused=False, if_empty=True)
    consumer = CollectingConsumer(queue, prefetch=1).start()
    assert consumer.bodies == [b"one"]
    moved = finished(steps)
    assert moved.messages == other.ready_count == 2
    assert bodies(queue) == [b"three", b"five"]


@pytest.mark.parametrize("arguments", TYPES)
def test_a_purge_leaves_nothing_to_choose(
    vhost: VHost, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival_backlog, "PORTION", 1)
    queue, other = new_queue(vhost, is_durable=bool(arguments), arguments=arguments), new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three", b"four")
    positions = frozenset(position_of(queue, body) for body in (b"two", b"four"))
    steps = moving.move_to_queue(queue, positions, other)
    next(steps)
    purged = queue.purge()
    moved = finished(steps)
    assert purged + moved.messages == 4
    assert (bodies(queue), queue.unacked_count) == ([], 0)
    push(queue, b"five")
    assert flags(queue) == {b"five": False}


def test_a_choice_ends_with_its_queue(vhost: VHost) -> None:
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three")
    positions = frozenset(position_of(queue, body) for body in (b"one", b"three"))
    steps = moving.move_to_queue(queue, positions, other)
    next(steps)
    vhost.remove_queue(queue)
    assert finished(steps).messages == other.ready_count == 1


def test_messages_that_are_due_are_not_chosen(vhost: VHost) -> None:
    queue, other = new_queue(vhost, arguments={"x-message-ttl": 100}), new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three")
    positions = frozenset(position_of(queue, body) for body in (b"one", b"three"))
    steps = moving.move_to_queue(queue, positions, other)
    next(steps)
    vhost.broker.now += 200
    assert finished(steps).messages == 1
    assert (bodies(queue), bodies(other)) == ([], [b"one"])


def test_a_message_that_was_before_a_chosen_one_expires_in_its_time(vhost: VHost) -> None:
    queue, other = new_queue(vhost, arguments={"x-message-ttl": 100}), new_queue(vhost, "other")
    push(queue, b"one", b"two")
    assert move_chosen(queue, other, b"two") == Moved(1)
    vhost.broker.now += 200
    queue.expire()
    assert (bodies(queue), queue.has_deadlines) == ([], False)


@pytest.mark.parametrize("arguments", [{"x-max-length": 3}, {"x-max-length-bytes": 12}])
@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish"])
def test_a_limit_counts_what_is_left(vhost: VHost, arguments: dict[str, Any], overflow: str) -> None:
    queue = new_queue(vhost, arguments={**arguments, "x-overflow": overflow})
    other = new_queue(vhost, "other")
    push(queue, b"1...", b"2...", b"3...")
    assert move_chosen(queue, other, b"3...") == Moved(1)
    for body in (b"4...", b"5..."):
        queue.offer(new_message(body))
    expected = [b"2...", b"4...", b"5..."] if overflow == "drop-head" else [b"1...", b"2...", b"4..."]
    assert bodies(queue) == expected


def test_a_quorum_queue_delivers_by_priority_after_a_choice(vhost: VHost) -> None:
    queue = new_queue(vhost, is_durable=True, arguments={"x-queue-type": "quorum"})
    other = new_queue(vhost, "other")
    push(queue, b"one", b"two", b"three")
    move_chosen(queue, other, b"three")
    queue.push(new_message(b"high", priority=9))
    assert bodies(queue)[0] == b"high"


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_messages_that_only_the_journal_has_are_chosen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged_buffer, "PAGE_BYTES", 1000)
    monkeypatch.setattr(paged_buffer, "BUFFERS_BYTES_MAX", 0)
    journal = MemoryJournal()
    vhost = new_broker(journal).vhosts["/"]
    queue = new_queue(vhost, is_durable=True, arguments={"x-queue-type": kind})
    other = new_queue(vhost, "other", is_durable=True)
    for number in range(30):
        queue.push(new_message(b"%030d" % number, delivery_mode=2))
        journal.commit()
    assert any(buffer.paged_count for buffer in queue.buffers)
    assert move_chosen(queue, other, b"%030d" % 28, b"%030d" % 2) == Moved(2)
    journal.commit()
    left = [b"%030d" % number for number in range(30) if number not in (2, 28)]
    assert bodies(queue) == left
    after = restarted(journal).queues
    assert (bodies(after["q"]), bodies(after["other"])) == (left, [b"%030d" % 2, b"%030d" % 28])
    # Beyond the octets that a buffer may have in memory, none is found.
    monkeypatch.setattr(paged_buffer, "BUFFER_BYTES_MAX", 0)
    found = after["q"]
    assert move_chosen(found, after["other"], b"%030d" % 27) == Moved(
        0, "not ready here any more, or too far behind others: 1 of the chosen"
    )
    assert bodies(found) == left


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}, {"x-max-priority": 3}])
def test_a_crash_during_a_choice_loses_nothing(arguments: dict[str, Any]) -> None:
    journal = MemoryJournal()
    vhost = new_broker(journal).vhosts["/"]
    queue = new_queue(vhost, is_durable=True, arguments=arguments)
    other = new_queue(vhost, "other", is_durable=True, arguments=arguments)
    for body in (b"one", b"two", b"three"):
        queue.push(new_message(body, delivery_mode=2))
    journal.commit()
    positions = frozenset(position_of(queue, body) for body in (b"two", b"three"))
    steps = moving.move_to_queue(queue, positions, other)
    next(steps)
    journal.commit()
    after = restarted(journal).queues
    assert (bodies(after["q"]), bodies(after["other"])) == ([b"one", b"three"], [b"two"])
    assert not any(flags(after["q"]).values())


def test_messages_of_a_transient_queue_that_are_paged_out_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival_backlog, "PAGE_BYTES", 1)
    journal = MemoryJournal()
    vhost = new_broker(journal).vhosts["/"]
    queue, other = new_queue(vhost), new_queue(vhost, "other")
    push(queue, b"one", b"two")
    assert isinstance(queue, ClassicQueue)
    assert queue.backlog.page(journal)
    push(queue, b"three", b"four", b"five")
    assert move_chosen(queue, other, b"two", b"four") == Moved(2)
    assert (bodies(queue), bodies(other)) == ([b"one", b"three", b"five"], [b"two", b"four"])
    assert not any(flags(queue).values())
