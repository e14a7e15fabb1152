"""Readers and writers beside a broker that is killed and started again."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

from compat.brokers import AmqpBroker, BrokerProcess, free_port
from compat.oracles.rabbitmq import RabbitMQ
from compat.waiting import wait_until
from pyspark_amqp.address import Address, from_url
from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.errors import ConnectionLost, OptionError
from pyspark_amqp.format_options import read_sink
from pyspark_amqp.reconnecting import Attempts, persist
from pyspark_amqp.row_publisher import Publisher
from tests.pyspark_amqp.conftest import At
from tests.pyspark_amqp.reading import Query, queue_source, stream_source

ROOT = Path(__file__).parents[2]
AWAY = replace(Address(), reconnect_timeout_s=0.0)


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def at(process: BrokerProcess) -> At:
    return At(type(process).__name__, process.url)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[AmqpBroker]:
    process = AmqpBroker(tmp_path / "broker")
    with process.running():
        yield process


@pytest.fixture(params=[AmqpBroker, pytest.param(RabbitMQ, marks=pytest.mark.verify)])
def any_process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    process: BrokerProcess = request.param(tmp_path / "broker")
    with process.running():
        yield process


@contextmanager
def away(process: AmqpBroker) -> Iterator[None]:
    """Kill the broker, and start it while the block runs."""
    process.kill()
    starting = threading.Thread(target=process.start)
    starting.start()
    try:
        yield
    finally:
        starting.join()


def test_an_attempt_is_repeated_until_it_succeeds() -> None:
    failures = [ConnectionLost("away"), ConnectionLost("still away")]

    def act() -> str:
        if failures:
            raise failures.pop(0)
        return "done"

    assert persist(Address(), act) == "done"


def test_the_error_is_the_last_reason_with_the_option() -> None:
    with pytest.raises(ConnectionLost, match=r"^away \(reconnectTimeout of 0 s is over\)$"):
        Attempts(AWAY).failed(ConnectionLost("away"))


def test_an_error_that_will_not_pass_is_not_repeated() -> None:
    def act() -> None:
        raise OptionError("queue", "NOT_FOUND")

    with pytest.raises(OptionError):
        persist(Address(), act)


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        ("no-such-host.invalid", r"option 'url': cannot connect to no-such-host.invalid:5672: .*not known"),
        ("one.invalid,two.invalid", r"option 'url': cannot connect to one.invalid:5672: .*; .* two.invalid:5672: .*"),
        ("a" * 64, r"option 'url': 'a{64}' is no name of a host: .*label too long"),
    ],
)
def test_an_unknown_host_is_not_waited_for(hosts: str, reason: str) -> None:
    address = from_url(f"amqp://{hosts}/")
    with pytest.raises(OptionError, match=reason):
        persist(address, lambda: Connection(address))


def test_a_known_host_beside_an_unknown_one_is_waited_for() -> None:
    address = replace(from_url(f"amqp://no-such-host.invalid,127.0.0.1:{free_port()}/"), reconnect_timeout_s=0.0)
    with pytest.raises(ConnectionLost, match=r"not known; .*refused \(reconnectTimeout"):
        persist(address, lambda: Connection(address))


# A process whose parent ends when the attempts have begun.
ORPHAN = """
import os
from compat.waiting import wait_until
from pyspark_amqp.address import Address
from pyspark_amqp.errors import ConnectionLost
from pyspark_amqp.reconnecting import Attempts

read, write = os.pipe()
if os.fork():
    os.read(read, 1)
    os._exit(0)
parent = os.getppid()
attempts = Attempts(Address())
os.write(write, b".")
wait_until(lambda: os.getppid() != parent)
try:
    attempts.failed(ConnectionLost("the broker is away"))
except ConnectionLost as lost:
    print(lost)
