"""A lake that Spark reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.pipeline.event_rows import POISONED_SCHEMA, SCHEMA
from amqp_broker.pipeline.lake import TIMES, Lake
from amqp_broker.pipeline.lake_slice import EVERYTHING, Slice
from amqp_broker.pipeline.lake_table import PARTITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES: Final = {"events": SCHEMA, "poisoned": POISONED_SCHEMA}


def hadoop_setting(spark: SparkSession) -> Callable[[str], str | None]:
    """Return a function from the name of a setting of Hadoop to its value in this session."""
    configuration: Any = spark._jsparkSession.sessionState().newHadoopConf()
    get: Callable[[str], str | None] = configuration.get
    return get


class SparkLake(Lake):
    """A lake at a path, or at an address of an object store (s3a:…)."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        super().__init__(path, hadoop_setting(spark))
        self.spark = spark

    def read(self, table: str = "events", part: Slice = EVERYTHING) -> DataFrame:
        """Return a snapshot of a table, or a slice of the events; empty if there is no table.

        Raise LakeRefused if the lake is of an older version, or a newer one.
        """
        from pyspark.sql import functions as F

        paths = [f"{self.address}/{table}/{file.path}" for file in self.data_files(table, part)]
        if not paths:
            return self.spark.createDataFrame([], TABLES[table])
        # A column that a file lacks is NULL.
        rows = self.spark.read.schema(TABLES[table]).parquet(*paths)
        if part.since is not None:
            rows = rows.where(F.col("time") >= F.lit(part.since))
        if part.until is not None:
            rows = rows.where(F.col("time") < F.lit(part.until))
        return rows if part.vhost is None else rows.where(F.col("vhost") == part.vhost)

    def append(self, table: str, rows: DataFrame, query: str, batch: int, writer: str) -> int:
        """Append the rows of a batch; return their number. Raise LakeRefused, as `LakeTable.commit` does."""
        target = self.tables[table]
        folder = target.new_folder(query, batch)
        self.write_files(table, rows, folder)
        return target.commit(folder, {query: batch}, writer)

    def write_files(self, table: str, rows: DataFrame, folder: str) -> None:
        """Write rows into a folder of a table, which shows them after their commit only."""
        from pyspark.sql import functions as F

        # Delta's type of a time; Spark's default is one of its own.
        rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        (
            rows.withColumn(PARTITION, F.to_date(TIMES[table]))
            .write.partitionBy(PARTITION)
            .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            .parquet(f"{self.address}/{table}/{folder}")
        )
