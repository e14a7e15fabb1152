from __future__ import annotations

import pytest

from amqp_broker.amqp.message import ENTRY_BYTES, Message
from amqp_broker.broker.durability import paged_buffer as buffer_module
from amqp_broker.broker.durability.journal import JournalBroken, Stored
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from tests.broker_parts import CollectingConsumer, new_broker, new_message, new_queue
from tests.memory_journal import MemoryJournal


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


def new_buffer(
    journal: MemoryJournal, *, keeps_all: bool = False, deadlines: dict[int, int] | None = None
) -> PagedBuffer:
    return PagedBuffer(journal, journal.new_ranges(1), keeps_all=keeps_all, deadlines=deadlines)


def again(buffer: PagedBuffer, journal: MemoryJournal) -> tuple[PagedBuffer, MemoryJournal]:
    """Return the buffer as a new process finds it after this one was killed."""
    later = MemoryJournal(journal.disk)
    return PagedBuffer(later, buffer.id, keeps_all=buffer.keeps_all), later


def persistent(body: bytes = b"") -> Message:
    return new_message(body, delivery_mode=2)


def fill(buffer: PagedBuffer, *bodies: bytes, mode: int = 2) -> None:
    for body in bodies:
        buffer.append(buffer.next, new_message(body, delivery_mode=mode), None)


