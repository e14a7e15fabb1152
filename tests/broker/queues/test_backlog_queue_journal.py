"""The messages of durable queues in the journal."""

from __future__ import annotations

import pytest

from amqp_broker.broker.durability import paged_buffer as buffer_module
from tests.broker_parts import CollectingConsumer, new_broker, new_connection, new_message, new_queue, new_vhost
from tests.memory_journal import MemoryJournal


def test_a_durable_queue_writes_persistent_messages_to_the_journal() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    for body, mode in ((b"a", 2), (b"b", 1), (b"c", 2)):
        queue.push(new_message(body, delivery_mode=mode))
    assert journal.positions == [0, 2]


def test_a_transient_queue_writes_nothing_to_the_journal() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal))
    queue.push(new_message(b"a", delivery_mode=2))
    assert journal.positions == []


def test_an_exclusive_queue_writes_nothing_to_the_journal() -> None:
    journal = MemoryJournal()
    owner = new_connection()
    queue = new_queue(new_vhost(journal), is_durable=True, owner=owner, connection=owner)
    queue.push(new_message(b"a", delivery_mode=2))
    assert journal.positions == []


def test_a_broker_without_a_journal_has_no_buffers() -> None:
    assert new_queue(new_broker().vhosts["/"], is_durable=True).buffers == []


def test_a_delivered_message_is_kept_until_it_is_settled() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    collector = CollectingConsumer(queue).start()
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=2))
    assert journal.positions == [0, 1]
    collector.ack(1)
    assert journal.positions == [0]


def test_a_message_settled_before_a_batch_is_taken_is_never_written() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    collector = CollectingConsumer(queue).start()
    queue.push(new_message(b"a", delivery_mode=2))
    collector.ack()
    ((buffer, removes),) = journal.take_batch().buffers
    assert (buffer.writing, removes) == ({}, [])


def test_a_requeued_message_keeps_its_position_in_the_journal() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    collector = CollectingConsumer(queue, prefetch=1).start()
    queue.push(new_message(b"a", delivery_mode=2))
    collector.give_back()
    assert journal.positions == [0]
    collector.ack()
    assert journal.positions == []


def test_a_purge_removes_only_ready_messages_from_the_journal() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    collector = CollectingConsumer(queue, prefetch=1).start()
    for mode in (2, 2, 1, 2):
        queue.push(new_message(b"", delivery_mode=mode))
    assert queue.purge() == 3
    assert journal.positions == [0]
    collector.ack()
    assert journal.positions == []


def test_dropped_messages_are_removed_from_the_journal() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True, arguments={"x-max-length": 1})
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=2))
    assert journal.positions == [1]


def test_a_deleted_queue_leaves_nothing_in_the_journal_even_if_messages_are_settled_later() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    collector = CollectingConsumer(queue).start()
    queue.push(new_message(b"a", delivery_mode=2))
    assert journal.positions == [0]
    queue.vhost.remove_queue(queue)
    assert journal.positions == []
    collector.ack()
    assert journal.positions == []
    assert journal.disk.states == {}


def test_a_paged_out_message_expires_in_time_when_all_before_it_were_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGE_BYTES", "BUFFER_BYTES_MAX", "BUFFERS_BYTES_MAX"):
        monkeypatch.setattr(buffer_module, name, 1)
    vhost = new_vhost(MemoryJournal())
    queue = new_queue(vhost, is_durable=True)
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push_with_extras(new_message(b"b", delivery_mode=2), 100)
    assert queue.pull() is not None
    vhost.broker.tick(100)
    assert queue.ready_count == 0
