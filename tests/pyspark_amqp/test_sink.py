from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pika
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, MapType, StringType, StructType

from pyspark_amqp.errors import ConnectionLost, OptionError
from pyspark_amqp.format_options import read_sink
from pyspark_amqp.sink import BatchSink, Written, check_columns, checksum
from tests.pyspark_amqp.conftest import At

KINDS: dict[str, str | DataType] = {"int": "integer", "map<string,string>": MapType(StringType(), StringType())}


def schema(text: str) -> StructType:
    """Return the schema of "name type, name type"; Spark's own parser needs a session."""
    columns = StructType()
    for column in text.split(", "):
        name, kind = column.split(" ")
        columns.add(name, KINDS.get(kind, kind))
    return columns


@pytest.mark.parametrize(
    ("columns", "given", "option"),
    [
        ("routing_key string", {}, "schema"),
        ("body binary, value binary", {"routingKey": "k"}, "schema"),
        ("body int", {"routingKey": "k"}, "schema"),
        ("body binary", {}, "routingKey"),
        ("body binary, queue int", {"routingKey": "k"}, "ignoreUnknownColumns"),
        ("body binary, color string", {"routingKey": "k"}, "ignoreUnknownColumns"),
        ("body binary, priority string", {"routingKey": "k"}, "schema"),
        ("body binary", {"routingKey": "k", "messageId": "column"}, "messageId"),
    ],
)
def test_an_invalid_schema_is_refused(columns: str, given: dict[str, str], option: str) -> None:
    with pytest.raises(OptionError, match=f"option '{option}'"):
        check_columns(schema(columns), read_sink(given))


def test_unknown_columns_may_be_ignored() -> None:
    options = read_sink({"routingKey": "k", "ignoreUnknownColumns": "true"})
    assert check_columns(schema("color string, value string, timestamp timestamp"), options) == ["value", "timestamp"]


def test_options_take_precedence_over_columns() -> None:
    columns = schema("body binary, exchange string, routing_key string")
    assert check_columns(columns, read_sink({})) == ["body", "exchange", "routing_key"]
    assert check_columns(columns, read_sink({"routingKey": "k"})) == ["body", "exchange"]
    assert check_columns(columns, read_sink({"exchange": ""})) == ["body", "routing_key"]


def test_a_missing_broker_or_exchange_is_reported_before_a_job_runs(amqp_broker: At) -> None:
    columns = schema("body binary")
    with pytest.raises(OptionError, match="option 'exchange': NOT_FOUND - no exchange 'nope'"):
        BatchSink(read_sink({"url": amqp_broker.url, "routingKey": "k", "exchange": "nope"}), columns, False)
    with pytest.raises(OptionError, match="option 'mode': must be append"):
        BatchSink(read_sink({"url": amqp_broker.url, "routingKey": "k"}), columns, True)
    away = {"url": "amqp://127.0.0.1:1", "routingKey": "k", "reconnectTimeout": "0"}
    with pytest.raises(ConnectionLost, match=r"cannot connect to 127.0.0.1:1: .*\(reconnectTimeout of 0 s is over\)"):
        BatchSink(read_sink(away), columns, False)


def test_a_task_without_rows_does_not_connect(amqp_broker: At) -> None:
    sink = BatchSink(read_sink({"url": amqp_broker.url, "routingKey": "k"}), schema("body binary"), False)
    sink.options = read_sink({"url": "amqp://127.0.0.1:1", "routingKey": "k"})
    assert sink.write(iter(())) == Written(0)


def test_columns_become_properties(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    columns = schema("value string, timestamp timestamp, headers map<string,string>, priority int, message_id string")
    sink = BatchSink(read_sink({"url": amqp_broker.url, "routingKey": queue, "messageId": "column"}), columns, False)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["a", "b"]),
            pa.array([1_700_000_000_999_999, None], pa.timestamp("us", tz="UTC")),
            pa.array([[("h", "1")], []], pa.map_(pa.string(), pa.string())),
            pa.array([1, None], pa.int32()),
            pa.array(["id", None]),
        ],
        names=columns.fieldNames(),
    )
    assert sink.write(iter((batch,))) == Written(2)
    (first, _), (second, _) = amqp_broker.taken(queue)
    assert (first.timestamp, first.headers, first.priority, first.message_id) == (1_700_000_000, {"h": "1"}, 1, "id")
    assert (second.timestamp, second.headers, second.priority, second.message_id) == (None, None, None, None)


