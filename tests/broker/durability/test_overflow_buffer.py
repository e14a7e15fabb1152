"""Transient queues that continue in the journal while memory is short."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.durability import paged_buffer as buffer_module
from amqp_broker.broker.queues.classic import ClassicQueue
from tests.broker_parts import (
    CollectingConsumer,
    new_classic_queue,
    new_message,
    new_queue,
    new_vhost,
    pulled,
    push,
)
from tests.memory_journal import MemoryJournal

COUNT = 1500


def bodies(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def queue(journal: MemoryJournal) -> ClassicQueue:
    """A queue with 1500 messages in memory and 100 behind them in the journal."""
    queue = new_classic_queue(new_vhost(journal))
    push(queue, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    push(queue, *bodies(COUNT, COUNT + 100))
    return queue


def test_messages_that_arrive_while_memory_is_short_are_only_in_the_journal(
    journal: MemoryJournal, queue: ClassicQueue
) -> None:
    journal.commit()
    assert len(queue.backlog.ready) == COUNT
    assert queue.backlog.paged is not None
    assert (len(queue.backlog.paged), len(queue.backlog.paged.memory)) == (100, 0)
    assert [stored.message.body for stored in journal.disk.messages.values()] == bodies(COUNT, COUNT + 100)
    assert queue.ready_count == COUNT + 100


@pytest.mark.parametrize("is_committed", [True, False])
def test_all_messages_return_in_order_at_consecutive_positions(
    journal: MemoryJournal, queue: ClassicQueue, is_committed: bool
) -> None:
    if is_committed:
        journal.commit()
    assert [message.body for message in queue.messages()] == bodies(0, COUNT + 100)
    assert pulled(queue) == [(b"%d" % number, number, False) for number in range(COUNT + 100)]
    assert journal.positions == []


def test_a_consumer_gets_later_messages_at_once(journal: MemoryJournal, queue: ClassicQueue) -> None:
    collector = CollectingConsumer(queue).start()
    while queue.vhost.broker.drain_on():
        pass
    queue.push(new_message(b"last"))
    assert collector.bodies == [*bodies(0, COUNT + 100), b"last"]
    assert [delivery.position for delivery in collector.taken] == list(range(COUNT + 101))


def test_a_returned_message_goes_back_to_its_position(queue: ClassicQueue) -> None:
    collector = CollectingConsumer(queue, prefetch=COUNT + 10).start()
    while queue.vhost.broker.drain_on():
        pass
    collector.stop()
    collector.give_back(0, COUNT + 5)
    assert [body for body, *_ in pulled(queue)] == [b"0", b"%d" % (COUNT + 5), *bodies(COUNT + 10, COUNT + 100)]


@pytest.mark.parametrize("mode", [1, 2])
def test_a_restart_drops_the_range(journal: MemoryJournal, queue: ClassicQueue, mode: int) -> None:
    queue.push(new_message(b"x", delivery_mode=mode))
    journal.commit()
    (buffer,) = queue.buffers
    assert buffer.state[2:] == (0, 0)
    assert not list(journal.definitions_of("queue"))


def test_an_empty_queue_returns_to_memory_when_there_is_enough(journal: MemoryJournal, queue: ClassicQueue) -> None:
    broker = queue.vhost.broker
    broker.page(False)
    assert queue.backlog.paged is not None
    pulled(queue)
    broker.page(True)
    assert queue.backlog.paged is not None
    broker.page(False)
    assert queue.backlog.paged is None
    assert not queue.has_extras
    queue.push(new_message(b"x"))
    assert pulled(queue) == [(b"x", COUNT + 100, False)]
    journal.commit()
    assert not journal.disk.messages
    assert not journal.disk.states


def test_a_queue_without_new_messages_returns_to_memory(journal: MemoryJournal) -> None:
    queue = new_classic_queue(new_vhost(journal))
    push(queue, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    queue.vhost.broker.page(False)
    assert queue.backlog.paged is None
    push(queue, b"x")
    assert pulled(queue)[-1] == (b"x", COUNT, False)


@pytest.mark.parametrize("verb", ["purge", "delete"])
def test_a_purged_or_deleted_queue_leaves_nothing(journal: MemoryJournal, queue: ClassicQueue, verb: str) -> None:
    journal.commit()
    if verb == "purge":
        assert queue.purge() == COUNT + 100
        assert queue.ready_count == 0
        queue.vhost.broker.page(False)
    else:
        queue.vhost.remove_queue(queue)
        queue.vhost.broker.page(False)
    journal.commit()
    assert not journal.disk.messages
    assert not journal.disk.states


def test_messages_that_expire_in_the_journal_are_not_delivered(journal: MemoryJournal) -> None:
    queue = new_classic_queue(new_vhost(journal), arguments={"x-message-ttl": 1000})
    push(queue, *bodies(0, COUNT))
    broker = queue.vhost.broker
    broker.page(True)
    push(queue, *bodies(COUNT, COUNT + 100))
    journal.commit()
    broker.tick(broker.now + 500)
    push(queue, b"young")
    broker.tick(broker.now + 500)
    assert [body for body, *_ in pulled(queue)] == [b"young"]


def test_length_limits_count_messages_in_memory_and_in_the_journal(journal: MemoryJournal, queue: ClassicQueue) -> None:
    limited = new_classic_queue(queue.vhost, "limited", arguments={"x-max-length": 1600})
    push(limited, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    push(limited, *bodies(COUNT, COUNT + 300))
    assert [body for body, *_ in pulled(limited)] == bodies(200, COUNT + 300)


@pytest.mark.parametrize(
    ("attributes", "count"),
    [({}, 10), ({"is_durable": True}, COUNT), ({"arguments": {"x-max-priority": 3}}, COUNT)],
    ids=["short", "durable", "priority"],
)
def test_other_queues_do_not_continue_in_the_journal(
    journal: MemoryJournal, attributes: dict[str, Any], count: int
) -> None:
    queue = new_queue(new_vhost(journal), **attributes)
    buffers = queue.buffers
    push(queue, *bodies(0, count))
    queue.vhost.broker.page(True)
    assert queue.buffers == buffers
    assert [body for body, *_ in pulled(queue)] == bodies(0, count)


def test_without_a_journal_there_is_nothing_to_page_to() -> None:
    queue = new_classic_queue()
    push(queue, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    assert queue.backlog.paged is None


@pytest.mark.parametrize("first", [0, 60])
def test_an_expired_head_in_the_journal_is_not_delivered(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """The expiring message is the first of the queue, or the first of a batch that is read later."""
    monkeypatch.setattr(buffer_module, "PAGE_BYTES", 1)
    queue = new_classic_queue(new_vhost(journal))
    push(queue, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    for number in range(100):
        queue.push_with_extras(new_message(b"x"), None if number < first else 100)
    journal.commit()
    collector = CollectingConsumer(queue, prefetch=COUNT - 10).start()
    queue.vhost.broker.tick(200)
    while collector.held:
        collector.ack()
    assert len(collector.taken) == COUNT + first
    assert queue.ready_count == 0
