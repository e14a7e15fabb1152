"""The format in a real Spark: reading, and recovery from crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

from compat.waiting import wait_until
from pyspark_amqp import DefaultSource
from tests.pyspark_amqp.conftest import At

ROOT = Path(__file__).parents[2]


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def read_stream(spark: SparkSession, at: At, queue: str, **given: str | int) -> DataFrame:
    return spark.readStream.format("amqp").options(url=at.url, queue=queue, **given).load()


class Lake:
    """A Parquet folder that a query writes to, and its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.path = str(folder / "lake")
        self.checkpoint = folder / "checkpoint"

    def run(self, rows: DataFrame) -> StreamingQuery:
        """Write all available messages. Raise StreamingQueryException."""
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start(self.path)
        assert query.awaitTermination(60)
        return query

    def rows(self) -> list[tuple[int, bool]]:
        """Return body and redelivered of each row."""
        found = self.spark.read.parquet(self.path).select("body", "redelivered").collect()
        return sorted((int(row.body), row.redelivered) for row in found)

    def bodies(self) -> list[int]:
        return [body for body, _ in self.rows()]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)


def test_the_format_has_its_name() -> None:
    assert DefaultSource.name() == "amqp"


@pytest.mark.parametrize("lacking", ["pyspark", "pyarrow", "pika"])
def test_a_missing_package_is_reported_with_the_remedy(lacking: str) -> None:
    program = f"import sys; sys.modules[{lacking!r}] = None; import pyspark_amqp"
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert f"needs {lacking}" in told.stderr
    assert 'pip install "amqp-minibroker[spark]"' in told.stderr.splitlines()[-1]


def test_a_batch_is_a_table(spark: SparkSession, broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(100), message_id="m", timestamp=1_700_000_000, headers={"a": "b"})
    reader = spark.read.format("amqp").options(url=broker.url, queue=queue, queueType="stream", includeHeaders=True)
    rows = {row.offset: row for row in reader.load().collect()}
    assert rows.keys() == set(range(100))
    row = rows[7]
    assert (row.body, row.queue, row.routing_key, row.message_id, row.error) == (b"7", queue, queue, "m", None)
    assert (row.timestamp.timestamp(), row.headers) == (1_700_000_000, {"a": "b"})


def test_a_batch_has_the_columns_of_the_schema_that_was_given(spark: SparkSession, broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(100))
    reader = spark.read.format("amqp").options(url=broker.url, queue=queue, queueType="stream")
    table = reader.schema("offset bigint, body binary").load()
    assert table.first() == (0, b"0")
    assert table.where("offset = 7").first() == (7, b"7")
    assert table.count() == 100


def test_a_stream_goes_to_parquet_in_batches_and_continues_after_a_restart(
    spark: SparkSession, broker: At, lake: Lake
) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(100))
    given: dict[str, str | int] = {
        "queueType": "stream",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 40,
        "minPartitions": 2,
    }
    query = lake.run(read_stream(spark, broker, queue, **given))
    assert [progress["numInputRows"] for progress in query.recentProgress] == [40, 40, 20]
    broker.publish(queue, numbers(5, 100))
    lake.run(read_stream(spark, broker, queue, **given))
    assert lake.bodies() == list(range(105))


@pytest.mark.parametrize("death", ["error", "kill"])
def test_a_failed_batch_neither_loses_nor_duplicates_a_row(
    spark: SparkSession, amqp_broker: At, lake: Lake, tmp_path: Path, death: str
) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(90))
    once = tmp_path / "once"

    @udf("binary")
    def die_once(body: bytes) -> bytes:
        if body == b"50" and not once.exists():
            once.touch()
            if death == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("died once")
        return bytes(body)

    def rows() -> DataFrame:
        given: dict[str, str | int] = {
            "queueType": "stream",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": 30,
        }
        stream = read_stream(spark, amqp_broker, queue, **given)
        return stream.withColumn("body", die_once("body"))

    with pytest.raises(PySparkException):
        lake.run(rows())
    amqp_broker.publish(queue, numbers(10, 90))
    lake.run(rows())
    assert lake.bodies() == list(range(100))


def test_a_queue_is_not_read_by_a_trigger_that_never_acks(spark: SparkSession, amqp_broker: At, lake: Lake) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(3))
    writer = read_stream(spark, amqp_broker, queue).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(lake.checkpoint)).trigger(once=True).start()
    with pytest.raises(PySparkException, match="option 'trigger': once=True"):
        query.awaitTermination(60)
    assert amqp_broker.count(queue) == 3


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_is_empty_after_its_rows_are_written(spark: SparkSession, broker: At, lake: Lake, kind: str) -> None:
    queue = broker.queue(kind)
    broker.publish(queue, numbers(100))
    lake.run(read_stream(spark, broker, queue, maxOffsetsPerTrigger=40))
    assert lake.bodies() == list(range(100))
    assert broker.count(queue) == 0


def test_a_batch_of_a_queue_is_acked_although_no_trigger_follows(spark: SparkSession, broker: At, lake: Lake) -> None:
    queue = broker.queue()
    broker.publish(queue, numbers(100))
    for first in (0, 100):
        rows = read_stream(spark, broker, queue, checkpointLocation=str(lake.checkpoint), idleTimeout="1s")
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(lake.checkpoint))
        query = writer.trigger(processingTime="1 hour").start(lake.path)
        # Unacked messages would return when the query is stopped.
        wait_until((lake.checkpoint / f"commits/{first // 100}").exists)
        query.stop()
        wait_until(lambda: broker.channel.queue_declare(queue, passive=True).method.consumer_count == 0)
        assert broker.count(queue) == 0
        assert lake.bodies() == list(range(first + 100))
        broker.publish(queue, numbers(100, first + 100))


