from __future__ import annotations

import json
import threading
import time

import pytest
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from pyspark_amqp.errors import DataLoss, OptionError
from pyspark_amqp.stream_source import WAIT_S, FinalTails, StreamEnds
from tests.pyspark_amqp.conftest import At
from tests.pyspark_amqp.reading import ALL, Query, rows, stream_source


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def redeclare(at: At, queue: str) -> None:
    at.channel.queue_delete(queue)
    at.channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "stream"})


def test_batches_have_no_gaps(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(500))
    query = Query(stream_source(broker, queue, startingOffsets="earliest", minPartitions=3))
    assert query.bodies() == numbers(500)
    broker.publish(queue, numbers(200, 500))
    assert query.bodies() == numbers(200, 500)
    assert query.bodies() == []
    assert query.end == {queue: 700}


def test_a_batch_has_no_more_than_its_limit(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(250))
    source = stream_source(amqp_broker, queue, startingOffsets="earliest", maxOffsetsPerTrigger=100)
    assert source.getDefaultReadLimit() == ReadMaxRows(100)
    query = Query(source)
    assert [len(query.bodies(ReadMaxRows(100))) for _ in range(3)] == [100, 100, 50]
    assert stream_source(amqp_broker, queue).getDefaultReadLimit() == ALL


def test_several_queues_are_one_table(amqp_broker: At) -> None:
    first, second = amqp_broker.stream(), amqp_broker.stream()
    amqp_broker.publish(first, numbers(10))
    amqp_broker.publish(second, numbers(20, 100))
    query = Query(stream_source(amqp_broker, f"{first},{second}", startingOffsets="earliest"))
    assert sorted(query.bodies()) == sorted(numbers(10) + numbers(20, 100))
    assert query.end == {first: 10, second: 20}


def test_one_stream_starts_at_its_beginning_and_another_at_its_end(amqp_broker: At) -> None:
    first, second = (amqp_broker.stream() for _ in range(2))
    for queue in (first, second):
        amqp_broker.publish(queue, [b"old"] * 3)
    given = f'{{"{first}": -2, "{second}": -1}}'
    query = Query(stream_source(amqp_broker, f"{first},{second}", startingOffsets=given))
    # It stores the offset in the checkpoint, since the end of the second stream changes.
    assert query.next(ALL) == []
    amqp_broker.publish(second, [b"new"])
    assert sorted(row["body"] for row in query.next(ALL)) == [b"new", b"old", b"old", b"old"]
    query.reader.stop()


def test_each_stream_may_start_at_a_time_of_its_own(amqp_broker: At) -> None:
    first, second = (amqp_broker.stream() for _ in range(2))
    for queue in (first, second):
        amqp_broker.publish(queue, [b"x"] * 3)
    given = f'{{"{first}": 0, "{second}": {int(time.time() + 3600) * 1000}}}'
    query = Query(stream_source(amqp_broker, f"{first},{second}", startingTimestamp=given))
    assert query.start == {first: 0, second: 3}
    query.reader.stop()


def test_many_streams_are_probed_at_once(amqp_broker: At) -> None:
    queues = [amqp_broker.stream() for _ in range(20)]
    for number, queue in enumerate(queues):
        amqp_broker.publish(queue, [b"x"] * (number + 1))
    query = Query(stream_source(amqp_broker, ",".join(queues), startingOffsets="earliest"))
    assert len(query.next(ALL)) == 210
    assert query.end == {queue: number + 1 for number, queue in enumerate(queues)}
    amqp_broker.publish(queues[7], [b"y"])
    assert [row["body"] for row in query.next(ALL)] == [b"y"]
    query.reader.stop()


def test_latest_starts_with_an_empty_batch_that_stores_the_offset(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(5))
    source = stream_source(broker, queue)
    query = Query(source)
    broker.publish(queue, numbers(3, 5))
    assert (query.bodies(), query.end) == ([], {queue: 5})
    assert query.bodies() == numbers(3, 5)
    # Repeat the first batch after a restart, when "latest" has changed.
    again = stream_source(broker, queue)
    assert again.initialOffset() == {queue: 8}
    assert rows(again, list(again.partitions({queue: 8}, {queue: 5}))) == []
    assert Query(again, {queue: 5}).bodies() == numbers(3, 5)