def test_timestamps_may_be_written_in_milliseconds(amqp_broker: At) -> None:
    given = {"url": amqp_broker.url, "routingKey": amqp_broker.queue(), "millisecondTimestamps": "true"}
    columns = schema("body string, timestamp timestamp")
    moment = pa.array([1_700_000_000_999_999], pa.timestamp("us", tz="UTC"))
    batch = pa.RecordBatch.from_arrays([pa.array(["a"]), moment], names=columns.fieldNames())
    BatchSink(read_sink({**given, "messageId": "none"}), columns, False).write(iter((batch,)))
    ((properties, _),) = amqp_broker.taken(given["routingKey"])
    assert properties.timestamp == 1_700_000_000_999


# With Spark


def test_rows_that_were_read_are_written_back(spark: SparkSession, broker: At) -> None:
    read, written = broker.queue(), broker.queue()
    death = [{"count": pika.compat.long(3), "time": datetime(2024, 5, 1, tzinfo=UTC), "reason": "expired"}]
    deep: object = 1
    for _ in range(14):
        deep = [deep]
    headers = {
        "x-delay": 5000,
        "x-death": death,
        "octets": b"\xff",
        "text": "ä",
        "price": Decimal("1.25"),
        "deep": deep,
    }
    broker.publish(read, [b"body"], headers=headers, timestamp=1_700_000_000, message_id="id", priority=1)
    broker.publish(read, [b"bare"], headers={})
    rows = spark.read.format("amqp").options(url=broker.url, queue=read, includeHeaders="typed")
    table = rows.load()
    assert table.selectExpr("cast(headers['x-delay'].value AS int) delay").collect() == [(5000,), (None,)]
    sink = table.write.format("amqp").options(url=broker.url, exchange="", routingKey=written)
    with pytest.raises(PySparkException, match="ErrorIfExists"):
        sink.save()
    sink.mode("append").save()
    (first, _), (second, body) = broker.taken(written)
    assert (first.headers, first.timestamp, first.message_id, first.priority) == (headers, 1_700_000_000, "id", 1)
    assert (second.headers, body) == (None, b"bare")
    table.write.format("amqp").options(url=broker.url).mode("append").save()
    assert broker.count(read) == 4


@pytest.mark.parametrize("broker", ["amqp_broker"], indirect=True)
def test_rows_are_read_and_written_where_timestamps_have_no_time_zone(spark: SparkSession, broker: At) -> None:
    read, written = broker.queue(), broker.queue()
    broker.publish(read, [b"body"], timestamp=1_700_000_000)
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        table = spark.read.format("amqp").options(url=broker.url, queue=read).load()
        assert dict(table.dtypes)["timestamp"] == "timestamp"
        utc = spark.read.format("amqp").options(url=broker.url, queue=read).schema("body binary, timestamp timestamp")
        assert dict(utc.load().dtypes)["timestamp"] == "timestamp_ntz"
        for rows in (table, utc.load()):
            sink = rows.write.format("amqp").options(url=broker.url, exchange="", routingKey=written)
            sink.mode("append").save()
    finally:
        spark.conf.unset("spark.sql.timestampType")
    assert [properties.timestamp for properties, _ in broker.taken(written)] == [1_700_000_000] * 2


def test_each_row_is_published_with_a_unique_id(spark: SparkSession, broker: At) -> None:
    queue = broker.queue()
    table = spark.range(0, 1000, 1, 2).selectExpr("cast(id as string) body", f"'{queue}' routing_key")
    table.write.format("amqp").option("url", broker.url).mode("append").save()
    found = broker.taken(queue)
    assert sorted(int(body) for _, body in found) == list(range(1000))
    assert len({properties.message_id for properties, _ in found}) == 1000


