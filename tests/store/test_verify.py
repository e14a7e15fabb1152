from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest

from amqp_broker.store.environment import NUMBER, POSITION, Environment, StoreInUse, StoreMissing, Tables
from amqp_broker.store.journal import STATE, LmdbJournal
from amqp_broker.store.repair import repair
from amqp_broker.store.verify import check_content, verify
from tests.broker_parts import new_broker, new_message, new_queue
from tests.store.stores import commit, fill, put, record_at

Change = Callable[[lmdb.Transaction, Tables], object]


def change(folder: Path, how: Change) -> list[str]:
    """Return the problems of a store after a change."""
    environment = Environment(folder)
    with environment.lmdb.begin(write=True) as txn:
        how(txn, environment.tables)
    environment.close()
    return verify(folder).problems


def test_a_store_as_a_broker_wrote_it_has_no_problems(tmp_path: Path) -> None:
    fill(tmp_path)
    progress: list[tuple[int, int]] = []
    verdict = verify(tmp_path, lambda done, total: progress.append((done, total)))
    assert (verdict.queues, verdict.problems) == (4, [])
    assert verdict.messages == 70
    assert progress[-1] == (70, 70)
    assert all(0 < done <= total for done, total in progress)


def test_a_new_store_has_no_problems(tmp_path: Path) -> None:
    Environment(tmp_path / "new").close()
    assert verify(tmp_path / "new").problems == []