def test_a_query_with_the_checkpoint_of_another_one_ends_before_its_first_batch(
    spark: SparkSession, amqp_broker: At, lake: Lake, tmp_path: Path
) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(3))
    rows = read_stream(spark, amqp_broker, queue, checkpointLocation=str(tmp_path / "other"))
    with pytest.raises(PySparkException, match=r"option 'checkpointLocation': .*other has no batch of"):
        lake.run(rows)
    wait_until(lambda: amqp_broker.count(queue) == 3)


def test_a_failed_batch_of_a_queue_is_redelivered(
    spark: SparkSession, amqp_broker: At, lake: Lake, tmp_path: Path
) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(90))
    once = tmp_path / "once"

    @udf("binary")
    def die_once(body: bytes) -> bytes:
        if body == b"50" and not once.exists():
            once.touch()
            raise ValueError("died once")
        return bytes(body)

    def rows() -> DataFrame:
        return read_stream(spark, amqp_broker, queue, maxOffsetsPerTrigger=30).withColumn("body", die_once("body"))

    with pytest.raises(PySparkException, match="died once"):
        lake.run(rows())
    lake.run(rows())
    found = Counter(lake.bodies())
    assert set(found) == set(range(90))
    again = Counter(body for body, redelivered in lake.rows() if redelivered)
    assert all(again[body] for body, count in found.items() if count > 1)
    assert again[50]
    assert amqp_broker.count(queue) == 0


def test_a_poisoned_message_is_a_row_with_a_reason(spark: SparkSession, amqp_broker: At, lake: Lake) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, [b"0"])
    amqp_broker.publish(queue, [b"1"], message_id=b"\xff")
    amqp_broker.publish(queue, [b"2"], timestamp=1 << 60)
    lake.run(read_stream(spark, amqp_broker, queue, queueType="stream", startingOffsets="earliest"))
    found = spark.read.parquet(lake.path).orderBy("offset").collect()
    assert [row.error for row in found] == [
        None,
        "message_id is not UTF-8",
        f"timestamp {1 << 60} is after the year 9999",
    ]
    assert [row.body for row in found] == [b"0", b"1", b"2"]


ARCHIVE = """
    import sys
    from pyspark_amqp.java import ensure_java
    from pyspark.sql import SparkSession
    from tests.spark_session import CONF, MASTER
    ensure_java(MASTER)
    url, queue, lake, checkpoint = sys.argv[1:]
    builder = SparkSession.builder.master(MASTER)
    for name, value in CONF.items():
        builder = builder.config(name, value)
    rows = (builder.getOrCreate().readStream.format("amqp")
        .options(url=url, queue=queue, queueType="stream", startingOffsets="earliest", maxOffsetsPerTrigger=50)
        .load())
    rows.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(lake).awaitTermination()
"""


def test_a_spark_killed_between_batches_resumes(amqp_broker: At, lake: Lake) -> None:
    queue = amqp_broker.stream()
    amqp_broker.publish(queue, numbers(5000))
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ARCHIVE), amqp_broker.url, queue, lake.path, str(lake.checkpoint)],
        cwd=ROOT,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 600
        while not (lake.checkpoint / "commits" / "1").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        # The JVM, its parent and its Python workers.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    given = {"queueType": "stream", "startingOffsets": "earliest"}
    before = len(list((lake.checkpoint / "commits").glob("[0-9]*")))
    assert before * 50 < 5000
    lake.run(read_stream(lake.spark, amqp_broker, queue, **given))
    assert lake.bodies() == list(range(5000))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"quue": "q"}, "option 'quue': unknown"),
        ({"queue": "nope"}, "option 'queue': NOT_FOUND - no queue 'nope'"),
        ({}, "option 'queue': is needed"),
        ({"queue": "q", "prefetch": "many"}, "option 'prefetch': must be a whole number"),
        (
            {"queue": "q", "url": "amqp://127.0.0.1:1", "reconnectTimeout": "0"},
            r"cannot connect to 127.0.0.1:1: .*refused \(reconnectTimeout of 0 s is over\)",
        ),
    ],
)
def test_invalid_options_are_reported_before_a_job_runs(
    spark: SparkSession, amqp_broker: At, given: dict[str, str], named: str
) -> None:
    with pytest.raises(PySparkException, match=named):
        spark.read.format("amqp").options(**{"url": amqp_broker.url, **given}).load().count()


def test_invalid_options_of_a_streaming_query_are_reported(
    spark: SparkSession, amqp_broker: At, tmp_path: Path
) -> None:
    stream = read_stream(spark, amqp_broker, amqp_broker.queue(), queueType="stream")
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException, match=r"option 'queueType': queue .* is not a stream"):
        query.awaitTermination(60)
    with pytest.raises(PySparkException, match="there is no column 'bodi'"):
        spark.readStream.schema("bodi binary").format("amqp").options(
            url=amqp_broker.url, queue="q"
        ).load().writeStream.format("noop").start().awaitTermination(60)


def test_an_invalid_schema_is_reported_before_a_job_runs(spark: SparkSession, amqp_broker: At) -> None:
    table = spark.range(1).selectExpr("'x' body", "1 color")
    with pytest.raises(PySparkException, match="a message has no column 'color'"):
        table.write.format("amqp").options(url=amqp_broker.url, routingKey="k").mode("append").save()
    with pytest.raises(PySparkException, match="option 'mode': must be append"):
        table.select("body").write.format("amqp").options(url=amqp_broker.url, routingKey="k").mode("overwrite").save()