def test_rows_at_the_same_place_have_different_checksums() -> None:
    rows: list[dict[str, object]] = [
        {"body": b"1", "routing_key": "q", "priority": None},
        {"body": b"2", "routing_key": "q", "priority": None},
        {"body": b"1", "routing_key": "r", "priority": None},
        {"body": b"1", "routing_key": "q", "priority": 1},
        {"body": b"1q", "routing_key": "", "priority": None},
    ]
    assert len({checksum(row) for row in rows}) == len(rows)
    assert checksum(rows[0]) == checksum(dict(rows[0]))
    assert checksum({"body": "ä"}) == checksum({"body": "ä".encode()})


def test_writes_in_one_batch_have_ids_of_their_own_and_the_same_ones_when_it_is_repeated(
    spark: SparkSession, amqp_broker: At, tmp_path: Path
) -> None:
    source, target = amqp_broker.stream(), amqp_broker.queue()
    amqp_broker.publish(source, [b"a", b"b", b"c"])
    fails = True

    def write_twice(rows: DataFrame, _: int) -> None:
        for _ in range(2):
            writer = rows.select("body").write.format("amqp").options(url=amqp_broker.url, routingKey=target)
            writer.mode("append").save()
        if fails:
            raise ValueError("after both writes")

    def run(partitions: int) -> None:
        stream = spark.readStream.format("amqp").options(url=amqp_broker.url, queue=source, queueType="stream")
        rows = stream.options(startingOffsets="earliest", minPartitions=partitions).load()
        query = rows.writeStream.foreachBatch(write_twice).option("checkpointLocation", str(tmp_path))
        query.trigger(availableNow=True).start().awaitTermination(60)

    with pytest.raises(PySparkException, match="after both writes"):
        run(1)
    first = {properties.message_id for properties, _ in amqp_broker.taken(target)}
    assert len(first) == 6
    with pytest.raises(PySparkException, match="after both writes"):
        run(1)
    assert {properties.message_id for properties, _ in amqp_broker.taken(target)} == first
    # Rows in other partitions have other ids, and none has the id of another row.
    fails = False
    run(3)
    ids = {properties.message_id for properties, _ in amqp_broker.taken(target)}
    assert len(ids) == 6


def test_a_task_fails_with_the_brokers_error(spark: SparkSession, amqp_broker: At) -> None:
    queue = amqp_broker.queue(arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    table = spark.range(10).selectExpr("cast(id as string) body", f"'{queue}' routing_key")
    with pytest.raises(PySparkException, match="the broker nacked message"):
        table.write.format("amqp").option("url", amqp_broker.url).mode("append").save()


def test_a_repeated_batch_has_the_same_ids(spark: SparkSession, amqp_broker: At, tmp_path: Path) -> None:
    source, refusing = (
        amqp_broker.stream(),
        amqp_broker.queue(arguments={"x-max-length": 30, "x-overflow": "reject-publish"}),
    )
    amqp_broker.publish(source, [b"%d" % number for number in range(50)])

    def run() -> None:
        stream: DataFrame = (
            spark.readStream.format("amqp")
            .options(url=amqp_broker.url, queue=source, queueType="stream", startingOffsets="earliest")
            .load()
        )
        writing = stream.select("body").writeStream.format("amqp").options(url=amqp_broker.url, routingKey=refusing)
        query = writing.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination(60)

    with pytest.raises(PySparkException, match="nacked"):
        run()
    first = {properties.message_id: body for properties, body in amqp_broker.taken(refusing)}
    assert 0 < len(first) <= 30
    amqp_broker.channel.queue_delete(refusing)
    amqp_broker.channel.queue_declare(refusing, durable=True)
    run()
    second = {properties.message_id: body for properties, body in amqp_broker.taken(refusing)}
    assert sorted(int(body) for body in second.values()) == list(range(50))
    assert first.items() <= second.items()