def bodies(buffer: PagedBuffer) -> list[bytes]:
    return [message.body for message in buffer]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit buffers to two or three small messages in memory and per read."""
    size = 2 * (ENTRY_BYTES + 40)
    for name in ("PAGE_BYTES", "BUFFER_BYTES_MAX", "BUFFERS_BYTES_MAX"):
        monkeypatch.setattr(buffer_module, name, size)


def test_a_put_message_is_safe_when_it_is_committed(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b")
    assert journal.disk.messages == {}
    assert journal.positions == [0, 1]
    found, _ = again(buffer, journal)
    assert bodies(found) == [b"a", b"b"]
    assert (found.stored_count, found.stored_bytes, found.next) == (2, 2, 2)


def test_an_uncommitted_message_is_lost_in_a_crash(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a")
    journal.commit()
    fill(buffer, b"b")
    journal.take_batch()
    fill(buffer, b"c")
    assert bodies(again(buffer, journal)[0]) == [b"a"]


def test_a_taken_message_is_stored_until_it_is_removed(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b")
    position, message = buffer.pop_head()
    assert (buffer.taken_count, buffer.ready_bytes, buffer.stored_count) == (1, 1, 2)
    assert journal.positions == [0, 1]
    buffer.remove(position, message)
    assert journal.positions == [1]
    assert (buffer.taken_count, buffer.stored_count, buffer.stored_bytes) == (0, 1, 1)


def test_a_message_taken_before_a_crash_counts_as_redelivered(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b", b"c")
    journal.commit()
    buffer.pop_head()
    buffer.pop_head()
    journal.commit()
    found, _ = again(buffer, journal)
    assert [(position < found.redelivered_before) for position, _ in found.items()] == [True, True, False]


def test_the_head_position_never_decreases(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b", b"c")
    for _ in range(3):
        buffer.pop_head()
    journal.commit()
    found, later = again(buffer, journal)
    found.pop_head()
    later.commit()
    assert again(found, later)[0].redelivered_before == 3


def test_positions_are_not_reused_after_a_restart(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b")
    for _ in range(2):
        buffer.remove(*buffer.pop_head())
    journal.commit()
    assert again(buffer, journal)[0].next == 2


def test_transient_messages_in_memory_are_not_in_the_journal(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", mode=1)
    assert (journal.journal_bytes, journal.positions, buffer.ready_bytes) == (0, [], 1)
    buffer.remove(*buffer.pop_head())
    assert buffer.stored_count == 0


def test_a_buffer_that_keeps_all_also_keeps_transient_messages(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal, keeps_all=True)
    fill(buffer, b"a", mode=1)
    assert journal.positions == [0]
    assert bodies(again(buffer, journal)[0]) == [b"a"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("commits", ["never", "once", "always"])
def test_memory_holds_the_first_messages_and_the_journal_the_rest(journal: MemoryJournal, commits: str) -> None:
    buffer = new_buffer(journal)
    expected = [b"%d" % number for number in range(20)]
    for body in expected:
        fill(buffer, body)
        if commits == "always":
            journal.commit()
    if commits == "once":
        journal.commit()
    assert (len(buffer), len(buffer.memory), buffer.paged_count) == (20, 3, 17)
    assert bodies(buffer) == expected
    assert len(buffer.memory) == 3
    assert [buffer.pop_head()[1].body for _ in range(20)] == expected
    assert (len(buffer), buffer.ready_bytes, journal.buffered_bytes) == (0, 0, 0)


@pytest.mark.usefixtures("small")
def test_reading_ahead_finds_committed_then_writing_then_collected_messages(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, *(b"%d" % number for number in range(8)))
    journal.commit()
    fill(buffer, *(b"%d" % number for number in range(8, 12)))
    journal.take_batch()
    fill(buffer, *(b"%d" % number for number in range(12, 16)))
    assert bodies(buffer) == [b"%d" % number for number in range(16)]
    assert [buffer.pop_head()[0] for _ in range(10)] == list(range(10))
    journal.on_committed()
    assert [position for position, _ in buffer.items()] == list(range(10, 16))
    assert [buffer.pop_head()[0] for _ in range(6)] == list(range(10, 16))


@pytest.mark.usefixtures("small")
def test_all_buffers_share_one_memory_limit(journal: MemoryJournal) -> None:
    one, other = new_buffer(journal), new_buffer(journal)
    fill(one, *[b"x"] * 5)
    fill(other, *[b"x"] * 5)
    assert (one.paged_count, other.paged_count) == (2, 2)
    assert journal.buffered_bytes == one._memory_bytes + other._memory_bytes


@pytest.mark.usefixtures("small")
def test_transient_messages_are_paged_out_and_are_gone_after_a_crash(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    for number in range(10):
        fill(buffer, b"%d" % number, mode=1 + number % 2)
    journal.commit()
    assert len(journal.disk.messages) > 5
    found, later = again(buffer, journal)
    assert len(found) == 5
    assert bodies(found) == [b"1", b"3", b"5", b"7", b"9"]
    assert [found.pop_head()[1].body for _ in range(5)] == [b"1", b"3", b"5", b"7", b"9"]
    later.commit()
    assert {position for _, position in later.disk.messages} == {1, 3, 5, 7, 9}


@pytest.mark.usefixtures("small")
def test_a_transient_message_that_was_read_back_is_only_in_memory(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, *[b"x"] * 6, mode=1)
    assert journal.positions == [3, 4, 5]
    for _ in range(4):
        buffer.remove(*buffer.pop_head())
    # The last three messages were read at once.
    assert journal.positions == []
    assert len(buffer) == 2


@pytest.mark.usefixtures("small")
def test_deadlines_are_restored_with_their_messages(journal: MemoryJournal) -> None:
    deadlines: dict[int, int] = {}
    buffer = new_buffer(journal, deadlines=deadlines)
    for number in range(6):
        buffer.append(number, persistent(b"x"), 1000 + number)
    assert deadlines == {0: 1000, 1: 1001, 2: 1002}
    for _ in range(4):
        buffer.pop_head()
    assert deadlines[3] == 1003


def test_a_message_delivered_at_once_is_never_ready(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    buffer.deliver_through(0, persistent(b"abc"), None)
    assert (len(buffer), buffer.ready_bytes, buffer.taken_count, buffer.head, buffer.next) == (0, 0, 1, 1, 1)
    assert journal.positions == [0]


def test_a_message_removed_before_its_batch_is_taken_is_never_written(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    message = persistent()
    buffer.deliver_through(0, message, None)
    buffer.remove(0, message)
    assert (buffer.puts, buffer.removes) == ({}, [])


def test_a_message_removed_after_its_batch_is_taken_is_removed_by_the_next(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    message = persistent()
    buffer.deliver_through(0, message, None)
    journal.take_batch()
    buffer.remove(0, message)
    journal.on_committed()
    assert list(journal.disk.messages) == [(buffer.id, 0)]
    assert journal.positions == []


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_failed_batch_is_collected_again(journal: MemoryJournal, is_removed: bool) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b")
    journal.take_batch()
    if is_removed:
        buffer.remove(*buffer.pop_head())
    fill(buffer, b"c")
    journal.take_back()
    assert journal.positions == ([1, 2] if is_removed else [0, 1, 2])


def test_the_number_of_returns_is_stored_with_the_message(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal, keeps_all=True)
    fill(buffer, b"a")
    position, message = buffer.pop_head()
    journal.commit()
    buffer.rewrite(position, Stored(message, None, 2))
    journal.commit()
    assert journal.disk.messages[buffer.id, 0].returns == 2
    buffer.rewrite(position, Stored(message, None, 3))
    buffer.remove(position, message)
    assert journal.positions == []


def cleared_with_one_taken(journal: MemoryJournal) -> int:
    """Clear a buffer whose first message is taken; return how many single puts and removes that leaves."""
    buffer = new_buffer(journal)
    fill(buffer, *[b"x"] * 10)
    taken = buffer.pop_head()
    journal.commit()
    fill(buffer, *[b"y"] * 3)
    buffer.clear()
    assert (len(buffer), buffer.ready_bytes, buffer.stored_count, journal.buffered_bytes) == (0, 0, 1, 0)
    puts_and_removes = len(buffer.puts) + len(buffer.removes)
    assert journal.positions == [0]
    fill(buffer, b"z")
    assert bodies(buffer) == [b"z"]
    assert journal.positions == [0, 13]
    buffer.remove(*taken)
    assert journal.positions == [13]
    assert bodies(again(buffer, journal)[0]) == [b"z"]
    return puts_and_removes


@pytest.mark.usefixtures("small")
def test_clearing_leaves_taken_messages(journal: MemoryJournal) -> None:
    cleared_with_one_taken(journal)


def test_clearing_many_messages_removes_them_as_one_range(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffer_module, "DISCARDED_MIN", 4)
    assert cleared_with_one_taken(journal) == 0


def test_a_message_that_is_taken_amid_others_stays_when_they_are_cleared(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = new_buffer(journal)
    fill(buffer, *[b"x"] * 6)
    journal.commit()
    # As after a restart, when a dead letter that no target has taken yet is among ready messages.
    position, message = buffer.memory[3]
    del buffer.memory[3]
    buffer._forget_memory(message)
    buffer.taken_count, buffer.taken_bytes = 1, 1
    monkeypatch.setattr(buffer_module, "DISCARDED_MIN", 4)
    buffer.clear()
    assert journal.positions == [position]


def test_a_dropped_buffer_leaves_and_accepts_no_messages(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b")
    taken = buffer.pop_head()
    journal.commit()
    buffer.drop()
    buffer.remove(*taken)
    buffer.rewrite(taken[0], Stored(taken[1], None, 1))
    assert journal.positions == []
    assert journal.disk.states == {}


def test_a_buffer_dropped_during_a_write_leaves_no_messages(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a")
    journal.take_batch()
    buffer.drop()
    journal.on_committed()
    assert journal.positions == []
    assert journal.disk.states == {}


def test_all_messages_can_be_taken_at_once(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal, keeps_all=True)
    for number in range(3):
        buffer.deliver_through(number, persistent(b"%d" % number), 100 + number)
    journal.commit()
    found, later = again(buffer, journal)
    taken = found.take_all()
    assert [(position, stored.deadline_ms) for position, stored in taken] == [(0, 100), (1, 101), (2, 102)]
    assert (len(found), found.taken_count) == (0, 3)
    found.remove(1, taken[1][1].message)
    assert later.positions == [0, 2]


def test_a_buffer_reports_lost_messages(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a")
    journal.commit()
    journal.disk.messages.clear()
    with pytest.raises(JournalBroken, match="1 messages of range 1 are missing"):
        again(buffer, journal)[0].fill()


@pytest.mark.usefixtures("small")
def test_a_message_that_expired_while_only_in_the_journal_is_not_delivered(journal: MemoryJournal) -> None:
    broker = new_broker(journal)
    queue = new_queue(broker.vhosts["/"], is_durable=True)
    for number in range(9):
        queue.push_with_extras(persistent(b"%d" % number), 100 if number > 5 else None)
    journal.commit()
    collector = CollectingConsumer(queue, prefetch=4).start()
    broker.tick(200)
    for _ in range(5):
        if collector.held:
            collector.ack()
    assert collector.bodies == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert queue.ready_count == 0


@pytest.mark.usefixtures("small")
def test_messages_written_to_the_journal_and_read_from_it_are_counted(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b", b"c", b"d", b"e")
    journal.take_batch()
    journal.take_back()
    fill(buffer, b"in memory", mode=1)
    assert (buffer.written_count, buffer.read_count) == (0, 0)
    journal.commit()
    written = buffer.written_count
    while buffer:
        buffer.pop_head()
    assert (written, buffer.read_count) == (6, 3)


def test_a_range_that_was_never_used_leaves_nothing_for_the_journal_to_do(journal: MemoryJournal) -> None:
    buffer = new_buffer(journal)
    before = journal.definitions
    buffer.clear()
    buffer.drop()
    assert not journal.has_changes
    assert journal.definitions == before
