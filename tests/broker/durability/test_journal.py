from __future__ import annotations

from amqp_broker.broker.durability.journal import NullJournal
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
    told, batch = journal.journal_bytes, journal.batch
    queue.push(new_message(b"a", delivery_mode=2))
    assert journal.journal_bytes > told
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
