from __future__ import annotations

import pytest

from amqp_broker.broker import window as window_module
from amqp_broker.broker.journal import Stored
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.window import ENTRY_BYTES, Window
from amqp_broker.message import Message
from tests.memory_journal import MemoryJournal
from tests.taker import Taker, new_broker, new_message, new_queue


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def queue() -> Queue:
    return new_queue()


def new_window(queue: Queue, journal: MemoryJournal, keeps_all: bool = False) -> Window:
    return Window(queue, journal, journal.new_ranges(1), keeps_all)


def again(window: Window, journal: MemoryJournal) -> tuple[Window, MemoryJournal]:
    """The window as a process finds it that was started after this one was killed."""
    later = MemoryJournal(journal.disk)
    return Window(new_queue(), later, window.id, window.keeps_all), later


def persistent(body: bytes = b"") -> Message:
    return new_message(body, delivery_mode=2)


def fill(window: Window, *bodies: bytes, mode: int = 2) -> None:
    for body in bodies:
        window.append(window.next, new_message(body, delivery_mode=mode), None)


def bodies(window: Window) -> list[bytes]:
    return [message.body for message in window]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows have room for two or three small messages, and read as many at once."""
    size = 2 * (ENTRY_BYTES + 40)
    for name in ("PORTION_BYTES", "WINDOW_BYTES_MAX", "WINDOWS_BYTES_MAX"):
        monkeypatch.setattr(window_module, name, size)


def test_what_is_put_is_safe_when_it_is_committed(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a", b"b")
    assert journal.disk.messages == {}
    assert journal.positions == [0, 1]
    found, _ = again(window, journal)
    assert bodies(found) == [b"a", b"b"]
    assert (found.stored_count, found.stored_bytes, found.next) == (2, 2, 2)


def test_what_was_not_committed_is_not_there_after_a_crash(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a")
    journal.commit()
    fill(window, b"b")
    journal.take_batch()
    fill(window, b"c")
    assert bodies(again(window, journal)[0]) == [b"a"]


def test_a_message_that_was_taken_is_there_until_it_is_removed(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a", b"b")
    position, message = window.popleft()
    assert (window.taken_count, window.ready_bytes, window.stored_count) == (1, 1, 2)
    assert journal.positions == [0, 1]
    window.remove(position, message)
    assert journal.positions == [1]
    assert (window.taken_count, window.stored_count, window.stored_bytes) == (0, 1, 1)


def test_what_was_taken_before_a_crash_counts_as_delivered_before(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a", b"b", b"c")
    journal.commit()
    window.popleft()
    window.popleft()
    journal.commit()
    found, _ = again(window, journal)
    assert [(position < found.redelivered_before) for position, _ in found.items()] == [True, True, False]


def test_the_head_never_goes_back(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a", b"b", b"c")
    for _ in range(3):
        window.popleft()
    journal.commit()
    found, later = again(window, journal)
    found.popleft()
    later.commit()
    assert again(found, later)[0].redelivered_before == 3


def test_positions_are_not_given_again_after_a_restart(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a", b"b")
    for _ in range(2):
        window.remove(*window.popleft())
    journal.commit()
    assert again(window, journal)[0].next == 2


def test_transient_messages_in_memory_are_none_of_the_journals_business(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a", mode=1)
    assert (journal.told, journal.positions, window.ready_bytes) == (0, [], 1)
    window.remove(*window.popleft())
    assert window.stored_count == 0


def test_a_window_that_keeps_all_keeps_transient_messages_too(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal, keeps_all=True)
    fill(window, b"a", mode=1)
    assert journal.positions == [0]
    assert bodies(again(window, journal)[0]) == [b"a"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("commits", ["never", "once", "always"])
def test_memory_holds_the_first_and_the_journal_the_rest(queue: Queue, journal: MemoryJournal, commits: str) -> None:
    window = new_window(queue, journal)
    expected = [b"%d" % number for number in range(20)]
    for body in expected:
        fill(window, body)
        if commits == "always":
            journal.commit()
    if commits == "once":
        journal.commit()
    assert (len(window), len(window.memory), window.paged_count) == (20, 3, 17)
    assert bodies(window) == expected
    assert len(window.memory) == 3
    assert [window.popleft()[1].body for _ in range(20)] == expected
    assert (len(window), window.ready_bytes, journal.window_bytes) == (0, 0, 0)


@pytest.mark.usefixtures("small")
def test_reading_on_finds_what_is_committed_what_is_on_its_way_and_what_is_only_told(
    queue: Queue, journal: MemoryJournal
) -> None:
    window = new_window(queue, journal)
    fill(window, *(b"%d" % number for number in range(8)))
    journal.commit()
    fill(window, *(b"%d" % number for number in range(8, 12)))
    journal.take_batch()
    fill(window, *(b"%d" % number for number in range(12, 16)))
    assert bodies(window) == [b"%d" % number for number in range(16)]
    assert [window.popleft()[0] for _ in range(10)] == list(range(10))
    journal.on_committed()
    assert [position for position, _ in window.items()] == list(range(10, 16))
    assert [window.popleft()[0] for _ in range(6)] == list(range(10, 16))


@pytest.mark.usefixtures("small")
def test_all_windows_share_what_memory_there_is(queue: Queue, journal: MemoryJournal) -> None:
    one, other = new_window(queue, journal), new_window(queue, journal)
    fill(one, *[b"x"] * 5)
    fill(other, *[b"x"] * 5)
    assert (one.paged_count, other.paged_count) == (2, 2)
    assert journal.window_bytes == one._memory_bytes + other._memory_bytes


@pytest.mark.usefixtures("small")
def test_transient_messages_are_paged_out_and_are_gone_after_a_crash(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    for number in range(10):
        fill(window, b"%d" % number, mode=1 + number % 2)
    journal.commit()
    assert len(journal.disk.messages) > 5
    found, later = again(window, journal)
    assert len(found) == 5
    assert bodies(found) == [b"1", b"3", b"5", b"7", b"9"]
    assert [found.popleft()[1].body for _ in range(5)] == [b"1", b"3", b"5", b"7", b"9"]
    later.commit()
    assert {position for _, position in later.disk.messages} == {1, 3, 5, 7, 9}


@pytest.mark.usefixtures("small")
def test_a_transient_message_that_was_read_back_is_only_in_memory(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, *[b"x"] * 6, mode=1)
    assert journal.positions == [3, 4, 5]
    for _ in range(4):
        window.remove(*window.popleft())
    # The last three were read at once.
    assert journal.positions == []
    assert len(window) == 2


@pytest.mark.usefixtures("small")
def test_deadlines_come_back_with_their_messages(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    for number in range(6):
        window.append(number, persistent(b"x"), 1000 + number)
    assert queue.deadlines == {0: 1000, 1: 1001, 2: 1002}
    for _ in range(4):
        window.popleft()
    assert queue.deadlines[3] == 1003


def test_a_message_that_is_handed_on_was_never_ready(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    window.hand_on(0, persistent(b"abc"), None)
    assert (len(window), window.ready_bytes, window.taken_count, window.head, window.next) == (0, 0, 1, 1, 1)
    assert journal.positions == [0]


def test_what_was_removed_before_its_batch_was_taken_is_never_written(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    message = persistent()
    window.hand_on(0, message, None)
    window.remove(0, message)
    assert (window.puts, window.removes) == ({}, [])


def test_what_was_removed_after_its_batch_was_taken_is_removed_by_the_next(
    queue: Queue, journal: MemoryJournal
) -> None:
    window = new_window(queue, journal)
    message = persistent()
    window.hand_on(0, message, None)
    journal.take_batch()
    window.remove(0, message)
    journal.on_committed()
    assert list(journal.disk.messages) == [(window.id, 0)]
    assert journal.positions == []


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_batch_that_failed_is_told_anew(queue: Queue, journal: MemoryJournal, is_removed: bool) -> None:
    window = new_window(queue, journal)
    fill(window, b"a", b"b")
    journal.take_batch()
    if is_removed:
        window.remove(*window.popleft())
    fill(window, b"c")
    journal.take_back()
    assert journal.positions == ([1, 2] if is_removed else [0, 1, 2])


def test_how_often_a_message_came_back_is_remembered(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal, keeps_all=True)
    fill(window, b"a")
    position, message = window.popleft()
    journal.commit()
    window.rewrite(position, Stored(message, None, 2))
    journal.commit()
    assert journal.disk.messages[window.id, 0].returns == 2
    window.rewrite(position, Stored(message, None, 3))
    window.remove(position, message)
    assert journal.positions == []


@pytest.mark.usefixtures("small")
def test_clearing_leaves_what_was_taken(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, *[b"x"] * 10)
    taken = window.popleft()
    journal.commit()
    fill(window, *[b"y"] * 3)
    window.clear()
    assert (len(window), window.ready_bytes, window.stored_count, journal.window_bytes) == (0, 0, 1, 0)
    assert journal.positions == [0]
    fill(window, b"z")
    assert bodies(window) == [b"z"]
    assert journal.positions == [0, 13]
    window.remove(*taken)
    assert journal.positions == [13]
    assert bodies(again(window, journal)[0]) == [b"z"]


def test_a_dropped_window_leaves_nothing_and_takes_nothing(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a", b"b")
    taken = window.popleft()
    journal.commit()
    window.drop()
    window.remove(*taken)
    window.rewrite(taken[0], Stored(taken[1], None, 1))
    assert journal.positions == []
    assert journal.disk.states == {}


def test_a_window_that_is_dropped_while_it_is_written_leaves_nothing(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a")
    journal.take_batch()
    window.drop()
    journal.on_committed()
    assert journal.positions == []
    assert journal.disk.states == {}


def test_all_can_be_taken_at_once(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal, keeps_all=True)
    for number in range(3):
        window.hand_on(number, persistent(b"%d" % number), 100 + number)
    journal.commit()
    found, later = again(window, journal)
    taken = found.take_all()
    assert [(position, stored.deadline_ms) for position, stored in taken] == [(0, 100), (1, 101), (2, 102)]
    assert (len(found), found.taken_count) == (0, 3)
    found.remove(1, taken[1][1].message)
    assert later.positions == [0, 2]


def test_a_window_whose_messages_are_lost_says_so(queue: Queue, journal: MemoryJournal) -> None:
    window = new_window(queue, journal)
    fill(window, b"a")
    journal.commit()
    journal.disk.messages.clear()
    with pytest.raises(AssertionError, match="the journal has lost 1 messages of queue 'q'"):
        again(window, journal)[0].fill()


@pytest.mark.usefixtures("small")
def test_what_expired_while_it_was_only_in_the_journal_is_not_delivered(journal: MemoryJournal) -> None:
    broker = new_broker(journal)
    queue = new_queue(broker.vhosts["/"], is_durable=True)
    for number in range(9):
        queue.push_with_extras(persistent(b"%d" % number), 100 if number > 5 else None)
    journal.commit()
    taker = Taker(queue, prefetch=4).start()
    broker.tick(200)
    for _ in range(5):
        if taker.held:
            taker.ack()
    assert taker.bodies == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert queue.ready_count == 0
