from __future__ import annotations

import pytest

from amqp_broker.broker.durability.journal import NullJournal
from amqp_broker.broker.queues.queue import Queue
from tests.broker_parts import new_message, new_queue, new_vhost
from tests.memory_journal import MemoryJournal


def test_in_the_null_journal_every_change_is_safe_at_once() -> None:
    journal = NullJournal()
    journal.define(("user", "a"), {})
    journal.undefine(("user", "a"))
    assert journal.committed >= journal.batch
    assert (journal.journal_bytes, journal.definitions) == (0, 0)


def test_a_change_is_safe_when_its_batch_is_committed() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    journal.commit()
    before, batch = journal.journal_bytes, journal.batch
    queue.push(new_message(b"a", delivery_mode=2))
    assert journal.journal_bytes > before
    assert journal.committed < batch
    journal.take_batch()
    queue.push(new_message(b"b", delivery_mode=2))
    assert (journal.committed, journal.batch) == (batch - 1, batch + 1)
    journal.on_committed()
    assert journal.committed == batch
    assert len(journal.disk.messages) == 1


def test_a_batch_that_failed_is_a_part_of_the_next() -> None:
    journal = MemoryJournal()
    vhost = new_vhost(journal)
    queue = new_queue(vhost, is_durable=True)
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=2))
    journal.take_batch()
    pulled = queue.pull()
    assert pulled is not None
    queue.forget(pulled[1], pulled[0])
    journal.take_back()
    assert journal.disk.messages == {}
    assert journal.positions == [1]
    assert ("queue", "/", "q") in journal.disk.definitions


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def queue(journal: MemoryJournal) -> Queue:
    """A durable queue that the disk has."""
    queue = new_queue(new_vhost(journal), is_durable=True)
    journal.commit()
    return queue


def settle_next(queue: Queue) -> None:
    pulled = queue.pull()
    assert pulled is not None
    queue.forget(pulled[1], pulled[0])


def test_a_batch_is_void_when_all_its_messages_were_settled(journal: MemoryJournal, queue: Queue) -> None:
    queue.push(new_message(b"a", delivery_mode=2))
    assert not journal.is_void
    assert not journal.is_with_consumers
    pulled = queue.pull()
    assert pulled is not None
    assert journal.is_with_consumers
    queue.forget(pulled[1], pulled[0])
    assert journal.is_void
    assert not journal.is_with_consumers


def test_a_batch_with_an_object_or_that_a_client_requires_is_not_void(journal: MemoryJournal, queue: Queue) -> None:
    queue.push(new_message(b"a", delivery_mode=2))
    settle_next(queue)
    journal.require(journal.batch)
    assert not journal.is_void
    journal.commit()
    assert journal.is_void
    journal.define(("user", "a"), {})
    assert not journal.is_void


def test_a_void_batch_is_safe_when_it_is_passed_and_its_removals_follow(journal: MemoryJournal, queue: Queue) -> None:
    queue.push(new_message(b"a", delivery_mode=2))
    journal.commit()
    settle_next(queue)
    batch = journal.batch
    journal.pass_batch()
    assert (journal.committed, journal.batch) == (batch, batch + 1)
    assert len(journal.disk.messages) == 1
    assert journal.positions == []


@pytest.mark.parametrize(("settled", "is_fast"), [(0, False), (1, True), (2, True)])
def test_consumers_are_fast_that_settle_half_of_a_batch_during_its_commit(
    journal: MemoryJournal, queue: Queue, settled: int, *, is_fast: bool
) -> None:
    for body in (b"a", b"b"):
        queue.push(new_message(body, delivery_mode=2))
    journal.take_batch()
    for _ in range(settled):
        settle_next(queue)
    journal.on_committed()
    assert journal.settles_fast is is_fast
