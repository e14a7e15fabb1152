from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import lmdb
import pytest

from amqp_broker.amqp.fields import Table, encode_table
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.durability.chunk import Chunk, ChunkHead, as_delivered
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.settings.settings import Settings
from amqp_broker.store import chunks
from amqp_broker.store.codec import MalformedRecord
from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.seal import SEAL_BYTES, DamagedRecord
from amqp_broker.store.store import Store
from tests.broker_parts import new_message, new_queue
from tests.store.failing import full_disk

STREAM = {"x-queue-type": "stream"}


def fields_of(message: Message) -> tuple[Any, ...]:
    return message.exchange, message.routing_key, message.content, message.channel, message.is_persistent


@pytest.mark.parametrize("filters", [None, frozenset(), frozenset({"a", "ü" * 200})])
@pytest.mark.parametrize("has_unfiltered", [False, True])
def test_a_chunk_is_read_as_it_was_written(filters: frozenset[str] | None, has_unfiltered: bool) -> None:
    messages = [
        new_message(b"one", "key", delivery_mode=2),
        new_message(b"", "key", headers={"a": 1}),
        Message.build(Address("x" * 255, "\udcff" * 255), Properties(), b"y" * 300_000),
    ]
    head = ChunkHead(
        1 << 40, 3, 1_700_000_000_000, sum(len(message.content) for message in messages), filters, has_unfiltered
    )
    found = chunks.decode(1 << 40, chunks.encode(Chunk(head, messages)))
    assert found.head == head
    assert [fields_of(message) for message in found.messages] == [fields_of(message) for message in messages]


@pytest.mark.parametrize("filters", [None, frozenset({"a", "b"})])
def test_a_chunk_of_format_1_gets_a_checksum_of_its_head(filters: frozenset[str] | None) -> None:
    record = chunks.encode(Chunk(ChunkHead(7, 2, 1, 6, filters, False), [new_message(b"one"), new_message(b"two")]))
    _, messages_at = chunks.decode_head(7, record)
    elder = bytes([1]) + record[1 : messages_at - SEAL_BYTES] + record[messages_at:]
    assert chunks.renew(7, elder) == record


def test_a_chunk_is_read_for_readers_with_the_offsets_of_its_messages() -> None:
    messages = [
        *(new_message(body, delivery_mode=2) for body in (b"one", b"two", b"three")),
        *(new_message(body, "key", headers={"a": 1}) for body in (b"one", b"two", b"six")),
        new_message(b"one", "key", headers={"x-stream-offset": 1}),
        Message.build(Address("x", "y"), Properties(), b"y" * 300_000),
        new_message(b"one"),
    ]
    chunk = Chunk(ChunkHead(7, len(messages), 1, 2, frozenset(), True), messages)
    found = chunks.decode(7, chunks.encode(chunk), as_delivered=True)
    assert found.head == chunk.head
    assert [fields_of(message) for message in found.messages] == [fields_of(one) for one in as_delivered(chunk)]


def test_a_record_whose_contents_are_cut_is_refused_by_readers() -> None:
    messages = [new_message(b"one"), new_message(b"two")]
    record = chunks.encode(Chunk(ChunkHead(0, 2, 0, 0, None, True), messages))
    size = len(messages[0].content)
    for cut in range(1, size):
        # The sizes before the contents say less than there was.
        entry = chunks.ENTRY.pack(False, 1, size)
        short = record[:-cut].replace(entry, chunks.ENTRY.pack(False, 1, size - cut))
        with pytest.raises(MalformedRecord):
            chunks.decode(0, short, as_delivered=True)


def test_messages_of_the_same_names_share_an_address() -> None:
    head = ChunkHead(0, 2, 0, 0, frozenset(), True)
    found = chunks.decode(0, chunks.encode(Chunk(head, [new_message(b"a"), new_message(b"b")])))
    assert found.messages[0].address is found.messages[1].address


def test_a_chunk_that_is_truncated_or_of_another_format_is_refused() -> None:
    record = chunks.encode(Chunk(ChunkHead(0, 1, 0, 0, frozenset("a"), True), [new_message(b"body")]))
    for size in range(len(record)):
        with pytest.raises(DamagedRecord):
            chunks.decode(0, record[:size])
    with pytest.raises(MalformedRecord, match="format 3"):
        chunks.decode(0, b"\3" + record[1:])
    with pytest.raises(DamagedRecord):
        chunks.decode(0, record + b"more")


