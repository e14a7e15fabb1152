"""Measure the Spark format `amqp` beside Spark's own Parquet source, in turn and in one session.

    python -m bench.spark [--compiled] [--rows 256000] [--batch-rows 32000] [--repeats 3]

Prints a table for docs/spark-speed.md: the rate, and the processor time per row of the broker, of Java, and of the
processes that Java starts: those are Python's, and small ones for the files of checkpoints. The first run of each job
is not counted: it starts processes and compiles code. Needs the extra `spark` and Java.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

import pika

from bench.generator import LoadError, cpu_seconds_of
from bench.subjects import amqp_broker, compiled
from compat.brokers import AmqpBroker
from pyspark_amqp.format_options import read_sink
from pyspark_amqp.java import ensure_java
from pyspark_amqp.row_publisher import Publisher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MASTER: Final = "local[2]"
CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}
BODY_BYTES: Final = 1024
# Rows of a batch, in all jobs: each batch costs Spark a fixed time.
BATCH_ROWS: Final = 32_000
# Batches of a queue are limited by the prefetch of each of its consumers, which AMQP limits.
READER_BATCH_ROWS_MAX: Final = 32_000
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """Seconds: elapsed, and of processors for the broker, for Python and for Java."""

    elapsed: float
    broker: float
    python: float
    java: float


class Meter:
    """Reads the processor time of the broker, of Java, and of all that Java has started."""

    def __init__(self, broker_pid: int, java_pid: int) -> None:
        self.broker_pid = broker_pid
        self.java_pid = java_pid

    def cost_of(self, job: Callable[[], object]) -> Cost:
        before = self._read()
        job()
        return Cost(*(later - earlier for earlier, later in zip(before, self._read(), strict=True)))

    def _read(self) -> Cost:
        broker_s, java_s = cpu_seconds_of(self.broker_pid), cpu_seconds_of(self.java_pid)
        return Cost(time.monotonic(), broker_s, python_seconds(self.java_pid, dict(_processes())), java_s)


def python_seconds(java_pid: int, processes: dict[int, list[str]]) -> float:
    """Return the processor time of all processes below Java, those that have ended as well."""

    def is_below_java(pid: int) -> bool:
        while pid in processes and pid != java_pid:
            pid = int(processes[pid][1])
        return pid == java_pid

    ticks = 0
    for pid, fields in processes.items():
        if is_below_java(pid):
            own, of_ended = fields[11:13], fields[13:15]
            ticks += sum(map(int, of_ended if pid == java_pid else own + of_ended))
    return ticks / TICKS_PER_S


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Return the number of each process, and the fields of its `stat` from the state on."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(path.parent.name), path.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            # It has ended.
            continue


class Jobs:
    """The jobs, on the same rows: those of a stream, which are written to Parquet files first."""

    def __init__(self, spark: SparkSession, broker: AmqpBroker, folder: Path, rows: int, batch_rows: int) -> None:
        self.spark = spark
        self.url = broker.url
        self.folder = folder
        self.rows = rows
        self.batch_rows = batch_rows
        self.bodies = [random.Random(number).randbytes(BODY_BYTES) for number in range(1000)]
        self.written = 0
        self.declare("rows", "stream")
        self.fill("rows")
        self.files = self.stream_to("parquet")

    def declare(self, queue: str, kind: str) -> None:
        """Declare a new queue, without messages."""
        connection = pika.BlockingConnection(pika.URLParameters(self.url))
        channel = connection.channel()
        channel.queue_delete(queue)
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
        connection.close()

    def fill(self, queue: str) -> None:
        publisher = Publisher(read_sink({"url": self.url, "routingKey": queue}))
        for number in range(self.rows):
            publisher.publish({"body": self.bodies[number % 1000]})
        publisher.finish()
        publisher.close()

    def source(self, **options: str) -> DataFrame:
        return self.spark.readStream.format("amqp").options(url=self.url, **options).load()

    def save(self, rows: DataFrame, kind: str) -> Path:
        """Write the rows to Parquet files, or with `noop` to nowhere; return their folder."""
        self.written += 1
        target = self.folder / f"{kind}-{self.written}"
        writer = rows.writeStream.format(kind).option("checkpointLocation", f"{target}-checkpoint")
        writer.trigger(availableNow=True).start(str(target)).awaitTermination()
        return target

    def check(self, target: Path) -> None:
        """Remove written files. Raise LoadError if they lack rows."""
        count = self.spark.read.parquet(str(target)).count()
        if count != self.rows:
            raise LoadError(f"{count} of {self.rows} rows were written")
        shutil.rmtree(target)

    def stream_to(self, kind: str) -> Path:
        options = {"queue": "rows", "queueType": "stream", "startingOffsets": "earliest", "minPartitions": "2"}
        return self.save(self.source(**options, maxOffsetsPerTrigger=str(self.batch_rows)), kind)

    def files_to_parquet(self) -> Path:
        # Each batch of the first job has written two.
        reader = self.spark.readStream.schema(self.spark.read.parquet(str(self.files)).schema)
        return self.save(reader.option("maxFilesPerTrigger", "2").parquet(str(self.files)), "parquet")

    def queue_to_parquet(self, readers: int) -> Path:
        rows = min(self.batch_rows, READER_BATCH_ROWS_MAX * readers)
        options = {"queue": "queue", "maxOffsetsPerTrigger": str(rows), "numReaders": str(readers)}
        return self.save(self.source(**options, maxBytesPerTrigger=str(1 << 30)), "parquet")

    def publish(self) -> None:
        rows = self.spark.range(0, self.rows, 1, 2).selectExpr(f"repeat('a', {BODY_BYTES}) AS body")
        rows.write.format("amqp").options(url=self.url, routingKey="written").mode("append").save()

    def costs(self, meter: Meter) -> Iterator[tuple[str, Cost]]:
        """Run all jobs once; return the title and cost of each."""
        yield from self._saved(meter, "Parquet to Parquet", self.files_to_parquet)
        yield from self._saved(meter, "stream to Parquet", lambda: self.stream_to("parquet"))
        for readers in (1, 2):
            self.declare("queue", "classic")
            self.fill("queue")
            title = f"classic queue to Parquet, {readers} reader{'s' if readers > 1 else ''}"
            yield from self._saved(meter, title, partial(self.queue_to_parquet, readers))
        yield "stream to nowhere (`noop`)", meter.cost_of(lambda: self.stream_to("noop"))
        self.declare("written", "stream")
        yield "written to a stream and confirmed, two tasks", meter.cost_of(self.publish)

    def _saved(self, meter: Meter, title: str, job: Callable[[], Path]) -> Iterator[tuple[str, Cost]]:
        targets: list[Path] = []
        yield title, meter.cost_of(lambda: targets.append(job()))
        self.check(targets[0])


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--compiled", action="store_true", help="measure with the broker of `make compiled`")
    parser.add_argument("--rows", type=int, default=256_000, help="rows of each job (default 256000)")
    parser.add_argument("--batch-rows", type=int, default=BATCH_ROWS, help="rows of a batch (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs, whose median counts (default 3)")
    options = parser.parse_args(words)
    samples: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        broker = (compiled() if options.compiled else amqp_broker()).make(Path(folder, "broker"))
        assert isinstance(broker, AmqpBroker)
        with broker.running():
            jobs = Jobs(spark, broker, Path(folder), options.rows, options.batch_rows)
            meter = Meter(broker.pid, java_pid())
            for run in range(options.repeats + 1):
                for title, cost in jobs.costs(meter):
                    if run:
                        samples.setdefault(title, []).append(cost)
    print("| | rows per second | broker | Python | JVM |\n|---|--:|--:|--:|--:|")
    for title, costs in samples.items():
        print(text(title, costs, options.rows))


@contextmanager
def session() -> Iterator[SparkSession]:
    ensure_java(MASTER)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER).appName("bench")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def java_pid() -> int:
    """Return the number of this process's Java."""
    return next(pid for pid, fields in _processes() if int(fields[1]) == os.getpid() and _name_of(pid) == "java")


def _name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text("utf-8").strip()


def text(title: str, costs: Sequence[Cost], rows: int) -> str:
    """Return a line of the table: medians."""
    elapsed_s, *shares_s = (median(figures) for figures in zip(*costs, strict=True))
    cells = [f"{rows / elapsed_s:,.0f}".replace(",", " "), *(f"{share_s / rows * 1e6:.1f} µs" for share_s in shares_s)]
    return f"| {title} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
