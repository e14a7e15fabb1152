"""Spark's view of the format: the readers and writers for its options."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """spark.read, readStream, write and writeStream with .format("amqp").

    Spark imports this in all of its workers, so the other modules are imported only when they are needed.
    """

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> str:
        """Return the schema if the user gives none. Raise OptionError."""
        from pyspark_amqp.arrow_rows import TEXT_HEADERS, default_schema
        from pyspark_amqp.format_options import read_schema
        from pyspark_amqp.typed_headers import KIND

        include_properties, headers = read_schema(self.options)
        return default_schema(include_properties, {"false": None, "true": TEXT_HEADERS, "typed": KIND}[headers])

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_amqp.arrow_rows import check_schema
        from pyspark_amqp.batch_source import QueueBrowse, StreamBatch
        from pyspark_amqp.format_options import read_source

        options = read_source(self.options, is_streaming=False)
        check_schema(schema)
        return StreamBatch(options, schema) if options.is_stream else QueueBrowse(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pyspark_amqp.arrow_rows import check_schema
        from pyspark_amqp.format_options import read_source
        from pyspark_amqp.queue_source import QueueSource
        from pyspark_amqp.stream_source import StreamSource

        options = read_source(self.options, is_streaming=True)
        check_schema(schema)
        return StreamSource(options, schema) if options.is_stream else QueueSource(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_amqp.format_options import read_sink
        from pyspark_amqp.sink import BatchSink

        return BatchSink(read_sink(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pyspark_amqp.format_options import read_sink
        from pyspark_amqp.sink import StreamSink

        # Spark's name for complete output mode, in which each batch is the whole result.
        return StreamSink(read_sink(self.options), schema, overwrite)