def test_a_repeated_batch_has_the_same_rows(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(100))
    source = stream_source(broker, queue, startingOffsets="earliest", minPartitions=2)
    query = Query(source)
    first = query.next()
    broker.publish(queue, numbers(50, 100))
    fresh = stream_source(broker, queue, startingOffsets="earliest", minPartitions=2)
    assert rows(fresh, list(fresh.partitions(query.start, query.end))) == first


def test_offsets_survive_a_round_trip_through_json(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(3))
    query = Query(stream_source(amqp_broker, queue, startingOffsets=json.dumps({queue: 1})))
    assert query.bodies() == numbers(2, 1)
    assert json.loads(json.dumps(query.end)) == {queue: 3}


def test_available_now_ends_at_the_end_of_the_stream(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(30))
    source = stream_source(broker, queue, startingOffsets="earliest")
    source.prepareForTriggerAvailableNow()
    query = Query(source)
    assert [len(query.bodies(ReadMaxRows(20))) for _ in range(2)] == [20, 10]
    broker.publish(queue, numbers(5, 30))
    assert query.bodies(ReadMaxRows(20)) == []


def test_available_now_has_its_first_batches_before_the_end_is_certain(
    amqp_broker: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    find = StreamEnds.final_tails
    monkeypatch.setattr(StreamEnds, "final_tails", lambda ends: find(ends) if gate.wait(60) else {})
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(30))
    tails = FinalTails(stream_source(amqp_broker, queue, maxOffsetsPerTrigger=10).options)
    assert [tails.after({queue: start}, 10) for start in (0, 10, 20)] == [{queue: 30}] * 3
    assert not tails.is_certain
    gate.set()
    assert tails.after({queue: 25}, 10) == {queue: 30}
    assert tails.is_certain


def test_available_now_of_a_missing_queue_is_an_error(broker: At) -> None:
    limits: list[dict[str, object]] = [{}, {"maxOffsetsPerTrigger": 10}]
    for limit in limits:
        source = stream_source(broker, "nope", startingOffsets='{"nope": 0}', **limit)
        source.prepareForTriggerAvailableNow()
        with pytest.raises(OptionError, match="option 'queue': NOT_FOUND"):
            source.latestOffset({"nope": 0}, ReadMaxRows(10))


