"""The lake: Delta tables of events and of poisoned messages by date, and the checkpoints of archives, in a folder.

    events/, poisoned/        tables, see lake_table.py
    checkpoints/<job>/        Spark's checkpoint of an archive

Spark writes and reads the Parquet files, so its workers need no library; the process of the command commits them to the
table's log. A reader gets the files of a snapshot, which no later batch and no compaction changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.pipeline.event_rows import FIELDS, POISONED, POISONED_SCHEMA, SCHEMA
from amqp_broker.pipeline.lake_table import PARTITION, LakeRefused, LakeTable, storage_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES: Final = {"events": SCHEMA, "poisoned": POISONED_SCHEMA}
# The column that decides a row's date.
TIMES: Final = {"events": "time", "poisoned": "archived_at"}


def place_of(path: str) -> str:
    """Return the place of a lake: an address with a scheme, or an absolute path."""
    if path.startswith("s3://"):
        # Spark calls these addresses s3a.
        path = f"s3a://{path.removeprefix('s3://')}"
    return path.rstrip("/") if "://" in path else str(Path(path).absolute())


def tables_of(place: str, setting: Callable[[str], str | None] = lambda name: None) -> dict[str, LakeTable]:
    """Return the tables of the lake at a place; `setting` returns a setting of Hadoop."""
    options = storage_options(setting)
    return {
        "events": LakeTable(f"{place}/events", FIELDS, options),
        "poisoned": LakeTable(f"{place}/poisoned", POISONED, options),
    }


def hadoop_setting(spark: SparkSession) -> Callable[[str], str | None]:
    """Return a function from the name of a setting of Hadoop to its value in this session."""
    get: Callable[[str], str | None] = spark._jsparkSession.sessionState().newHadoopConf().get
    return get


class Lake:
    """A lake at a path, or at an address of an object store (s3a:…)."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.path = place_of(path)
        self.tables = tables_of(self.path, hadoop_setting(spark))

    @property
    def address(self) -> str:
        """The lake's place for Spark, whose own default may be another file system."""
        return self.path if "://" in self.path else f"file://{self.path}"

    def checkpoint(self, job: str) -> str:
        return f"{self.address}/checkpoints/{job}"

    def query_of(self, job: str) -> str:
        """Return Spark's id of the query with the checkpoint of a job, or "" if there is no checkpoint."""
        if "://" not in self.path:
            file = Path(self.path, "checkpoints", job, "metadata")
            return str(json.loads(file.read_text("utf-8"))["id"]) if file.exists() else ""
        jvm: Any = self.spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(f"{self.checkpoint(job)}/metadata")
        files = path.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())
        if not files.exists(path):
            return ""
        return str(json.loads(self.spark.read.text(str(path.toString())).collect()[0][0])["id"])

    def exists(self) -> bool:
        """Return whether there is a lake. Raise LakeRefused if it is of an older version."""
        is_there = self.tables["events"].exists()
        if not is_there and self._is_old():
            raise LakeRefused(
                f"the lake '{self.path}' is of an older version: `amqp-broker pipeline convert {self.path} NEW` makes "
                "a new one of it"
            )
        return is_there

    def _is_old(self) -> bool:
        """Return whether there are Parquet files by date and hour, but no table."""
        if "://" in self.path:
            return False
        return next(Path(self.path).glob("*/date=*/hour=*"), None) is not None

    def create(self) -> None:
        """Create the tables, or bring them to the columns of this program. Raise LakeRefused."""
        self.exists()
        for table in self.tables.values():
            table.create()

    # Reading

    def read(self, table: str = "events", since: datetime | None = None, until: datetime | None = None) -> DataFrame:
        """Return a snapshot of a table, or of its dates from `since` to `until`; empty if there is no table.

        Raise LakeRefused if the lake is of an older version, or a newer one.
        """
        self.exists()
        dates = [None if time is None else time.date() for time in (_utc(since), _utc(until))]
        files = self.tables[table].files(*dates)
        if not files:
            return self.spark.createDataFrame([], TABLES[table])
        paths = [f"{self.address}/{table}/{file.path}" for file in files]
        # A column that a file lacks is NULL.
        return self.spark.read.schema(TABLES[table]).parquet(*paths)

    # Writing

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

    def compact(self) -> int:
        """Join small files where they are many, and delete old ones; return the number of joined files."""
        joined = 0
        for table in self.tables.values():
            if found := table.compact(only_crowded=True):
                joined += found
                table.vacuum(is_full=False)
        return joined


def export(events: DataFrame, target: str) -> int:
    """Write events to a new folder as plain Parquet files by date; return their number."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    counted = events.observe(seen, F.count("*").alias("rows"))
    counted.withColumn(PARTITION, F.to_date("time")).write.partitionBy(PARTITION).mode("append").parquet(target)
    return int(seen.get["rows"])


def _utc(time: datetime | None) -> datetime | None:
    return None if time is None else time.astimezone(UTC)
