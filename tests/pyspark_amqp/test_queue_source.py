from __future__ import annotations

import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pika
import pytest
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from amqp_broker.testing import EmbeddedBroker
from compat.waiting import wait_until
from pyspark_amqp import held_queue
from pyspark_amqp import queue_source as module
from pyspark_amqp.delivery_run import total_count
from pyspark_amqp.errors import ConnectionLost, OptionError
from pyspark_amqp.queue_source import QueuePartition, QueueSource
from tests.pyspark_amqp.conftest import At
from tests.pyspark_amqp.reading import ALL, Query, planned, queue_source, rows

KINDS = pytest.mark.parametrize("kind", ["classic", "quorum"])


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a batch as large as its limit, even if a busy broker pauses between two messages."""
    monkeypatch.setattr(held_queue, "QUIET_S", 10.0)


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def unacked_after_closing(at: At, query: Query, queue: str) -> int:
    """Return the messages that are requeued when the reader closes."""
    query.reader.stop()
    return at.count(queue)


@KINDS
def test_a_batch_is_acked_when_the_next_one_is_asked_for(broker: At, kind: str) -> None:
    queue = broker.queue(kind)
    broker.publish(queue, numbers(500))
    query = Query(queue_source(broker, queue))
    assert query.bodies(ReadMaxRows(300)) == numbers(300)
    assert query.bodies(ReadMaxRows(200)) == numbers(200, 300)
    assert query.bodies(ReadMaxRows(300)) == []
    assert unacked_after_closing(broker, query, queue) == 0


@KINDS
def test_unacked_messages_are_redelivered(broker: At, kind: str) -> None:
    queue = broker.queue(kind)
    broker.publish(queue, numbers(30))
    query = Query(queue_source(broker, queue))
    query.next(ReadMaxRows(10))
    query.next(ReadMaxRows(10))
    query.reader.stop()
    again = queue_source(broker, queue)
    # Spark repeats the uncommitted batch, whose messages were requeued.
    assert again.partitions(query.start, query.end) == []
    later = Query(again, query.end)
    found = later.next(ReadMaxRows(20))
    assert sorted(int(row["body"]) for row in found) == list(range(10, 30))
    assert all(row["redelivered"] for row in found[:10])
    assert later.next(ReadMaxRows(100)) == []
    assert unacked_after_closing(broker, later, queue) == 0


def test_a_batch_can_be_read_twice(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(5))
    query = Query(queue_source(amqp_broker, queue))
    first = query.next(ReadMaxRows(5))
    partitions = list(query.reader.partitions(query.start, query.end))
    assert [row["body"] for row in rows(query.reader, partitions)] == [row["body"] for row in first]
    query.reader.stop()


def test_a_batch_of_various_messages_has_each_as_it_was(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    ids = ["a", "a", "a", "b", "a", "a", "a", "a"]
    for number, message_id in enumerate(ids):
        properties = pika.BasicProperties(message_id=message_id)
        amqp_broker.channel.basic_publish("", queue, b"%d" % number, properties)
    query = Query(queue_source(amqp_broker, queue))
    found = query.next(ReadMaxRows(8))
    assert [(row["body"], row["message_id"]) for row in found] == [
        (b"%d" % number, message_id) for number, message_id in enumerate(ids)
    ]
    query.reader.stop()


def test_the_tasks_of_a_batch_have_equal_shares(amqp_broker: At, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, [b"x" * 1000] * 90)
    query = Query(queue_source(amqp_broker, queue))
    query.next(ReadMaxRows(90))
    for bytes_max, shares in ((1 << 20, [90]), (50_000, [45, 45]), (45_000, [30, 30, 30])):
        monkeypatch.setattr(module, "PARTITION_BYTES", bytes_max)
        partitions = query.reader.partitions(query.start, query.end)
        parts = [partition for partition in partitions if isinstance(partition, QueuePartition)]
        assert [total_count(part.runs) for part in parts] == shares
    query.reader.stop()


def test_available_now_ends_after_the_ready_messages(broker: At) -> None:
    queue = broker.queue()
    broker.publish(queue, numbers(250))
    source = queue_source(broker, queue)
    source.prepareForTriggerAvailableNow()
    query = Query(source)
    assert len(query.next(ReadMaxRows(200))) == 200
    broker.publish(queue, numbers(10))
    assert [len(query.next(ReadMaxRows(200))) for _ in range(2)] == [50, 0]
    assert unacked_after_closing(broker, query, queue) == 10


def test_available_now_reads_messages_that_were_unacked_at_a_reconnection(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(100))
    source = queue_source(amqp_broker, queue, prefetch=60, pollTimeoutMs=1000)
    source.prepareForTriggerAvailableNow()
    query = Query(source)
    bodies = query.bodies(ReadMaxRows(30))
    other = amqp_broker.connection.channel()
    tags = [other.basic_get(queue)[0].delivery_tag for _ in range(40)]
    source.held(0).failure = ConnectionLost("the network is down")
    bodies += query.bodies(ReadMaxRows(25))
    assert source.held(0).ready_count == 60
    other.basic_nack(tags[-1], multiple=True)
    while more := query.bodies(ReadMaxRows(25)):
        bodies += more
    assert Counter(bodies) == Counter(numbers(100) + numbers(30))
    other.close()
    query.reader.stop()


def test_a_trigger_that_never_acks_is_refused(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(3))
    with pytest.raises(OptionError, match=r"option 'trigger': once=True .*availableNow=True"):
        Query(queue_source(amqp_broker, queue)).next(ALL)


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_queue_with_auto_delete_stays_while_the_prefetch_changes(
    broker: At, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(held_queue, "QUIET_S", 0.5)
    queue = f"auto{size}"
    broker.channel.queue_declare(queue, auto_delete=True)
    bodies = [b"%d" % number + bytes(size) for number in range(500)]
    broker.publish(queue, bodies)
    query = Query(queue_source(broker, queue, maxBytesPerTrigger=100_000))
    limit = ReadMaxRows(250)
    found: list[bytes] = []
    while len(found) < len(bodies):
        found += query.bodies(limit)
    assert found == bodies
    query.reader.stop()


def test_small_messages_arrive_in_large_batches(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, [b"x"] * 9000)
    query = Query(queue_source(amqp_broker, queue))
    assert len(query.next(ReadMaxRows(5000))) == 5000
    assert len(query.next(ReadMaxRows(4000))) == 4000
    query.reader.stop()


def test_a_partial_batch_ends_when_deliveries_pause(amqp_broker: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_queue, "QUIET_S", 0.5)
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(5))
    query = Query(queue_source(amqp_broker, queue))
    assert query.bodies(ReadMaxRows(9)) == numbers(5)
    query.reader.stop()


def test_a_message_larger_than_the_limit_is_a_batch(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, [b"x" * 5000] * 3)
    query = Query(queue_source(amqp_broker, queue, maxBytesPerTrigger=1000))
    assert [len(query.next(ReadMaxRows(10))) for _ in range(4)] == [1, 1, 1, 0]
    assert unacked_after_closing(amqp_broker, query, queue) == 0


def test_heartbeats_continue_while_spark_works_on_a_batch() -> None:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
        queue = at.queue()
        at.publish(queue, numbers(2))
        at.url += "?heartbeat=1"
        query = Query(queue_source(at, queue))
        assert query.bodies(ReadMaxRows(1)) == [b"0"]
        # The broker closes a connection after two silent intervals.
        time.sleep(2.6)
        assert query.bodies(ReadMaxRows(1)) == [b"1"]
        query.reader.stop()
        at.connection.close()


def test_a_broker_that_is_away_for_too_long_ends_the_query() -> None:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
        queue = at.queue()
        at.publish(queue, numbers(3))
        query = Query(queue_source(at, queue, reconnectTimeout="200ms"))
        query.next(ReadMaxRows(1))
        broker.stop()
        with pytest.raises(ConnectionLost, match=r"cannot connect to .*\(reconnectTimeout of 0.2 s is over\)"):
            query.next(ReadMaxRows(1))


def test_a_stream_is_refused_with_the_options_name(broker: At) -> None:
    with pytest.raises(OptionError, match=r"option 'queueType'.*queueType=stream"):
        Query(queue_source(broker, broker.stream())).next()


def test_a_missing_queue_and_another_queues_checkpoint_are_errors(amqp_broker: At) -> None:
    with pytest.raises(OptionError, match="option 'queue': NOT_FOUND"):
        Query(queue_source(amqp_broker, "nope")).next()
    with pytest.raises(OptionError, match="option 'queue': the checkpoint is of queue other"):
        Query(queue_source(amqp_broker, "nope"), {"other": 1}).next()


def test_an_idle_query_waits_for_the_next_message(amqp_broker: At) -> None:
    query = Query(queue_source(amqp_broker, amqp_broker.queue()))
    started = time.monotonic()
    assert query.next() == []
    assert time.monotonic() - started >= module.WAIT_S
    query.reader.stop()


def test_several_readers_share_a_queue(broker: At) -> None:
    queue = broker.queue()
    broker.publish(queue, numbers(600))
    source = queue_source(broker, queue, numReaders=3, prefetch=100)
    query = Query(source)
    found = query.bodies(ReadMaxRows(300))
    assert len(source.partitions(query.start, query.end)) == 3
    assert sorted(found, key=int) == numbers(300)
    assert broker.channel.queue_declare(queue, passive=True).method.consumer_count == 3
    found += query.bodies(ReadMaxRows(300))
    assert sorted(found, key=int) == numbers(600)
    assert query.bodies(ReadMaxRows(1)) == []
    assert unacked_after_closing(broker, query, queue) == 0


def test_progress_has_the_depth_of_the_queue(broker: At) -> None:
    queue = broker.queue()
    broker.publish(queue, numbers(10))
    source = queue_source(broker, queue, prefetch=4)
    assert source.reportLatestOffset() is None
    Query(source).next(ReadMaxRows(4))
    assert source.reportLatestOffset() == {queue: {"ready": 6, "unacked": 4}}
    source.stop()


def commit(checkpoint: Path, number: int) -> None:
    """Write what Spark writes after a batch."""
    (checkpoint / "commits").mkdir(exist_ok=True)
    (checkpoint / f"commits/{number}").touch()


class LoggedQuery(Query):
    """A query that writes its log as Spark does."""

    def __init__(self, reader: QueueSource, checkpoint: Path) -> None:
        super().__init__(reader)
        self.checkpoint = checkpoint
        self.number = -1

    def next(self, limit: ReadLimit | None = None) -> list[dict[str, Any]]:
        self.start, self.end = self.end, self.reader.latestOffset(self.end, limit or self.reader.getDefaultReadLimit())
        self.number += 1
        planned(self.checkpoint, self.number, self.end)
        return rows(self.reader, list(self.reader.partitions(self.start, self.end)))


@KINDS
def test_a_batch_is_acked_as_soon_as_it_is_in_the_log_of_the_query(broker: At, tmp_path: Path, kind: str) -> None:
    queue = broker.queue(kind)
    broker.publish(queue, numbers(30))
    source = queue_source(broker, queue, checkpointLocation=tmp_path, prefetch=30)
    query = LoggedQuery(source, tmp_path)
    assert query.bodies(ReadMaxRows(20)) == numbers(20)
    assert source.reportLatestOffset() == {queue: {"ready": 0, "unacked": 30}}
    commit(tmp_path, 0)
    wait_until(lambda: source.reportLatestOffset() == {queue: {"ready": 0, "unacked": 10}})
    assert query.bodies(ReadMaxRows(20)) == numbers(10, 20)
    # The query is stopped: nothing asks for a batch any more.
    commit(tmp_path, 1)
    assert unacked_after_closing(broker, query, queue) == 0


def test_a_batch_that_is_not_in_the_log_comes_again(amqp_broker: At, tmp_path: Path) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(3))
    query = LoggedQuery(queue_source(amqp_broker, queue, checkpointLocation=tmp_path), tmp_path)
    query.next(ReadMaxRows(3))
    assert unacked_after_closing(amqp_broker, query, queue) == 3


def test_another_checkpoint_than_that_of_the_query_is_refused(amqp_broker: At, tmp_path: Path) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(3))
    planned(tmp_path, 0, {queue: 2})
    query = Query(queue_source(amqp_broker, queue, checkpointLocation=tmp_path))
    with pytest.raises(OptionError, match=rf"'checkpointLocation': .* has no batch of '{queue}' up to offset 3"):
        query.next(ReadMaxRows(3))
    assert unacked_after_closing(amqp_broker, query, queue) == 3


def _has_depth(source: QueueSource, depth: dict[str, dict[str, int]]) -> bool:
    return source.reportLatestOffset() == depth


@KINDS
def test_a_trigger_that_is_longer_than_the_consumer_timeout_takes_each_message_once(tmp_path: Path, kind: str) -> None:
    with EmbeddedBroker() as broker:
        at = At("amqp_broker", broker.url)
        queue = at.queue(kind)
        at.publish(queue, numbers(1000))
        given = {"checkpointLocation": tmp_path, "maxOffsetsPerTrigger": 300, "idleTimeout": "100ms"}
        source = queue_source(at, queue, **given)
        query = LoggedQuery(source, tmp_path)
        found: list[bytes] = []
        for number in range(4):
            found += query.bodies()
            commit(tmp_path, number)
            depth = {queue: {"ready": 1000 - len(found), "unacked": 0}}
            wait_until(partial(_has_depth, source, depth))
            broker.clock.advance("1h")
        assert found == numbers(1000)
        assert query.bodies() == []
        query.reader.stop()
        at.connection.close()


def test_a_queue_that_is_found_deleted_when_its_depth_is_asked_ends_the_query(broker: At) -> None:
    queue = broker.queue()
    broker.publish(queue, numbers(4))
    source = queue_source(broker, queue, prefetch=4)
    Query(source).next(ReadMaxRows(4))
    broker.channel.queue_delete(queue)
    assert source.reportLatestOffset() is None
    with pytest.raises(OptionError, match="option 'queue': NOT_FOUND"):
        source.latestOffset({queue: 4}, ReadMaxRows(4))
    source.stop()