def test_an_idle_query_waits(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    source = stream_source(amqp_broker, queue, startingOffsets="earliest")
    start = source.initialOffset()
    source.latestOffset(start, ALL)
    started = time.monotonic()
    assert source.latestOffset(start, ALL) == start
    assert time.monotonic() - started >= WAIT_S


def test_a_redeclared_stream_is_an_error_or_read_from_its_beginning(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(50))
    redeclare(broker, queue)
    broker.publish(queue, numbers(7))
    with pytest.raises(DataLoss, match="ends before offset 50"):
        Query(stream_source(broker, queue), {queue: 50}).next()
    query = Query(stream_source(broker, queue, failOnDataLoss=False), {queue: 50})
    assert query.bodies() == []
    assert query.bodies() == numbers(7)


def test_a_missing_queue_is_reported_before_the_first_batch(broker: At) -> None:
    with pytest.raises(OptionError, match="option 'queue': NOT_FOUND"):
        stream_source(broker, "nope").initialOffset()


def test_the_end_of_the_stream_is_reported(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(9))
    source = stream_source(amqp_broker, queue, startingOffsets="earliest")
    assert source.reportLatestOffset() is None
    Query(source).next(ReadMaxRows(2))
    assert source.reportLatestOffset() == {queue: 9}
    source.stop()


def test_a_stream_that_is_redeclared_while_it_is_read_is_noticed(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(50))
    query = Query(stream_source(broker, queue, startingOffsets="earliest"))
    assert query.bodies() == numbers(50)
    redeclare(broker, queue)
    broker.publish(queue, numbers(7))

    def read_on() -> None:
        # RabbitMQ's count of messages is some seconds old.
        for _ in range(60):
            assert query.bodies() == []

    with pytest.raises(DataLoss, match="ends before offset 50"):
        read_on()


def test_a_query_that_starts_at_a_published_end_does_not_take_the_stream_for_another(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(5))
    source = stream_source(amqp_broker, queue)
    source.prepareForTriggerAvailableNow()
    assert source.latestOffset({queue: 0}, ALL) == {queue: 5}
    # These are published before Spark asks for the start.
    amqp_broker.publish(queue, numbers(3, 5))
    query = Query(source)
    assert query.start == {queue: 8}
    assert [query.bodies(), query.bodies()] == [[], []]
    assert query.end == {queue: 8}


def test_a_queue_that_is_left_out_for_a_time_goes_on_where_it_was(amqp_broker: At) -> None:
    first, second = amqp_broker.stream(), amqp_broker.stream()
    for queue in (first, second):
        amqp_broker.publish(queue, numbers(10))
    both = f"{first},{second}"
    query = Query(stream_source(amqp_broker, both, startingOffsets="earliest"))
    assert len(query.bodies()) == 20
    amqp_broker.publish(first, numbers(5, 10))
    amqp_broker.publish(second, numbers(5, 10))
    query = Query(stream_source(amqp_broker, first, startingOffsets="earliest"), query.end)
    assert query.bodies() == numbers(5, 10)
    assert query.end == {first: 15, second: 10}
    query = Query(stream_source(amqp_broker, both, startingOffsets="earliest"), query.end)
    assert query.bodies() == numbers(5, 10)
    assert query.end == {first: 15, second: 15}


@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(5)])
def test_a_checkpoint_of_other_queues_alone_is_an_error(amqp_broker: At, limit: ReadLimit) -> None:
    queue = amqp_broker.stream()
    query = Query(stream_source(amqp_broker, queue, startingOffsets="earliest"), {"orders": 7, "sales": 3})
    with pytest.raises(OptionError, match="option 'queue': the checkpoint is of queue orders, sales"):
        query.next(limit)


@pytest.mark.parametrize(("starting", "expected"), [("earliest", numbers(7)), ("latest", [])])
def test_a_queue_that_the_checkpoint_lacks_starts_as_in_a_new_query(
    amqp_broker: At, starting: str, expected: list[bytes]
) -> None:
    former, new = amqp_broker.stream(), amqp_broker.stream()
    amqp_broker.publish(former, numbers(5, 100))
    amqp_broker.publish(new, numbers(7))
    source = stream_source(amqp_broker, f"{former},{new}", startingOffsets=starting, maxOffsetsPerTrigger=20)
    query = Query(source, {former: 3})
    limit = ReadMaxRows(20)
    assert query.bodies(limit) == numbers(2, 103)
    assert query.bodies(limit) == expected
    amqp_broker.publish(new, numbers(2, 7))
    assert query.bodies(limit) == numbers(2, 7)


@pytest.mark.parametrize("fails", [True, False])
def test_a_start_after_the_end_of_the_stream_is_an_error(amqp_broker: At, fails: bool) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(3))
    source = stream_source(amqp_broker, queue, startingOffsets=json.dumps({queue: 9}), failOnDataLoss=fails)
    with pytest.raises(OptionError, match=f"option 'startingOffsets': queue '{queue}' ends at offset 3, before 9"):
        source.initialOffset()


@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(2)])
def test_available_now_reports_the_end_of_the_stream(amqp_broker: At, limit: ReadLimit) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(9))
    source = stream_source(amqp_broker, queue, startingOffsets="earliest", maxOffsetsPerTrigger=2)
    source.prepareForTriggerAvailableNow()
    Query(source).next(limit)
    assert source.reportLatestOffset() == {queue: 9}