"""


def test_attempts_end_with_spark() -> None:
    told = subprocess.check_output([sys.executable, "-c", ORPHAN], cwd=ROOT, encoding="utf-8")
    assert told == "the broker is away (Spark has ended)\n"


def test_a_stream_is_read_on_where_it_was(process: AmqpBroker) -> None:
    broker = at(process)
    queue = broker.stream()
    broker.publish(queue, numbers(100))
    query = Query(stream_source(broker, queue, startingOffsets="earliest"))
    assert query.bodies(ReadMaxRows(30)) == numbers(30)
    with away(process):
        assert query.bodies(ReadMaxRows(30)) == numbers(30, 30)
    assert query.bodies() == numbers(40, 60)
    with away(process):
        source = stream_source(broker, queue, startingOffsets="earliest")
        assert source.initialOffset() == {queue: 0}


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_redelivers_what_was_not_acked(process: AmqpBroker, kind: str) -> None:
    broker = at(process)
    queue = broker.queue(kind)
    broker.publish(queue, numbers(100), delivery_mode=2)
    query = Query(queue_source(broker, queue))
    assert query.bodies(ReadMaxRows(30)) == numbers(30)
    assert query.bodies(ReadMaxRows(30)) == numbers(30, 30)
    with away(process):
        rows = query.next(ReadMaxRows(1000))
    # The first batch was acked when the second one was asked for; that ack may be lost as well.
    bodies = [row["body"] for row in rows]
    while more := query.next(ReadMaxRows(1000)):
        rows += more
        bodies = [row["body"] for row in rows]
    assert set(bodies) >= set(numbers(70, 30))
    assert len(bodies) == len(set(bodies))
    again = {row["body"] for row in rows if row["redelivered"]}
    assert again >= set(bodies) & set(numbers(60))
    query.reader.stop()


def test_rows_without_a_confirm_are_published_again(process: AmqpBroker) -> None:
    broker = at(process)
    queue = broker.queue()
    publisher = Publisher(read_sink({"url": process.url, "routingKey": queue, "maxInFlight": "100"}))
    for number in range(1000):
        if number == 550:
            with away(process):
                publisher.publish({"body": b"%d" % number})
                publisher.finish()
        else:
            publisher.publish({"body": b"%d" % number})
    publisher.finish()
    publisher.close()
    assert {body for _, body in at(process).taken(queue)} == set(numbers(1000))


class Restarted:
    """A job that runs while the broker is killed and started again in its middle."""

    def __init__(self, process: BrokerProcess, folder: Path) -> None:
        self.process = process
        self.lake = str(folder / "lake")
        self.checkpoint = folder / "checkpoint"

    def read(self, spark: SparkSession, queue: str, **given: str) -> list[tuple[int, bool]]:
        """Drain the queue into Parquet; return body and redelivered of each row."""
        options = {"url": self.process.url, "queue": queue, "maxOffsetsPerTrigger": "100", **given}
        rows = spark.readStream.format("amqp").options(**options).load()
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start(self.lake)
        wait_until(lambda: (self.checkpoint / "commits" / "1").exists() or query.exception(), 120)
        self.process.restart()
        assert query.awaitTermination(120)
        assert len(list((self.checkpoint / "commits").glob("[0-9]*"))) >= 10
        found = spark.read.parquet(self.lake).select("body", "redelivered").collect()
        return sorted((int(row.body), row.redelivered) for row in found)


@pytest.fixture
def restarted(any_process: BrokerProcess, tmp_path: Path) -> Restarted:
    return Restarted(any_process, tmp_path)


def test_a_job_on_a_stream_writes_each_row_once(spark: SparkSession, restarted: Restarted) -> None:
    broker = at(restarted.process)
    queue = broker.stream()
    broker.publish(queue, numbers(1000))
    rows = restarted.read(spark, queue, queueType="stream", startingOffsets="earliest")
    assert rows == [(number, False) for number in range(1000)]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_job_on_a_queue_writes_each_row_and_tells_which_came_again(
    spark: SparkSession, restarted: Restarted, kind: str
) -> None:
    broker = at(restarted.process)
    queue = broker.queue(kind)
    broker.publish(queue, numbers(1000), delivery_mode=2)
    rows = restarted.read(spark, queue, queueType=kind, pollTimeoutMs="5000")
    counts = Counter(body for body, _ in rows)
    assert set(counts) == set(range(1000))
    again = {body for body, redelivered in rows if redelivered}
    assert all(body in again for body, count in counts.items() if count > 1)
    assert at(restarted.process).count(queue) == 0


def test_a_job_that_writes_publishes_each_row(spark: SparkSession, any_process: BrokerProcess) -> None:
    process = any_process
    broker = at(process)
    queue = broker.queue()
    table = spark.range(0, 4000, 1, 2).selectExpr("cast(id AS string) AS body")
    options = {"url": process.url, "routingKey": queue, "maxInFlight": "5"}

    def restart_in_the_middle() -> None:
        wait_until(lambda: broker.count(queue) > 100, 120)
        process.restart()

    restarting = threading.Thread(target=restart_in_the_middle)
    restarting.start()
    table.write.format("amqp").options(**options).mode("append").save()
    restarting.join()
    taken = at(process).taken(queue)
    ids = Counter(properties.message_id for properties, _ in taken)
    assert {int(body) for _, body in taken} == set(range(4000))
    # A row that was published twice has the same id both times.
    assert len(ids) == 4000
