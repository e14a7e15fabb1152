from __future__ import annotations

import time

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from amqp_broker.testing import EmbeddedBroker
from compat.waiting import wait_until
from pyspark_amqp import queue_source as module
from pyspark_amqp.errors import BrokerError, OptionError
from pyspark_amqp.queue_source import HeldQueue
from tests.pyspark_amqp.conftest import At
from tests.pyspark_amqp.reading import Query, options_of, queue_source

KINDS = pytest.mark.parametrize("kind", ["classic", "quorum"])


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is as large as it may be, however long a busy broker pauses between two messages of it."""
    monkeypatch.setattr(module, "QUIET_S", 10.0)


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def unacked_after_closing(at: At, query: Query, queue: str) -> int:
    """What goes back to the queue when the reader ends."""
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
def test_what_was_not_acked_comes_again_and_says_so(broker: At, kind: str) -> None:
    queue = broker.queue(kind)
    broker.publish(queue, numbers(30))
    query = Query(queue_source(broker, queue))
    query.next(ReadMaxRows(10))
    query.next(ReadMaxRows(10))
    query.reader.stop()
    again = queue_source(broker, queue)
    # Spark repeats the batch that it has no word of, and nothing of it is there.
    assert again.partitions(query.start, query.end) == []
    later = Query(again, query.end)
    found = later.next(ReadMaxRows(20))
    assert sorted(int(row["body"]) for row in found) == list(range(10, 30))
    assert all(row["redelivered"] for row in found[:10])
    assert later.next(ReadMaxRows(100)) == []
    assert unacked_after_closing(broker, later, queue) == 0


def test_a_batch_can_be_read_twice(ours: At) -> None:
    queue = ours.queue()
    ours.publish(queue, numbers(5))
    query = Query(queue_source(ours, queue))
    first = query.next(ReadMaxRows(5))
    partitions = query.reader.partitions(query.start, query.end)
    assert [row["body"] for part in partitions for batch in query.reader.read(part) for row in batch.to_pylist()] == [
        row["body"] for row in first
    ]
    query.reader.stop()


def test_available_now_ends_with_what_was_ready(broker: At) -> None:
    queue = broker.queue()
    broker.publish(queue, numbers(250))
    source = queue_source(broker, queue)
    source.prepareForTriggerAvailableNow()
    query = Query(source)
    assert len(query.next(ReadMaxRows(200))) == 200
    broker.publish(queue, numbers(10))
    assert [len(query.next(ReadMaxRows(200))) for _ in range(2)] == [50, 0]
    assert unacked_after_closing(broker, query, queue) == 10


def test_prefetch_follows_the_size_of_the_messages(ours: At) -> None:
    queue = ours.queue()
    ours.publish(queue, [b"x" * 10_000] * 600)
    options = options_of(ours, queue, maxOffsetsPerTrigger=5000, maxBytesPerTrigger=1_000_000)
    held = HeldQueue(options, 0)
    assert held.gather(5000, 5.0) == 99
    wait_until(lambda: held.prefetch <= 200)
    assert held.held_bytes < 4_500_000
    held.settle(99)
    assert held.gather(5000, 5.0) == 99
    held.close()


def test_small_messages_come_in_large_batches(ours: At) -> None:
    queue = ours.queue()
    ours.publish(queue, [b"x"] * 9000)
    query = Query(queue_source(ours, queue))
    assert len(query.next(ReadMaxRows(5000))) == 5000
    assert len(query.next(ReadMaxRows(4000))) == 4000
    query.reader.stop()


def test_a_batch_that_is_not_full_ends_when_nothing_more_comes(ours: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET_S", 0.5)
    queue = ours.queue()
    ours.publish(queue, numbers(5))
    query = Query(queue_source(ours, queue))
    assert query.bodies(ReadMaxRows(9)) == numbers(5)
    query.reader.stop()


def test_a_message_larger_than_the_limit_is_a_batch_of_its_own(ours: At) -> None:
    queue = ours.queue()
    ours.publish(queue, [b"x" * 5000] * 3)
    query = Query(queue_source(ours, queue, maxBytesPerTrigger=1000))
    assert [len(query.next(ReadMaxRows(10))) for _ in range(4)] == [1, 1, 1, 0]
    assert unacked_after_closing(ours, query, queue) == 0


def test_heartbeats_go_on_while_spark_works_on_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_S", 1)
    with EmbeddedBroker() as broker:
        at = At("ours", broker.url)
        queue = at.queue()
        at.publish(queue, numbers(2))
        query = Query(queue_source(at, queue))
        assert query.bodies(ReadMaxRows(1)) == [b"0"]
        # The broker closes a connection of which it has heard nothing for two intervals.
        time.sleep(2.6)
        assert query.bodies(ReadMaxRows(1)) == [b"1"]
        query.reader.stop()
        at.connection.close()


def test_a_connection_that_is_lost_ends_the_query_and_is_not_opened_again(ours: At) -> None:
    with EmbeddedBroker() as broker:
        at = At("ours", broker.url)
        queue = at.queue()
        at.publish(queue, numbers(3))
        query = Query(queue_source(at, queue))
        query.next(ReadMaxRows(1))
        broker.stop()
        with pytest.raises(BrokerError):
            query.next(ReadMaxRows(1))


def test_a_stream_is_refused_by_the_options_name(broker: At) -> None:
    with pytest.raises(OptionError, match=r"option 'queueType'.*queueType=stream"):
        Query(queue_source(broker, broker.stream())).next()


def test_a_missing_queue_and_a_foreign_checkpoint_are_told(ours: At) -> None:
    with pytest.raises(OptionError, match="option 'queue': NOT_FOUND"):
        Query(queue_source(ours, "nope")).next()
    with pytest.raises(OptionError, match="option 'queue': the checkpoint is of queue other"):
        Query(queue_source(ours, "nope"), {"other": 1}).next()


def test_an_idle_query_waits_for_the_next_message(ours: At) -> None:
    query = Query(queue_source(ours, ours.queue()))
    started = time.monotonic()
    assert query.next() == []
    assert time.monotonic() - started >= module.WAIT_S
    query.reader.stop()
