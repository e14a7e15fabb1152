"""The lake: a folder with tables of events and of poisoned messages, by date and hour, in *pieces*.

    events/date=2026-11-21/hour=13/piece=4f2a91c0-17-17/part-….parquet
    poisoned/date=…/hour=…/piece=…/part-….parquet
    checkpoints/<job>/                                       Spark's checkpoint of a job

A piece contains the events of an hour from the batches FIRST to LAST of a job, and is named after them; the job is the
shortened id of the streaming query. A batch that is repeated after a crash replaces only its own pieces. Compacting
joins pieces into one and then removes them. A crash in between leaves both, but the name of the joined piece shows that
it covers the others. `Lake.read` skips covered pieces, and the next job removes them.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.pipeline.event_rows import POISONED_SCHEMA, SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES: Final = {"events": SCHEMA, "poisoned": POISONED_SCHEMA}
# Pieces of single batches that are joined into one; once their hour is over, all pieces are joined.
PIECES_MAX: Final = 16
FILE_BYTES: Final = 128 * 1024 * 1024
_PIECE: Final = re.compile(r"piece=(\w+)-(\d+)-(\d+)")
_HOUR: Final = re.compile(r"date=(\d{4}-\d\d-\d\d)/hour=(\d+)")


class Hour(NamedTuple):
    """A date such as 2026-11-21, and an hour of the day."""

    date: str
    hour: int

    @property
    def path(self) -> str:
        return f"date={self.date}/hour={self.hour}"

    @classmethod
    def of(cls, time: datetime) -> Hour:
        utc = time.astimezone(UTC)
        return cls(utc.date().isoformat(), utc.hour)


@dataclass(frozen=True, order=True)
class Piece:
    """The events of an hour from the batches `first` to `last` of a job."""

    job: str
    first: int
    last: int

    @property
    def name(self) -> str:
        return f"{self.job}-{self.first}-{self.last}"

    def covers(self, other: Piece) -> bool:
        return self != other and self.job == other.job and self.first <= other.first and other.last <= self.last


def uncovered(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that no other piece covers, in order."""
    found = sorted(pieces)
    return [piece for piece in found if not any(other.covers(piece) for other in found)]


class Lake:
    """A lake at a path, or at a URL of Hadoop's file systems (hdfs:, s3a:, …)."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        # py4j's objects of Hadoop's org.apache.hadoop.fs.
        jvm: Any = spark._jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        root = self._path(path)
        self._files: Any = root.getFileSystem(configuration)
        # A relative path starts at the working folder of the command.
        self.path = str(self._files.makeQualified(root).toString()).rstrip("/")

    def checkpoint(self, job: str) -> str:
        return f"{self.path}/checkpoints/{job}"

    # Reading

    def read(self, table: str = "events", since: datetime | None = None, until: datetime | None = None) -> DataFrame:
        """Return a table, or its hours from `since` to `until`; an empty table if it does not exist."""
        hours = [
            hour
            for hour in self.hours(table)
            if (since is None or hour >= Hour.of(since)) and (until is None or hour <= Hour.of(until))
        ]
        pieces = [self._at(table, hour, piece) for hour in hours for piece in uncovered(self.pieces(table, hour))]
        if not pieces:
            return self.spark.createDataFrame([], TABLES[table])
        return self._parquet(table, pieces)

    def _parquet(self, table: str, paths: list[str]) -> DataFrame:
        return self.spark.read.schema(TABLES[table]).parquet(*paths)

    def hours(self, table: str) -> list[Hour]:
        """Return the hours that have pieces, in order."""
        folders = [f"date={date}/{hour}" for date in self._dates(table) for hour in self._names(f"{table}/date={date}")]
        found = [match for folder in folders if (match := _HOUR.fullmatch(folder))]
        return sorted(Hour(match[1], int(match[2])) for match in found)

    def _dates(self, table: str) -> list[str]:
        return [name.removeprefix("date=") for name in self._names(table) if name.startswith("date=")]

    def pieces(self, table: str, hour: Hour) -> list[Piece]:
        """Return all pieces of an hour, unordered."""
        matches = [_PIECE.fullmatch(name) for name in self._names(f"{table}/{hour.path}")]
        return [Piece(match[1], int(match[2]), int(match[3])) for match in matches if match]

    def _names(self, folder: str) -> list[str]:
        path = self._path(f"{self.path}/{folder}")
        if not self._files.exists(path):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(path)]

    def _at(self, table: str, hour: Hour, piece: Piece) -> str:
        return f"{self.path}/{table}/{hour.path}/piece={piece.name}"

    # Writing

    def write(self, table: str, rows: DataFrame, time: str, piece: Piece) -> None:
        """Write a batch, each row to the hour in the column `time`; replace earlier files of the batch."""
        from pyspark.sql import functions as F

        (
            rows.withColumn("date", F.to_date(time))
            .withColumn("hour", F.hour(time))
            .withColumn("piece", F.lit(piece.name))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy("date", "hour", "piece")
            .parquet(f"{self.path}/{table}")
        )

    def discard(self, table: str, piece: Piece) -> None:
        """Remove the files of a failed batch from all hours."""
        for hour in self.hours(table):
            self._remove(self._at(table, hour, piece))

    def compact(self, table: str, job: str, before: int, *, is_over: bool = False) -> int:
        """Join the pieces of a job's batches before `before`; return the number of hours rewritten.

        Only batches that cannot be repeated may be joined. In the newest hour, only pieces of single batches are
        joined, and only if they are many, unless the job `is_over`.
        """
        self._remove(f"{self.path}/_compacting/{job}")
        hours = self.hours(table)
        rewritten = 0
        for hour in hours:
            found = [piece for piece in self.pieces(table, hour) if piece.job == job and piece.last < before]
            live = uncovered(found)
            for piece in set(found).difference(live):
                self._remove(self._at(table, hour, piece))
            is_whole = is_over or hour != hours[-1]
            wanted = live if is_whole else [piece for piece in live if piece.first == piece.last]
            if len(wanted) > (1 if is_whole else PIECES_MAX):
                self._join(table, hour, wanted)
                rewritten += 1
        return rewritten

    def _join(self, table: str, hour: Hour, pieces: list[Piece]) -> None:
        paths = [self._at(table, hour, piece) for piece in pieces]
        bytes_ = sum(int(self._files.getContentSummary(self._path(path)).getLength()) for path in paths)
        joined = Piece(pieces[0].job, pieces[0].first, pieces[-1].last)
        written = f"{self.path}/_compacting/{joined.job}/{uuid.uuid4().hex}"
        rows = self._parquet(table, paths).coalesce(1 + bytes_ // FILE_BYTES)
        rows.sortWithinPartitions("trace_queue", "trace_offset", "trace_index").write.parquet(written)
        # From here on the joined piece covers the others, even if they are not removed.
        if not self._files.rename(self._path(written), self._path(self._at(table, hour, joined))):
            raise OSError(f"cannot rename {written} to {self._at(table, hour, joined)}")
        for path in paths:
            self._remove(path)

    def _remove(self, path: str) -> None:
        self._files.delete(self._path(path), True)
