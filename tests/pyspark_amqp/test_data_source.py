"""The format in a real Spark: what it reads, and what it does when something dies."""

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
from pyspark.sql.streaming import StreamingQuery

from pyspark_amqp import DefaultSource
from tests.pyspark_amqp.conftest import At

ROOT = Path(__file__).parents[2]


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def read_stream(spark: SparkSession, at: At, queue: str, **given: object) -> DataFrame:
    return spark.readStream.format("amqp").options(url=at.url, queue=queue, **given).load()


class Lake:
    """A Parquet folder that a query writes to, and its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.path = str(folder / "lake")
        self.checkpoint = folder / "checkpoint"

    def run(self, rows: DataFrame) -> StreamingQuery:
        """Write what there is, and return when that is done. Raises StreamingQueryException."""
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start(self.path)
        assert query.awaitTermination(60)
        return query

    def rows(self) -> list[tuple[int, bool]]:
        """Body and redelivered of each row."""
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
def test_without_what_it_needs_the_package_says_how_to_get_it(lacking: str) -> None:
    program = f"import sys; sys.modules[{lacking!r}] = None; import pyspark_amqp"
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert f"needs {lacking}" in told.stderr
    assert 'pip install "amqp-minibroker[spark]"' in told.stderr.splitlines()[-1]


def test_a_batch_is_a_table(spark: SparkSession, broker: At) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(100), message_id="m", timestamp=1_700_000_000, headers={"a": "b"})
    reader = spark.read.format("amqp").options(url=broker.url, queue=queue, queueType="stream", includeHeaders=True)
    table = reader.load()
    assert table.count() == 100
    row = table.where("offset = 7").first()
    assert row is not None
    assert (row.body, row.queue, row.routing_key, row.message_id, row.error) == (b"7", queue, queue, "m", None)
    assert (row.timestamp.timestamp(), row.headers) == (1_700_000_000, {"a": "b"})
    assert reader.schema("offset bigint, body binary").load().first() == (0, b"0")


def test_a_stream_goes_to_parquet_in_batches_and_on_after_a_restart(
    spark: SparkSession, broker: At, lake: Lake
) -> None:
    queue = broker.stream()
    broker.publish(queue, numbers(100))
    given = {"queueType": "stream", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 40, "minPartitions": 2}
    query = lake.run(read_stream(spark, broker, queue, **given))
    assert [progress["numInputRows"] for progress in query.recentProgress] == [40, 40, 20]
    broker.publish(queue, numbers(5, 100))
    lake.run(read_stream(spark, broker, queue, **given))
    assert lake.bodies() == list(range(105))


@pytest.mark.parametrize("death", ["error", "kill"])
def test_what_fails_in_a_batch_neither_loses_nor_doubles_a_row(
    spark: SparkSession, ours: At, lake: Lake, tmp_path: Path, death: str
) -> None:
    queue = ours.stream()
    ours.publish(queue, numbers(90))
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
        given = {"queueType": "stream", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 30}
        stream = read_stream(spark, ours, queue, **given)
        return stream.withColumn("body", die_once("body"))

    with pytest.raises(PySparkException):
        lake.run(rows())
    ours.publish(queue, numbers(10, 90))
    lake.run(rows())
    assert lake.bodies() == list(range(100))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_is_empty_when_its_rows_are_written(spark: SparkSession, broker: At, lake: Lake, kind: str) -> None:
    queue = broker.queue(kind)
    broker.publish(queue, numbers(100))
    lake.run(read_stream(spark, broker, queue, maxOffsetsPerTrigger=40))
    assert lake.bodies() == list(range(100))
    assert broker.count(queue) == 0


def test_what_fails_in_a_batch_of_a_queue_comes_again_and_says_so(
    spark: SparkSession, ours: At, lake: Lake, tmp_path: Path
) -> None:
    queue = ours.queue()
    ours.publish(queue, numbers(90))
    once = tmp_path / "once"

    @udf("binary")
    def die_once(body: bytes) -> bytes:
        if body == b"50" and not once.exists():
            once.touch()
            raise ValueError("died once")
        return bytes(body)

    def rows() -> DataFrame:
        return read_stream(spark, ours, queue, maxOffsetsPerTrigger=30).withColumn("body", die_once("body"))

    with pytest.raises(PySparkException, match="died once"):
        lake.run(rows())
    lake.run(rows())
    found = Counter(lake.bodies())
    assert set(found) == set(range(90))
    again = Counter(body for body, redelivered in lake.rows() if redelivered)
    assert all(again[body] for body, count in found.items() if count > 1)
    assert again[50]
    assert ours.count(queue) == 0


def test_a_poisoned_message_is_a_row_with_a_reason(spark: SparkSession, ours: At, lake: Lake) -> None:
    queue = ours.stream()
    ours.publish(queue, [b"0"])
    ours.publish(queue, [b"1"], message_id=b"\xff")
    ours.publish(queue, [b"2"], timestamp=1 << 60)
    lake.run(read_stream(spark, ours, queue, queueType="stream", startingOffsets="earliest"))
    found = spark.read.parquet(lake.path).orderBy("offset").collect()
    assert [row.error for row in found] == [
        None,
        "message_id is not UTF-8",
        f"timestamp {1 << 60} is behind the year 9999",
    ]
    assert [row.body for row in found] == [b"0", b"1", b"2"]


ARCHIVE = """
    import sys
    from pyspark_amqp.java import ensure_java
    ensure_java()
    from pyspark.sql import SparkSession
    from tests.spark_session import CONF
    url, queue, lake, checkpoint = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    rows = (builder.getOrCreate().readStream.format("amqp")
        .options(url=url, queue=queue, queueType="stream", startingOffsets="earliest", maxOffsetsPerTrigger=50)
        .load())
    rows.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(lake).awaitTermination()
