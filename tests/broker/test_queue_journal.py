from __future__ import annotations

from tests.taker import RecordingJournal, Taker, new_broker, new_connection, new_message, new_queue, new_vhost


def test_a_durable_queue_tells_its_journal_about_persistent_messages() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=1))
    queue.push(new_message(b"c", delivery_mode=2))
    assert journal.records == [("put", "q", 0), ("put", "q", 2)]


def test_a_transient_queue_tells_its_journal_nothing() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal))
    queue.push(new_message(b"a", delivery_mode=2))
    queue.purge()
    assert journal.records == []


def test_an_exclusive_queue_tells_its_journal_nothing() -> None:
    journal = RecordingJournal()
    owner = new_connection()
    queue = new_queue(new_vhost(journal), is_durable=True, owner=owner, connection=owner)
    queue.push(new_message(b"a", delivery_mode=2))
    assert journal.records == []


def test_a_broker_without_a_journal_tells_nobody() -> None:
    assert new_queue(new_broker().vhosts["/"], is_durable=True).journal is None


def test_a_delivered_message_is_put_before_it_is_delivered_and_removed_when_it_is_settled() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    taker = Taker(queue).start()
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=2))
    assert journal.records == [("put", "q", 0), ("put", "q", 1)]
    taker.ack(1)
    assert journal.records[2:] == [("remove", "q", 1)]


def test_a_requeued_message_is_not_put_again() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    taker = Taker(queue, prefetch=1).start()
    queue.push(new_message(b"a", delivery_mode=2))
    taker.give_back()
    taker.ack()
    assert journal.records == [("put", "q", 0), ("remove", "q", 0)]


def test_purged_messages_are_removed_at_their_positions() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    for mode in (2, 2, 1, 2):
        queue.push(new_message(b"", delivery_mode=mode))
    taker = Taker(queue, prefetch=1).start()
    taker.stop()
    taker.give_back()
    queue.purge()
    assert journal.records[3:] == [("remove", "q", 0), ("remove", "q", 1), ("remove", "q", 3)]


def test_dropped_messages_are_removed() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True, arguments_={"x-max-length": 1})
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=2))
    assert journal.records == [("put", "q", 0), ("put", "q", 1), ("remove", "q", 0)]


def test_a_deleted_queues_ready_messages_are_removed() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    queue.push(new_message(b"a", delivery_mode=2))
    queue.vhost.remove_queue(queue)
    assert journal.records == [("put", "q", 0), ("remove", "q", 0)]
