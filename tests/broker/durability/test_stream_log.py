from __future__ import annotations

import pytest

from amqp_broker.broker.durability.stream_log import CHUNK_BYTES_MAX, CHUNK_MESSAGES_MAX, JournaledLog, StreamLog
from amqp_broker.broker.queues.stream import StreamQueue
from tests.broker_parts import new_message, new_queue, new_vhost
from tests.memory_journal import MemoryJournal

STREAM = {"x-queue-type": "stream"}


def bodies(log: StreamLog, offset: int = 0) -> list[bytes]:
    return [message.body for message in log.read(offset)]


def stream_on(journal: MemoryJournal) -> JournaledLog:
    queue = new_queue(new_vhost(journal), is_durable=True, arguments=STREAM)
    assert isinstance(queue, StreamQueue)
    assert isinstance(queue.log, JournaledLog)
    journal.commit()
    return queue.log


def append(log: StreamLog, *names: bytes, now: int = 0) -> None:
    for name in names:
        log.append(new_message(name), now)


def test_in_memory_all_messages_are_visible_at_once() -> None:
    log = StreamLog()
    append(log, b"a", b"b")
    assert log.count == 2
    assert bodies(log) == [b"a", b"b"]
    assert bodies(log, 1) == [b"b"]


def test_in_memory_messages_of_the_same_time_are_a_chunk() -> None:
    log = StreamLog()
    append(log, b"a", b"b", now=1)
    append(log, b"c", now=2)
    assert [log.head_at(offset).first for offset in range(3)] == [0, 0, 2]
    assert log.offset_of_last_chunk() == 2


def test_in_a_journal_uncommitted_messages_are_invisible() -> None:
    journal = MemoryJournal()
    log = stream_on(journal)
    append(log, b"a", b"b")
    assert log.count == 0
    journal.take_batch()
    append(log, b"c")
    assert log.count == 0
    journal.on_committed()
    assert log.count == 2
    assert bodies(log) == [b"a", b"b"]
    journal.commit()
    assert bodies(log, 2) == [b"c"]


def test_messages_between_two_batches_are_a_chunk() -> None:
    journal = MemoryJournal()
    log = stream_on(journal)
    append(log, b"a", now=1)
    append(log, b"b", now=2)
    journal.commit()
    head = log.head_at(0)
    assert (head.first, head.message_count, head.timestamp_ms) == (0, 2, 2)


def test_a_chunk_does_not_exceed_its_limits() -> None:
    journal = MemoryJournal()
    log = stream_on(journal)
    for _ in range(CHUNK_MESSAGES_MAX + 1):
        log.append(new_message(), 0)
    log.append(new_message(b"x" * CHUNK_BYTES_MAX), 0)
    log.append(new_message(), 0)
    journal.commit()
    firsts = [first for _, first in journal.disk.chunks]
    assert firsts == [0, CHUNK_MESSAGES_MAX, CHUNK_MESSAGES_MAX + 1, CHUNK_MESSAGES_MAX + 2]


def test_a_failed_batch_is_written_with_the_next() -> None:
    journal = MemoryJournal()
    log = stream_on(journal)
    append(log, b"a")
    journal.take_batch()
    append(log, b"b")
    journal.take_back()
    assert log.count == 0
    journal.commit()
    assert (bodies(log, 0), bodies(log, 1)) == ([b"a"], [b"b"])


def test_a_message_changes_the_journal_so_that_its_confirm_waits() -> None:
    journal = MemoryJournal()
    log = stream_on(journal)
    told = journal.journal_bytes
    append(log, b"a")
    assert journal.journal_bytes > told
    assert journal.has_work


@pytest.mark.parametrize(("timestamp", "offset"), [(0, 0), (10, 0), (11, 2), (20, 2), (30, 3), (31, 4)])
def test_a_timestamp_finds_the_first_chunk_that_is_not_older(timestamp: int, offset: int) -> None:
    journal = MemoryJournal()
    in_memory, in_journal = StreamLog(), stream_on(journal)
    for log in (in_memory, in_journal):
        append(log, b"a", b"b", now=10)
        journal.commit()
        append(log, b"c", now=20)
        journal.commit()
        append(log, b"d", now=30)
        journal.commit()
        assert log.offset_since(timestamp) == offset


def test_an_empty_log_has_no_last_chunk() -> None:
    assert (StreamLog().offset_of_last_chunk(), StreamLog().offset_since(0), StreamLog().first_head()) == (0, 0, None)


def test_the_newest_chunk_is_never_dropped() -> None:
    journal = MemoryJournal()
    for log in (StreamLog(), stream_on(journal)):
        append(log, b"a", now=1)
        journal.commit()
        assert log.first_head() is None
        append(log, b"b", now=2)
        journal.commit()
        head = log.first_head()
        assert head is not None
        log.drop_first(head)
        log.forget(0)
        journal.commit()
        assert (log.first, log.count, bodies(log, 1)) == (1, 1, [b"b"])
        assert log.first_head() is None
        assert log.content_bytes == len(new_message(b"b").content)


def test_a_dropped_stream_is_gone_from_the_journal() -> None:
    journal = MemoryJournal()
    log = stream_on(journal)
    append(log, b"a")
    journal.commit()
    assert bodies(log) == [b"a"]
    append(log, b"b")
    log.drop()
    journal.commit()
    assert journal.disk.chunks == {}
    assert journal.chunk_cache.bytes == 0
    assert log.id not in journal.disk.states


def test_counters_and_chunks_survive_a_restart() -> None:
    journal = MemoryJournal()
    log = stream_on(journal)
    append(log, b"a", b"b")
    journal.commit()
    append(log, b"lost")
    again = JournaledLog(MemoryJournal(journal.disk), log.id, log.readers)
    assert (again.first, again.next, again.count, again.content_bytes) == (0, 2, 2, len(new_message(b"a").content) * 2)
    assert bodies(again) == [b"a", b"b"]


def test_a_chunk_is_kept_for_others_that_read_it() -> None:
    journal = MemoryJournal()
    log = stream_on(journal)
    append(log, b"a", b"b")
    journal.commit()
    assert log.read(0, is_shared=False)[1] is not log.read(0, is_shared=False)[1]
    assert journal.chunk_cache.bytes == 0
    kept = log.read(0)[1]
    assert log.read(0)[1] is kept
    assert log.read(0, is_shared=False)[1] is kept
    assert journal.chunk_cache.bytes == 0


def test_a_chunk_lists_its_filter_values() -> None:
    log = StreamLog()
    log.append(new_message(headers={"x-stream-filter-value": "a"}), 0)
    assert (log.head_at(0).filters, log.head_at(0).has_unfiltered) == (frozenset("a"), False)
    log.append(new_message(), 0)
    assert (log.head_at(0).filters, log.head_at(0).has_unfiltered) == (frozenset("a"), True)
    for number in range(300):
        log.append(new_message(headers={"x-stream-filter-value": str(number)}), 0)
    assert log.head_at(0).filters is None
