from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.amqp.message import SpecialMessage
from amqp_broker.broker.durability.journal import END, RangeState, Stored
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.store import journal as journal_module
from amqp_broker.store.environment import NUMBER, POSITION, Environment
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.seal import seal
from tests.broker_parts import new_message
from tests.present import present

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


def new_buffer(journal: LmdbJournal) -> PagedBuffer:
    return PagedBuffer(journal, journal.new_ranges(1), keeps_all=False)


def fill(buffer: PagedBuffer, *bodies: bytes) -> None:
    for body in bodies:
        buffer.append(buffer.next, new_message(body, delivery_mode=2), None)


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


def test_restored_objects_are_not_defined_again(disk: Disk) -> None:
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
    buffers = [new_buffer(journal) for _ in range(2)]
    fill(buffers[0], *(b"%d" % number for number in range(300)))
    fill(buffers[1], b"other")
    disk.commit(journal)
    journal = disk.open()
    assert journal.state_of(buffers[0].id) == RangeState(0, 300, 300, 10 + 180 + 600)
    buffer = PagedBuffer(journal, buffers[0].id, keeps_all=False)
    assert [message.body for message in buffer] == [b"%d" % number for number in range(300)]


def test_reading_stops_after_about_as_much_as_was_asked_for(disk: Disk) -> None:
    journal = disk.open()
    buffer = new_buffer(journal)
    fill(buffer, *[b"x" * 1000] * 10)
    disk.commit(journal)
    assert len(journal.read(buffer.id, 0, 1)) == 1
    assert [position for position, _ in journal.read(buffer.id, 4, 3500)] == [4, 5, 6]
    assert journal.read(buffer.id, 10, 2500) == []


def test_a_frozen_journal_has_what_was_safe_when_it_was_frozen(disk: Disk) -> None:
    journal = disk.open()
    buffer = new_buffer(journal)
    fill(buffer, b"1", b"2")
    disk.commit(journal)
    with journal.frozen() as frozen:
        buffer.remove(*buffer.pop_head())
        fill(buffer, b"3")
        disk.commit(journal)
        assert [stored.message.body for _, stored in frozen.read(buffer.id, 0, 1000)] == [b"1", b"2"]
        assert [stored.message.body for _, stored in journal.read(buffer.id, 0, 1000)] == [b"2", b"3"]


def test_a_removed_message_is_gone(disk: Disk) -> None:
    journal = disk.open()
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b", b"c")
    disk.commit(journal)
    buffer.pop_head()
    buffer.remove(*buffer.pop_head())
    disk.commit(journal)
    assert [position for position, _ in disk.open().read(buffer.id, 0, 1000)] == [0, 2]


def test_how_often_a_message_came_back_and_its_deadline_are_found_again(disk: Disk) -> None:
    journal = disk.open()
    buffer = PagedBuffer(journal, journal.new_ranges(1), keeps_all=True)
    message = new_message(b"a")
    buffer.deliver_through(0, message, 77)
    disk.commit(journal)
    buffer.rewrite(0, Stored(message, 77, 3))
    disk.commit(journal)
    ((_, stored),) = disk.open().read(buffer.id, 0, 1000)
    assert (stored.deadline_ms, stored.returns) == (77, 3)


def test_discarded_messages_are_deleted_in_batches(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "GARBAGE_BATCH", 10)
    journal = disk.open()
    buffer, other = new_buffer(journal), new_buffer(journal)
    fill(buffer, *[b"x"] * 35)
    fill(other, *[b"y"] * 5)
    disk.commit(journal)
    buffer.drop()
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


def test_discarded_ranges_without_messages_are_deleted_in_batches_too(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "GARBAGE_BATCH", 10)
    journal = disk.open()
    for range_id in range(1, 36):
        journal.discard(range_id, 0, END)
    left = []
    while journal.has_work:
        disk.commit(journal)
        left.append(disk.entries("garbage"))
    assert left == [25, 15, 5, 0]


def test_only_the_range_that_was_discarded_goes(disk: Disk) -> None:
    journal = disk.open()
    buffer = new_buffer(journal)
    fill(buffer, *[b"x"] * 10)
    disk.commit(journal)
    journal.discard(buffer.id, 3, 6)
    disk.commit(journal)
    assert [position for position, _ in journal.read(buffer.id, 0, 10_000)] == [0, 1, 2, 6, 7, 8, 9]


def test_messages_behind_a_discarded_range_are_read_while_that_is_not_deleted_yet(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "GARBAGE_BATCH", 2)
    journal = disk.open()
    buffer = new_buffer(journal)
    fill(buffer, *[b"x"] * 10)
    disk.commit(journal)
    journal.discard(buffer.id, 0, 4)
    journal.discard(buffer.id, 5, 7)
    disk.commit(journal)
    assert disk.entries("garbage") == 2
    for start, found in ((0, [4, 7, 8, 9]), (5, [7, 8, 9]), (7, [7, 8, 9]), (8, [8, 9])):
        assert [position for position, _ in journal.read(buffer.id, start, 10_000)] == found


def test_discarded_messages_do_not_come_back_while_or_after_their_deletion_fails(disk: Disk) -> None:
    journal = disk.open()
    buffer = new_buffer(journal)
    fill(buffer, *[b"x"] * 4)
    disk.commit(journal)
    environment = present(disk.environment)
    with environment.lmdb.begin(write=True) as txn:
        # As one that is left from an earlier process.
        key = POSITION.pack(buffer.id, 0)
        txn.put(key, seal(key, NUMBER.pack(3)), db=environment.tables["garbage"])
    journal = disk.open()
    txn = present(disk.environment).lmdb.begin(write=True)
    for _ in journal.write(txn):
        pass
    assert [position for position, _ in journal.read(buffer.id, 0, 10_000)] == [3]
    txn.abort()
    journal.take_back()
    assert [position for position, _ in journal.read(buffer.id, 0, 10_000)] == [3]
    assert journal.has_work
    disk.commit(journal)
    assert not journal.has_work


def test_a_batch_that_was_not_committed_is_written_with_the_next(disk: Disk) -> None:
    journal = disk.open()
    buffer = new_buffer(journal)
    fill(buffer, b"a", b"b")
    journal.define(("user", "a"), {})
    assert disk.environment is not None
    txn = disk.environment.lmdb.begin(write=True)
    for _ in journal.write(txn):
        pass
    txn.abort()
    buffer.remove(*buffer.pop_head())
    fill(buffer, b"c")
    journal.take_back()
    assert journal.has_work
    disk.commit(journal)
    journal = disk.open()
    assert [position for position, _ in journal.read(buffer.id, 0, 1000)] == [1, 2]
    assert dict(journal.definitions_of("user")) == {("user", "a"): {}}


def test_a_message_keeps_its_number_in_a_trace_until_the_broker_starts_anew(disk: Disk) -> None:
    journal = disk.open()
    buffer = new_buffer(journal)
    message = SpecialMessage.of(new_message(b"numbered", delivery_mode=2))
    message.number = 7
    buffer.append(buffer.next, message, None)
    disk.commit(journal)

    def number(journal: LmdbJournal) -> int:
        [(_, stored)] = journal.read(buffer.id, 0, 1000)
        assert isinstance(stored.message, SpecialMessage)
        return stored.message.number

    assert number(journal) == 7
    assert number(disk.open()) == 0
