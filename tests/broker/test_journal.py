from __future__ import annotations

import pytest

from amqp_broker.broker.journal import Journal, NullJournal
from tests.taker import RecordingJournal, new_message, new_queue, new_vhost


def test_the_null_journal_has_committed_all_that_it_was_told() -> None:
    journal, queue = NullJournal(), new_queue()
    journal.put(queue, 0, new_message())
    journal.remove(queue, 0)
    assert journal.committed >= journal.told


def test_a_journal_says_what_it_does_with_records() -> None:
    queue = new_queue()
    with pytest.raises(NotImplementedError):
        Journal().put(queue, 0, new_message())
    with pytest.raises(NotImplementedError):
        Journal().remove(queue, 0)


def test_records_are_numbered_as_they_are_told() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    for _ in range(3):
        queue.push(new_message(delivery_mode=2))
    assert (journal.told, journal.committed) == (3, 0)
