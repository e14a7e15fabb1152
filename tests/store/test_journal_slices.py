"""A batch is written in slices; changes between two of them belong to the next batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.broker.durability.journal import RangeState
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import DEFINITIONS_MAX, RECORD_BYTES, SLICE_BYTES, LmdbJournal
from tests.broker_parts import new_message

SLICE_RECORDS = SLICE_BYTES // RECORD_BYTES


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    environment = Environment(tmp_path)
    yield environment
    environment.close()


def fill(buffer: PagedBuffer, count: int, body: bytes = b"x" * 1000) -> None:
    for _ in range(count):
        buffer.append(buffer.next, new_message(body, delivery_mode=2), None)


def write(environment: Environment, journal: LmdbJournal) -> int:
    """Commit the collected batch; return the number of slices."""
    with environment.lmdb.begin(write=True) as txn:
        slices = 1 + len(list(journal.write(txn)))
    journal.on_committed()
    return slices


def test_a_small_batch_is_one_slice_and_a_large_one_several(environment: Environment) -> None:
    journal = LmdbJournal(environment)
    buffer = PagedBuffer(journal, journal.new_ranges(1), keeps_all=False)
    fill(buffer, 10)
    assert write(environment, journal) == 1
    fill(buffer, 2000)
    assert write(environment, journal) > 2
    assert len(journal.read(buffer.id, 0, 1 << 30)) == 2010


def test_many_definitions_are_written_in_slices(environment: Environment) -> None:
    journal = LmdbJournal(environment)
    names = [str(number) for number in range(2 * DEFINITIONS_MAX)]
    for name in names:
        journal.define(("queue", "/", name), {})
    assert write(environment, journal) == 3
    assert sorted(key[2] for key, _ in journal.definitions_of("queue")) == sorted(names)
    for name in names:
        journal.undefine(("queue", "/", name))
    assert write(environment, journal) == 3
    assert list(journal.definitions_of("queue")) == []


def test_a_backlog_of_one_queue_fills_its_pages(environment: Environment) -> None:
    journal = LmdbJournal(environment)
    buffer = PagedBuffer(journal, journal.new_ranges(1), keeps_all=False)
    for _ in range(10):
        fill(buffer, 300, b"x" * 1024)
        write(environment, journal)
    assert environment.used_bytes() / 3000 < 1500


def test_ranges_are_written_in_any_order(environment: Environment) -> None:
    journal = LmdbJournal(environment)
    first, second = (PagedBuffer(journal, journal.new_ranges(1), keeps_all=False) for _ in range(2))
    for buffer in (second, first, second, first):
        fill(buffer, 3, b"%d" % buffer.id)
        write(environment, journal)
    for buffer in (first, second):
        found = journal.read(buffer.id, 0, 1 << 20)
        assert [position for position, _ in found] == list(range(6))
        assert {stored.message.body for _, stored in found} == {b"%d" % buffer.id}


def test_a_batch_of_removals_is_sliced_too(environment: Environment) -> None:
    journal = LmdbJournal(environment)
    buffer = PagedBuffer(journal, journal.new_ranges(1), keeps_all=False)
    fill(buffer, 2000, b"")
    write(environment, journal)
    for _ in range(2000):
        position, message = buffer.pop_head()
        buffer.remove(position, message)
    assert write(environment, journal) > 2
    assert journal.read(buffer.id, 0, 1) == []


def test_a_change_between_slices_belongs_to_the_next_batch(environment: Environment) -> None:
    journal = LmdbJournal(environment)
    buffer = PagedBuffer(journal, journal.new_ranges(1), keeps_all=False)
    fill(buffer, 2000)
    with environment.lmdb.begin(write=True) as txn:
        slices = journal.write(txn)
        next(slices)
        fill(buffer, 1)
        buffer.drop()
        list(slices)
    journal.on_committed()
    # A crash here: the buffer is not dropped, and what was confirmed is there.
    assert LmdbJournal(environment).state_of(buffer.id) == RangeState(0, 2000, 2000, 2_000_000)
    assert len(journal.read(buffer.id, 0, 1 << 30)) == 2000
    while journal.has_work:
        write(environment, journal)
    assert journal.state_of(buffer.id) == RangeState()
    assert journal.read(buffer.id, 0, 1) == []


def test_ranges_that_belong_to_nothing_are_forgotten(environment: Environment) -> None:
    journal = LmdbJournal(environment)
    buffers = [PagedBuffer(journal, journal.new_ranges(1), keeps_all=False) for _ in range(3)]
    for buffer in buffers:
        fill(buffer, 5)
    write(environment, journal)
    restarted = LmdbJournal(environment)
    assert restarted.discard_strays([buffers[1].id]) == 2
    while restarted.has_work:
        write(environment, restarted)
    assert [len(restarted.read(buffer.id, 0, 1 << 30)) for buffer in buffers] == [0, 5, 0]
    assert restarted.discard_strays([buffers[1].id]) == 0


def test_nothing_waits_for_a_batch_without_changes_while_garbage_is_deleted(environment: Environment) -> None:
    """The batch that is being written deletes it, so that the next one may never be committed."""
    journal = LmdbJournal(environment)
    buffer = PagedBuffer(journal, journal.new_ranges(1), keeps_all=False)
    fill(buffer, 10)
    write(environment, journal)
    buffer.drop()
    with environment.lmdb.begin(write=True) as txn:
        slices = journal.write(txn)
        next(slices)
        assert journal.has_work
        awaited = journal.last_used_batch
        assert list(slices) == []
    journal.on_committed()
    assert not journal.has_work
    assert awaited == journal.committed


def test_many_ranges_are_dropped_in_slices(environment: Environment) -> None:
    journal = LmdbJournal(environment)
    buffers = [PagedBuffer(journal, journal.new_ranges(1), keeps_all=False) for _ in range(2 * SLICE_RECORDS)]
    for buffer in buffers:
        fill(buffer, 1, b"")
    write(environment, journal)
    for buffer in buffers:
        buffer.drop()
    # Two for the ranges, two for their messages, and one for the garbage.
    assert write(environment, journal) >= 5
    while journal.has_work:
        write(environment, journal)
    assert all(journal.state_of(buffer.id) == RangeState() for buffer in buffers)
