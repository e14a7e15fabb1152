"""The Spark format `amqp_trace`: the format `amqp` (pyspark_amqp) for the queue of a trace, with a row for each event.

It takes the options of `amqp` for streaming reads, and `bodies` (default true). Records are decoded where they are
read, so only columns of events reach Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import BinaryType, LongType, MapType, StringType, StructType

from amqp_broker.pipeline.event_rows import ARROW, SOURCE_SCHEMA
from amqp_broker.pipeline.trace_records import decoded
from pyspark_amqp.format_options import Given, SourceOptions, read_source
from pyspark_amqp.queue_source import QueueSource
from pyspark_amqp.stream_source import StreamSource

# These modules are sent to Spark's workers, which may lack this package.
MODULES: Final = (
    *("amqp_broker", "amqp_broker.pipeline", "amqp_broker.pipeline.event_rows"),
    *("amqp_broker.pipeline.trace_records", "amqp_broker.pipeline.trace_source"),
)

# The columns that the decoder needs.
_READ = StructType()
for _name, _type in (("body", BinaryType()), ("queue", StringType()), ("routing_key", StringType())):
    _READ.add(_name, _type)
_READ.add("offset", LongType()).add("headers", MapType(StringType(), StringType())).add("error", StringType())


class TraceSource(DataSource):
    """spark.readStream with .format("amqp_trace")."""

    @classmethod
    def name(cls) -> str:
        return "amqp_trace"

    def schema(self) -> str:
        return SOURCE_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        own = {name: text for name, text in self.options.items() if name.lower() == "bodies"}
        given = {name: text for name, text in self.options.items() if name not in own}
        options = read_source(given, is_streaming=True)
        with_bodies = Given(own, ("bodies",)).boolean("bodies", True)
        return (TraceStream if options.is_stream else TraceQueue)(options, with_bodies)


class TraceStream(StreamSource):
    """The events of a stream."""

    modules: ClassVar[tuple[str, ...]] = MODULES

    def __init__(self, options: SourceOptions, with_bodies: bool) -> None:
        super().__init__(options, _READ)
        self.with_bodies = with_bodies

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return decoded(super().read(partition), ARROW, self.with_bodies)


class TraceQueue(QueueSource):
    """The events of a classic queue, which receives RabbitMQ's firehose."""

    modules: ClassVar[tuple[str, ...]] = MODULES

    def __init__(self, options: SourceOptions, with_bodies: bool) -> None:
        super().__init__(options, _READ)
        self.with_bodies = with_bodies

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return decoded(super().read(partition), ARROW, self.with_bodies)
