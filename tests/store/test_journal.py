from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.broker.journal import Stored, WindowState
from amqp_broker.broker.window import Window
from amqp_broker.message import SpecialMessage
from amqp_broker.store import journal as journal_module
from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import LmdbJournal
from tests.taker import new_message, new_queue

LONG = "ü" * 127


class Disk:
    """A folder, opened again and again as by one process after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: Environment | None = None

    def open(self) -> LmdbJournal:
        self.close()
        self.environment = Environment(self.folder)
        return LmdbJournal(self.environment)

    def close(self) -> None:
        if self.environment is not None:
            self.environment.close()
            self.environment = None

    def commit(self, journal: LmdbJournal) -> None:
        assert self.environment is not None
        with self.environment.lmdb.begin(write=True) as txn:
            for _ in journal.write(txn):
                pass
        journal.on_committed()

    def entries(self, table: str) -> int:
        assert self.environment is not None
        with self.environment.lmdb.begin() as txn:
            return int(txn.stat(self.environment.tables[table])["entries"])


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "data")
    yield disk
    disk.close()


def new_window(journal: LmdbJournal) -> Window:
    return Window(new_queue(), journal, journal.new_ranges(1), keeps_all=False)


def fill(window: Window, *bodies: bytes) -> None:
    for body in bodies:
        window.append(window.next, new_message(body, delivery_mode=2), None)


def test_definitions_are_found_again_by_kind(disk: Disk) -> None:
    journal = disk.open()
    journal.define(("queue", "/", "a"), {"arguments": b"\0\0\0\0", "range": 1, "auto_delete": False})
    journal.define(("queue", LONG, LONG), {"range": None})
    journal.define(("queues", "/"), {"no": "queue"})
    journal.define(("user", "gone"), {})
    journal.undefine(("user", "gone"))
    disk.commit(journal)
    journal = disk.open()
    assert dict(journal.definitions_of("queue")) == {
        ("queue", "/", "a"): {"arguments": b"\0\0\0\0", "range": 1, "auto_delete": False},
        ("queue", LONG, LONG): {"range": None},
    }
    assert dict(journal.definitions_of("user")) == {}
    journal.undefine(("queue", "/", "a"))
    disk.commit(journal)
    assert len(dict(disk.open().definitions_of("queue"))) == 1


def test_while_what_is_safe_is_restored_nothing_is_told_anew(disk: Disk) -> None:
    journal = disk.open()
    journal.is_restoring = True
    journal.define(("user", "a"), {})
    assert not journal.has_work


def test_ranges_are_never_given_twice(disk: Disk) -> None:
    journal = disk.open()
    first, second = journal.new_ranges(3), journal.new_ranges(1)
    assert second == first + 3
    disk.commit(journal)
    assert disk.open().new_ranges(1) > second


def test_messages_are_found_again_in_the_order_of_their_positions(disk: Disk) -> None:
    journal = disk.open()
    windows = [new_window(journal) for _ in range(2)]
    fill(windows[0], *(b"%d" % number for number in range(300)))
    fill(windows[1], b"other")
    disk.commit(journal)
    journal = disk.open()
    assert journal.state_of(windows[0].id) == WindowState(0, 300, 300, 10 + 180 + 600)
    window = Window(new_queue(), journal, windows[0].id, keeps_all=False)
    assert [message.body for message in window] == [b"%d" % number for number in range(300)]


def test_reading_stops_after_about_as_much_as_was_asked_for(disk: Disk) -> None:
    journal = disk.open()
    window = new_window(journal)
    fill(window, *[b"x" * 1000] * 10)
    disk.commit(journal)
    assert len(journal.read(window.id, 0, 1)) == 1
    assert [position for position, _ in journal.read(window.id, 4, 3500)] == [4, 5, 6]
    assert journal.read(window.id, 10, 2500) == []


def test_what_was_removed_is_gone(disk: Disk) -> None:
    journal = disk.open()
    window = new_window(journal)
    fill(window, b"a", b"b", b"c")
    disk.commit(journal)
    window.popleft()
    window.remove(*window.popleft())
    disk.commit(journal)
    assert [position for position, _ in disk.open().read(window.id, 0, 1000)] == [0, 2]


def test_how_often_a_message_came_back_and_its_deadline_are_found_again(disk: Disk) -> None:
    journal = disk.open()
    window = Window(new_queue(), journal, journal.new_ranges(1), keeps_all=True)
    message = new_message(b"a")
    window.hand_on(0, message, 77)
    disk.commit(journal)
    window.rewrite(0, Stored(message, 77, 3))
    disk.commit(journal)
    ((_, stored),) = disk.open().read(window.id, 0, 1000)
    assert stored[1:] == (77, 3)


def test_what_is_discarded_goes_a_portion_at_a_time(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "GARBAGE_PORTION", 10)
    journal = disk.open()
    window, other = new_window(journal), new_window(journal)
    fill(window, *[b"x"] * 35)
    fill(other, *[b"y"] * 5)
    disk.commit(journal)
    window.drop()
    disk.commit(journal)
    assert disk.entries("messages") == 30
    assert journal.has_work
    journal = disk.open()
    assert journal.has_work
    rounds = 0
    while journal.has_work:
        disk.commit(journal)
        rounds += 1
    assert rounds in (3, 4)
    assert (disk.entries("messages"), disk.entries("garbage"), disk.entries("windows")) == (5, 0, 1)


def test_only_the_range_that_was_discarded_goes(disk: Disk) -> None:
    journal = disk.open()
    window = new_window(journal)
    fill(window, *[b"x"] * 10)
    disk.commit(journal)
    journal.discard(window.id, 3, 6)
    disk.commit(journal)
    assert [position for position, _ in journal.read(window.id, 0, 10_000)] == [0, 1, 2, 6, 7, 8, 9]


def test_a_batch_that_was_not_committed_is_written_with_the_next(disk: Disk) -> None:
    journal = disk.open()
    window = new_window(journal)
    fill(window, b"a", b"b")
    journal.define(("user", "a"), {})
    assert disk.environment is not None
    txn = disk.environment.lmdb.begin(write=True)
    for _ in journal.write(txn):
        pass
    txn.abort()
    window.remove(*window.popleft())
    fill(window, b"c")
    journal.take_back()
    assert journal.has_work
    disk.commit(journal)
    journal = disk.open()
    assert [position for position, _ in journal.read(window.id, 0, 1000)] == [1, 2]
    assert dict(journal.definitions_of("user")) == {("user", "a"): {}}


def test_a_message_keeps_its_number_in_a_trace_until_the_broker_starts_anew(disk: Disk) -> None:
    journal = disk.open()
    window = new_window(journal)
    message = SpecialMessage.of(new_message(b"numbered", delivery_mode=2))
    message.number = 7
    window.append(window.next, message, None)
    disk.commit(journal)

    def number(journal: LmdbJournal) -> int:
        [(_, stored)] = journal.read(window.id, 0, 1000)
        assert isinstance(stored.message, SpecialMessage)
        return stored.message.number

    assert number(journal) == 7
    assert number(disk.open()) == 0
