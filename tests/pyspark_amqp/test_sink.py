from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import MapType, StringType, StructType

from pyspark_amqp.errors import OptionError
from pyspark_amqp.options import read_sink
from pyspark_amqp.sink import BatchSink, Written, check_columns
from tests.pyspark_amqp.conftest import At

KINDS = {"int": "integer", "map<string,string>": MapType(StringType(), StringType())}


def schema(text: str) -> StructType:
    """Of "name type, name type"; Spark's own parser of this needs a session."""
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
        ("body binary, routing_key string", {"routingKey": "k"}, "routingKey"),
        ("body binary, exchange string", {"routingKey": "k", "exchange": "e"}, "exchange"),
        ("body binary, color string", {"routingKey": "k"}, "ignoreUnknownColumns"),
        ("body binary, priority string", {"routingKey": "k"}, "schema"),
        ("body binary", {"routingKey": "k", "messageId": "column"}, "messageId"),
    ],
)
def test_a_schema_that_cannot_be_published_is_refused(columns: str, given: dict[str, str], option: str) -> None:
    with pytest.raises(OptionError, match=f"option '{option}'"):
        check_columns(schema(columns), read_sink(given))


def test_unknown_columns_may_be_left_out() -> None:
    options = read_sink({"routingKey": "k", "ignoreUnknownColumns": "true"})
    assert check_columns(schema("color string, value string, timestamp timestamp"), options) == ["value", "timestamp"]


def test_what_is_not_there_is_told_before_a_job_runs(ours: At) -> None:
    columns = schema("body binary")
    with pytest.raises(OptionError, match="option 'exchange': NOT_FOUND - no exchange 'nope'"):
        BatchSink(read_sink({"url": ours.url, "routingKey": "k", "exchange": "nope"}), columns, False)
    with pytest.raises(OptionError, match="option 'mode': must be append"):
        BatchSink(read_sink({"url": ours.url, "routingKey": "k"}), columns, True)
    with pytest.raises(OptionError, match="option 'url': cannot connect"):
        BatchSink(read_sink({"url": "amqp://127.0.0.1:1", "routingKey": "k"}), columns, False)


def test_a_task_without_rows_opens_nothing(ours: At) -> None:
    sink = BatchSink(read_sink({"url": ours.url, "routingKey": "k"}), schema("body binary"), False)
    sink.options = read_sink({"url": "amqp://127.0.0.1:1", "routingKey": "k"})
    assert sink.write(iter(())) == Written(0)


def test_columns_become_properties(ours: At) -> None:
    queue = ours.queue()
    columns = schema("value string, timestamp timestamp, headers map<string,string>, priority int, message_id string")
    sink = BatchSink(read_sink({"url": ours.url, "routingKey": queue, "messageId": "column"}), columns, False)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["a", "b"]),
            pa.array([1_700_000_000_999_999, None], pa.timestamp("us", tz="UTC")),
            pa.array([[("h", "1")], None], pa.map_(pa.string(), pa.string())),
            pa.array([1, None], pa.int32()),
            pa.array(["id", None]),
        ],
        names=columns.fieldNames(),
    )
    assert sink.write(iter((batch,))) == Written(2)
    (first, _), (second, _) = ours.taken(queue)
    assert (first.timestamp, first.headers, first.priority, first.message_id) == (1_700_000_000, {"h": "1"}, 1, "id")
    assert (second.timestamp, second.headers, second.priority, second.message_id) == (None, None, None, None)


# With Spark


def test_a_table_is_published_row_by_row_with_ids_of_their_own(spark: SparkSession, broker: At) -> None:
    queue = broker.queue()
    table = spark.range(0, 1000, 1, 2).selectExpr("cast(id as string) body", f"'{queue}' routing_key")
    table.write.format("amqp").option("url", broker.url).mode("append").save()
    found = broker.taken(queue)
    assert sorted(int(body) for _, body in found) == list(range(1000))
    assert len({properties.message_id for properties, _ in found}) == 1000


def test_a_task_fails_with_what_the_broker_says(spark: SparkSession, ours: At) -> None:
    queue = ours.queue(**{"x-max-length": 3, "x-overflow": "reject-publish"})
    table = spark.range(10).selectExpr("cast(id as string) body", f"'{queue}' routing_key")
    with pytest.raises(PySparkException, match="the broker nacked message"):
        table.write.format("amqp").option("url", ours.url).mode("append").save()


def test_a_batch_that_is_written_again_has_the_same_ids(spark: SparkSession, ours: At, tmp_path: Path) -> None:
    source, refusing = ours.stream(), ours.queue(**{"x-max-length": 30, "x-overflow": "reject-publish"})
    ours.publish(source, [b"%d" % number for number in range(50)])

    def run() -> None:
        stream: DataFrame = (
            spark.readStream.format("amqp")
            .options(url=ours.url, queue=source, queueType="stream", startingOffsets="earliest")
            .load()
        )
        writing = stream.select("body").writeStream.format("amqp").options(url=ours.url, routingKey=refusing)
        query = writing.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination(60)

    with pytest.raises(PySparkException, match="nacked"):
        run()
    first = {properties.message_id: body for properties, body in ours.taken(refusing)}
    assert 0 < len(first) <= 30
    ours.channel.queue_delete(refusing)
    ours.channel.queue_declare(refusing, durable=True)
    run()
    second = {properties.message_id: body for properties, body in ours.taken(refusing)}
    assert sorted(int(body) for body in second.values()) == list(range(50))
    assert first.items() <= second.items()
