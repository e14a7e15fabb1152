"""Readers driven as by Spark, but without Spark."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import BinaryType, BooleanType, LongType, StringType, StructType

from pyspark_amqp.format_options import SourceOptions, read_source
from pyspark_amqp.queue_source import QueueSource
from pyspark_amqp.stream_source import StreamSource
from tests.pyspark_amqp.conftest import At

SCHEMA = (
    StructType()
    .add("body", BinaryType())
    .add("offset", LongType())
    .add("redelivered", BooleanType())
    .add("message_id", StringType())
    .add("error", StringType())
)
ALL = ReadAllAvailable()


def options_of(at: At, queue: str, **given: object) -> SourceOptions:
    return read_source({"url": at.url, "queue": queue, **{name: str(value) for name, value in given.items()}}, True)


def stream_source(at: At, queue: str, **given: object) -> StreamSource:
    # A busy machine pauses for longer than the default allows.
    given = {"tailProbeMs": 200, **given}
    return StreamSource(options_of(at, queue, queueType="stream", **given), SCHEMA)


def queue_source(at: At, queue: str, **given: object) -> QueueSource:
    return QueueSource(options_of(at, queue, **given), SCHEMA)


def rows(reader: DataSourceReader | DataSourceStreamReader, partitions: list[InputPartition]) -> list[dict[str, Any]]:
    """Return the rows of these partitions, read by a pickled copy of the reader as in Spark's workers."""
    copy = pickle.loads(pickle.dumps(reader))
    return [
        row
        for partition in pickle.loads(pickle.dumps(partitions))
        for batch in copy.read(partition)
        for row in batch.to_pylist()
    ]


def planned(checkpoint: Path, number: int, *offsets: object) -> None:
    """Write what Spark writes before a batch."""
    lines = ["v1", json.dumps({"batchWatermarkMs": 0}), *(json.dumps(one) for one in offsets)]
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / f"offsets/{number}").write_text("\n".join(lines), "utf-8")
    (checkpoint / f"offsets/.{number}.crc").write_bytes(b"crc")


class Query:
    """Reads batch after batch, and stores their offsets as Spark does."""

    def __init__(self, reader: DataSourceStreamReader, committed: dict[str, int] | None = None) -> None:
        self.reader = reader
        self.start = reader.initialOffset() if committed is None else committed
        self.end = self.start

    def next(self, limit: ReadLimit | None = None) -> list[dict[str, Any]]:
        """Return the rows of the next batch, which the next call commits."""
        limit = limit or self.reader.getDefaultReadLimit()
        self.start, self.end = self.end, self.reader.latestOffset(self.end, limit)
        return rows(self.reader, list(self.reader.partitions(self.start, self.end)))

    def bodies(self, limit: ReadLimit | None = None) -> list[bytes]:
        return [row["body"] for row in self.next(limit)]
