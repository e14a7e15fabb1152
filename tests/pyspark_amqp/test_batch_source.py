from __future__ import annotations

import time

import pytest

from compat.waiting import wait_until
from pyspark_amqp.batch_source import QueueBrowse, StreamBatch
from pyspark_amqp.errors import BrokerError, OptionError
from pyspark_amqp.format_options import SourceOptions, read_source
from tests.pyspark_amqp.conftest import At
from tests.pyspark_amqp.reading import SCHEMA, rows


def options_of(at: At, queue: str, **given: object) -> SourceOptions:
    return read_source({"url": at.url, "queue": queue, **{name: str(value) for name, value in given.items()}}, False)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_a_stream_is_read_from_its_beginning_to_its_end(broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(100))
    batch = StreamBatch(options_of(broker, queue, queueType="stream", minPartitions=3), SCHEMA)
    partitions = list(batch.partitions())
    assert len(partitions) == 3
    broker.publish(queue, [b"later"])
    assert [row["body"] for row in rows(batch, partitions)] == numbers(100)


def test_a_stream_is_read_between_two_offsets(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(100))
    given = {"startingOffsets": f'{{"{queue}": 10}}', "endingOffsets": f'{{"{queue}": 20}}'}
    batch = StreamBatch(options_of(amqp_broker, queue, queueType="stream", **given), SCHEMA)
    assert [row["offset"] for row in rows(batch, list(batch.partitions()))] == list(range(10, 20))


def test_each_stream_may_begin_and_end_elsewhere(broker: At) -> None:
    first, second = (broker.stream() for _ in range(2))
    for queue in (first, second):
        broker.publish(queue, numbers(10))
    given = {
        "startingOffsets": f'{{"{first}": -2, "{second}": 6}}',
        "endingOffsets": f'{{"{first}": 4, "{second}": -1}}',
    }
    batch = StreamBatch(options_of(broker, f"{first},{second}", queueType="stream", **given), SCHEMA)
    assert [row["offset"] for row in rows(batch, list(batch.partitions()))] == [*range(4), *range(6, 10)]


def test_a_batch_ends_at_a_time(broker: At) -> None:
    first, second = (broker.stream() for _ in range(2))
    for queue in (first, second):
        broker.publish(queue, numbers(5))
    later_ms = int(time.time() + 3600) * 1000
    queues = f"{first},{second}"
    for times, count in ((later_ms, 10), (0, 0), (f'{{"{first}": 0, "{second}": {later_ms}}}', 5)):
        batch = StreamBatch(options_of(broker, queues, queueType="stream", endingTimestamp=times), SCHEMA)
        assert len(rows(batch, list(batch.partitions()))) == count


def test_an_empty_stream_has_no_rows(amqp_broker: At) -> None:
    batch = StreamBatch(options_of(amqp_broker, amqp_broker.stream(), queueType="stream"), SCHEMA)
    assert rows(batch, list(batch.partitions())) == []


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_offsets_after_the_end_are_an_error(amqp_broker: At, option: str) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(3))
    batch = StreamBatch(options_of(amqp_broker, queue, queueType="stream", **{option: f'{{"{queue}": 9}}'}), SCHEMA)
    with pytest.raises(OptionError, match=f"option '{option}': queue '{queue}' ends at offset 3, before 9"):
        batch.partitions()


def test_an_end_before_the_start_is_an_error(amqp_broker: At) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(30))
    given = {"startingOffsets": f'{{"{queue}": 20}}', "endingOffsets": f'{{"{queue}": 10}}'}
    batch = StreamBatch(options_of(amqp_broker, queue, queueType="stream", **given), SCHEMA)
    with pytest.raises(OptionError, match=f"option 'endingOffsets': 10 of queue '{queue}' is before the start, 20"):
        batch.partitions()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_peeking_leaves_the_messages_in_the_queue(broker: At, kind: str) -> None:
    queue = broker.queue(kind)
    broker.publish(queue, numbers(1500))
    browse = QueueBrowse(options_of(broker, queue), SCHEMA)
    partitions = list(browse.partitions())
    assert [row["body"] for row in rows(browse, partitions)] == numbers(1500)
    again = rows(browse, partitions)
    assert sorted(int(row["body"]) for row in again) == list(range(1500))
    assert all(row["redelivered"] for row in again)


def test_each_peek_at_a_quorum_queue_counts_towards_its_delivery_limit(broker: At) -> None:
    queue = broker.queue("quorum", {"x-delivery-limit": 2})
    broker.publish(queue, numbers(3))
    browse = QueueBrowse(options_of(broker, queue), SCHEMA)
    # RabbitMQ requeues after it has answered the close.
    for _ in range(3):
        wait_until(lambda: broker.count(queue) == 3)
        assert len(rows(browse, list(browse.partitions()))) == 3
    wait_until(lambda: broker.count(queue) == 0)
    assert rows(browse, list(browse.partitions())) == []


def test_a_peek_beside_a_single_active_consumer_is_an_error(broker: At) -> None:
    queue = broker.queue("quorum", {"x-single-active-consumer": True})
    broker.publish(queue, numbers(20))
    holder = broker.connection.channel()
    holder.basic_qos(prefetch_count=5)
    holder.basic_consume(queue, lambda *_: None)
    wait_until(lambda: broker.count(queue) == 15)
    browse = QueueBrowse(options_of(broker, queue, pollTimeoutMs=200), SCHEMA)
    with pytest.raises(BrokerError, match=r"has 15 ready messages .* \(200 ms\): .* single active consumer"):
        rows(browse, list(browse.partitions()))
    holder.close()


def test_a_peek_finds_fewer_messages_if_others_take_some(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(20))
    browse = QueueBrowse(options_of(amqp_broker, queue, pollTimeoutMs=200), SCHEMA)
    partitions = list(browse.partitions())
    amqp_broker.channel.basic_get(queue, auto_ack=True)
    assert [row["body"] for row in rows(browse, partitions)] == numbers(20)[1:]


def test_peeking_at_an_empty_queue_has_no_rows(amqp_broker: At) -> None:
    browse = QueueBrowse(options_of(amqp_broker, amqp_broker.queue()), SCHEMA)
    assert rows(browse, list(browse.partitions())) == []


def test_a_stream_or_a_missing_queue_is_an_error(amqp_broker: At) -> None:
    with pytest.raises(OptionError, match="option 'queueType'"):
        QueueBrowse(options_of(amqp_broker, amqp_broker.stream()), SCHEMA).partitions()
    with pytest.raises(OptionError, match="option 'queue': NOT_FOUND"):
        QueueBrowse(options_of(amqp_broker, "nope"), SCHEMA).partitions()


def test_more_messages_than_can_be_unacked_are_an_error(amqp_broker: At, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(11))
    monkeypatch.setattr("pyspark_amqp.batch_source.PREFETCH_MAX", 10)
    with pytest.raises(OptionError, match=r"has 11\. Drain it with readStream"):
        QueueBrowse(options_of(amqp_broker, queue), SCHEMA).partitions()