def test_transient_messages_that_a_restart_forgets_are_not_counted(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("amqp_broker.broker.durability.paged_buffer.BUFFER_BYTES_MAX", 0)
    monkeypatch.setattr("amqp_broker.broker.durability.paged_buffer.PAGE_BYTES", 0)
    environment = Environment(tmp_path)
    journal = LmdbJournal(environment)
    queue = new_queue(new_broker(journal).vhosts["/"], is_durable=True)
    for mode in (1, 2, 1, 1):
        queue.push(new_message(b"body", delivery_mode=mode))
    commit(environment, journal)
    with environment.lmdb.begin() as txn:
        assert txn.stat(environment.tables["messages"])["entries"] == 4
    environment.close()
    verdict = verify(tmp_path)
    assert (verdict.messages, verdict.problems) == (1, [])


def test_messages_of_a_transient_queue_that_were_paged_out_are_no_problem(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    journal = LmdbJournal(environment)
    broker = new_broker(journal)
    queue = new_queue(broker.vhosts["/"], "transient")
    for _ in range(4):
        queue.push(new_message(bytes(100_000), delivery_mode=2))
        broker.page(True)
    commit(environment, journal)
    with environment.lmdb.begin() as txn:
        assert txn.stat(environment.tables["messages"])["entries"]
    environment.close()
    assert verify(tmp_path).problems == []
    assert repair(tmp_path).changes == []


def test_garbage_is_not_counted(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    journal = LmdbJournal(environment)
    vhost = new_broker(journal).vhosts["/"]
    queue = new_queue(vhost, is_durable=True)
    for _ in range(3000):
        queue.push(new_message(b"", delivery_mode=2))
    commit(environment, journal)
    vhost.remove_queue(queue)
    commit(environment, journal)
    assert journal.has_work
    environment.close()
    verdict = verify(tmp_path)
    assert (verdict.messages, verdict.problems) == (0, [])


def test_a_message_that_is_gone_is_missed(tmp_path: Path) -> None:
    fill(tmp_path)

    def lose(txn: lmdb.Transaction, tables: Tables) -> None:
        assert txn.delete(POSITION.pack(1, 0), db=tables["messages"])

    octets = sum(number * 30 for number in range(30) if number % 3 != 2)
    # The first of them is empty.
    assert change(tmp_path, lose) == [
        f"queue 'plain' in vhost '/' has 19 messages of {octets} octets, and counts 20 of {octets}."
    ]


def test_an_unreadable_message_is_reported_with_its_position(tmp_path: Path) -> None:
    fill(tmp_path)

    def cut(txn: lmdb.Transaction, tables: Tables) -> None:
        key = POSITION.pack(1, 3)
        put(txn, key, record_at(txn, key, tables["messages"])[:-1], tables["messages"])
        put(txn, POSITION.pack(1, 4), b"\1", tables["messages"])

    assert change(tmp_path, cut) == [
        "queue 'plain' in vhost '/' has 2 messages that cannot be read, "
        "at position 3: its frames are invalid; at position 4: a record is cut short."
    ]


def test_messages_without_an_owner_are_reported(tmp_path: Path) -> None:
    fill(tmp_path)

    def orphan(txn: lmdb.Transaction, tables: Tables) -> None:
        record = record_at(txn, POSITION.pack(1, 0), tables["messages"])
        put(txn, POSITION.pack(77, 0), record, tables["messages"])
        put(txn, NUMBER.pack(78), STATE.pack(0, 0, 0, 0), tables["windows"])
        put(txn, POSITION.pack(79, 0), b"chunk", tables["chunks"])
        put(txn, POSITION.pack(79, 1), b"chunk", tables["chunks"])

    assert change(tmp_path, orphan) == [
        "range 77 has 1 messages and belongs to nothing.",
        "range 78 has 0 messages and belongs to nothing.",
        "range 79 has 2 messages and belongs to nothing.",
    ]


def test_positions_that_would_be_given_twice_are_reported(tmp_path: Path) -> None:
    fill(tmp_path)

    def forget(txn: lmdb.Transaction, tables: Tables) -> None:
        head, _, count, octets = STATE.unpack(record_at(txn, NUMBER.pack(1), tables["windows"]))
        put(txn, NUMBER.pack(1), STATE.pack(head, 2, count, octets), tables["windows"])

    assert change(tmp_path, forget) == [
        "queue 'plain' in vhost '/' has messages at positions that it will give to others."
    ]


@pytest.mark.parametrize(
    ("table", "key", "problem"),
    [
        ("windows", NUMBER.pack(999), "the state of a queue cannot be read."),
        ("garbage", POSITION.pack(9, 9), "an entry of the garbage table cannot be read."),
    ],
)
def test_rows_of_another_shape_are_reported(tmp_path: Path, table: str, key: bytes, problem: str) -> None:
    fill(tmp_path)
    assert change(tmp_path, lambda txn, tables: put(txn, key, b"y", tables[table])) == [problem]


def test_a_store_in_use_and_one_that_is_not_there_are_not_checked(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "store")
    with pytest.raises(StoreInUse):
        verify(tmp_path / "store")
    environment.close()
    with pytest.raises(StoreMissing):
        verify(tmp_path / "other")


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_content_as_it_arrived_is_whole(size: int) -> None:
    check_content(new_message(b"x" * size))


@pytest.mark.parametrize("at", [0, 3, 6, -1])
def test_content_with_another_frame_is_not_whole(at: int) -> None:
    message = new_message(b"body")
    content = bytearray(message.content)
    content[at] ^= 1
    message.content = bytes(content)
    with pytest.raises(ValueError, match=r"its frames are invalid|cut short|another size"):
        check_content(message)


def test_content_that_ends_amid_the_head_of_a_frame_is_not_whole() -> None:
    message = new_message(b"body")
    message.content += b"\3\0"
    with pytest.raises(ValueError, match="a frame is cut short"):
        check_content(message)


def test_content_of_another_size_than_it_says_is_not_whole() -> None:
    message = new_message(b"body")
    content = bytearray(message.content)
    content[7 + 11] += 1
    message.content = bytes(content)
    with pytest.raises(ValueError, match="another size"):
        check_content(message)


def fill_stream(folder: Path) -> None:
    """A stream of three chunks whose first was dropped, and is to be deleted."""
    environment = Environment(folder)
    journal = LmdbJournal(environment)
    arguments = {"x-queue-type": "stream", "x-max-length-bytes": 1200}
    stream = new_queue(new_broker(journal).vhosts["/"], "s", is_durable=True, arguments=arguments)
    for body in (b"a" * 100, b"b" * 100, b"c" * 100):
        for _ in range(4):
            stream.push(new_message(body))
        commit(environment, journal)
        stream.vhost.broker.on_committed()
    # Chunks dropped from the head are discarded with the next batch.
    commit(environment, journal)
    environment.close()


def test_a_stream_as_a_broker_wrote_it_has_no_problems(tmp_path: Path) -> None:
    fill_stream(tmp_path)
    verdict = verify(tmp_path)
    assert (verdict.messages, verdict.problems) == (8, [])


def test_a_stream_with_a_gap_is_reported(tmp_path: Path) -> None:
    fill_stream(tmp_path)
    problems = change(tmp_path, lambda txn, tables: txn.delete(POSITION.pack(1, 8), db=tables["chunks"]))
    assert problems == ["queue 's' in vhost '/' has 4 messages of 524 octets, and counts 8 of 1048."]


def test_missing_offsets_are_reported(tmp_path: Path) -> None:
    fill_stream(tmp_path)

    def move(txn: lmdb.Transaction, tables: Tables) -> None:
        chunk = record_at(txn, POSITION.pack(1, 8), tables["chunks"])
        txn.delete(POSITION.pack(1, 8), db=tables["chunks"])
        put(txn, POSITION.pack(1, 9), chunk, tables["chunks"])

    problems = change(tmp_path, move)
    assert any("at offset 9: the offsets from 8 on are missing" in problem for problem in problems), problems


def test_an_unreadable_chunk_is_reported(tmp_path: Path) -> None:
    fill_stream(tmp_path)

    def cut(txn: lmdb.Transaction, tables: Tables) -> None:
        key = POSITION.pack(1, 8)
        put(txn, key, record_at(txn, key, tables["chunks"])[:-1], tables["chunks"])

    (problem,) = change(tmp_path, cut)
    assert problem.endswith(
        "has 1 messages that cannot be read, at offset 8: a chunk has another size than its messages."
    )