def commit(journal: LmdbJournal, environment: Environment) -> None:
    with environment.lmdb.begin(write=True) as txn:
        for _ in journal.write(txn):
            pass
    journal.on_committed()


def open_broker(store: Store) -> Broker:
    broker = Broker(Settings(), lambda size: b"\0" * size, store.journal)
    if not store.recover(broker):
        broker.add_defaults()
    return broker


def stream_of(broker: Broker) -> StreamQueue:
    vhost = broker.vhosts["/"]
    queue = vhost.queues.get("q") or new_queue(vhost, is_durable=True, arguments=STREAM)
    assert isinstance(queue, StreamQueue)
    return queue


def bodies(queue: StreamQueue) -> list[bytes]:
    return [message.body for message in queue.messages()]


def test_a_stream_is_there_after_a_restart_and_goes_on_at_its_next_offset(tmp_path: Path) -> None:
    store = Store(tmp_path)
    stream = stream_of(open_broker(store))
    for body in (b"a", b"b", b"c"):
        stream.push(new_message(body))
        if body != b"a":
            commit(store.journal, store.environment)
    stream.push(new_message(b"never committed"))
    store.environment.close()  # as a crash does: nothing that waits is written

    store = Store(tmp_path)
    stream = stream_of(open_broker(store))
    assert (stream.ready_count, bodies(stream)) == (3, [b"a", b"b", b"c"])
    stream.push(new_message(b"d"))
    store.close()

    store = Store(tmp_path)
    stream = stream_of(open_broker(store))
    assert bodies(stream) == [b"a", b"b", b"c", b"d"]
    assert [message.properties().headers for message in stream.messages()] == [
        {"x-stream-offset": offset} for offset in range(4)
    ]
    store.close()


def test_two_streams_do_not_find_chunks_of_each_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    broker = open_broker(store)
    one = stream_of(broker)
    two = new_queue(broker.vhosts["/"], "two", is_durable=True, arguments=STREAM)
    assert isinstance(two, StreamQueue)
    two.push(new_message(b"two"))
    commit(store.journal, store.environment)
    assert one.range_id is not None
    assert store.journal.chunk_at(one.range_id, 0) is None
    assert store.journal.chunk_head_at(one.range_id, 5) is None
    one.push(new_message(b"one"))
    commit(store.journal, store.environment)
    assert (bodies(one), bodies(two)) == ([b"one"], [b"two"])
    assert store.journal.chunk_at(one.range_id, 1) is None
    store.close()


def test_after_a_panic_chunks_can_be_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    stream = stream_of(open_broker(store))
    stream.push(new_message(b"a"))
    commit(store.journal, store.environment)
    stream.push(new_message(b"b"))
    with full_disk(tmp_path, os.O_WRONLY), pytest.raises(lmdb.Error):
        commit(store.journal, store.environment)
    assert [message.body for message in stream.log.read(0)] == [b"a"]
    store.journal.take_back()
    store.close()


def test_chunks_beyond_the_retention_and_of_deleted_streams_leave_the_disk(tmp_path: Path) -> None:
    store = Store(tmp_path)
    broker = open_broker(store)
    vhost = broker.vhosts["/"]
    stream = new_queue(vhost, is_durable=True, arguments={**STREAM, "x-max-length-bytes": 1})
    for number in range(5):
        stream.push(new_message(str(number).encode()))
        commit(store.journal, store.environment)
        broker.on_committed()
    commit(store.journal, store.environment)
    assert stream.ready_count == 1
    assert count_chunks(store) == 1
    vhost.remove_queue(stream)
    commit(store.journal, store.environment)
    assert count_chunks(store) == 0
    store.close()


def count_chunks(store: Store) -> int:
    environment = store.environment
    with environment.lmdb.begin() as txn:
        found: int = txn.stat(environment.tables["chunks"])["entries"]
    return found


@pytest.mark.parametrize("table", [{}, {"other": ["a"]}, {"": "a"}, {"": [1]}, {"": [["a"]]}, {"": {"a": 1}}])
def test_filters_that_are_damaged_are_refused_before_the_checksum_is_read(table: Table) -> None:
    start = chunks.HEAD.pack(chunks.FORMAT, chunks.KNOWS_FILTERS, 1, 1, 1)
    with pytest.raises(MalformedRecord, match="malformed filters"):
        chunks.decode_head(7, start + encode_table(table) + bytes(100))
