from __future__ import annotations

from amqp_broker.broker.journal import NullJournal
from tests.memory_journal import MemoryJournal
from tests.taker import new_message, new_queue, new_vhost


def test_the_null_journal_has_committed_whatever_it_was_told() -> None:
    journal = NullJournal()
    journal.define(("user", "a"), {})
    journal.undefine(("user", "a"))
    assert journal.committed >= journal.batch
    assert (journal.told, journal.definitions) == (0, 0)


def test_what_is_told_is_safe_when_the_batch_that_was_collected_then_is_committed() -> None:
    journal = MemoryJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    journal.commit()
    told, batch = journal.told, journal.batch
    queue.push(new_message(b"a", delivery_mode=2))
    assert journal.told > told
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