"""


def test_a_spark_that_is_killed_between_batches_goes_on_where_it_was(ours: At, lake: Lake) -> None:
    queue = ours.stream()
    ours.publish(queue, numbers(5000))
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ARCHIVE), ours.url, queue, lake.path, str(lake.checkpoint)],
        cwd=ROOT,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 90
        while not (lake.checkpoint / "commits" / "1").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        # The JVM, and Python above and below it.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    given = {"queueType": "stream", "startingOffsets": "earliest"}
    before = len(list((lake.checkpoint / "commits").glob("[0-9]*")))
    assert before * 50 < 5000
    lake.run(read_stream(lake.spark, ours, queue, **given))
    assert lake.bodies() == list(range(5000))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"quue": "q"}, "option 'quue': unknown"),
        ({"queue": "nope"}, "option 'queue': NOT_FOUND - no queue 'nope'"),
        ({}, "option 'queue': is needed"),
        ({"queue": "q", "prefetch": "many"}, "option 'prefetch': must be a whole number"),
        ({"queue": "q", "url": "amqp://127.0.0.1:1"}, "option 'url': cannot connect"),
    ],
)
def test_bad_options_are_told_before_a_job_runs(
    spark: SparkSession, ours: At, given: dict[str, str], named: str
) -> None:
    with pytest.raises(PySparkException, match=named):
        spark.read.format("amqp").options(**{"url": ours.url, **given}).load().count()


def test_bad_options_of_a_streaming_query_are_told(spark: SparkSession, ours: At, tmp_path: Path) -> None:
    stream = read_stream(spark, ours, ours.queue(), queueType="stream")
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException, match=r"option 'queueType': queue .* is no stream"):
        query.awaitTermination(60)
    with pytest.raises(PySparkException, match="there is no column 'bodi'"):
        spark.readStream.schema("bodi binary").format("amqp").options(
            url=ours.url, queue="q"
        ).load().writeStream.format("noop").start().awaitTermination(60)


def test_what_cannot_be_written_is_told_before_a_job_runs(spark: SparkSession, ours: At) -> None:
    table = spark.range(1).selectExpr("'x' body", "1 color")
    with pytest.raises(PySparkException, match="no place for column 'color'"):
        table.write.format("amqp").options(url=ours.url, routingKey="k").mode("append").save()
    with pytest.raises(PySparkException, match="option 'mode': must be append"):
        table.select("body").write.format("amqp").options(url=ours.url, routingKey="k").mode("overwrite").save()
