"""Lakes as older versions wrote them, and their conversion.

An old lake is a folder of Parquet files by date, hour and *piece*:

    events/date=2026-11-21/hour=13/piece=4f2a91c0-17-17/part-….parquet

A piece contains the events of an hour from the batches FIRST to LAST of a job, and is named after them; the job is the
shortened id of a streaming query. A piece of several batches covers those that it was joined from, which may still be
there after a crash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.pipeline.lake import Lake, place_of
from amqp_broker.pipeline.lake_table import LakeRefused
from amqp_broker.pipeline.spark_lake import TABLES, SparkLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB_CHARACTERS: Final = 8
_PIECE: Final = re.compile(r"piece=(\w+)-(\d+)-(\d+)")
_FOLDERS: Final = (re.compile(r"date=\d{4}-\d\d-\d\d"), re.compile(r"hour=\d+"), _PIECE)


@dataclass(frozen=True, order=True)
class Piece:
    """The events of an hour from the batches `first` to `last` of a job."""

    job: str
    first: int
    last: int

    def covers(self, other: Piece) -> bool:
        return self != other and self.job == other.job and self.first <= other.first and other.last <= self.last


def uncovered(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that no other piece covers, in order."""
    found = sorted(pieces)
    return [piece for piece in found if not any(other.covers(piece) for other in found)]


class OldLake:
    """An old lake at a path, or at an address of Hadoop's file systems."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        place = place_of(path)
        self.address = place if "://" in place else f"file://{place}"
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._configuration: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._files: Any = self._path(self.address).getFileSystem(self._configuration)

    def pieces(self, table: str) -> list[tuple[str, Piece]]:
        """Return the pieces of a table that no other covers, with the addresses of their folders."""
        found = []
        for date in self._matching(f"{self.address}/{table}", 0):
            for hour in self._matching(date, 1):
                by_piece = {self._piece(folder): folder for folder in self._matching(hour, 2)}
                found += [(by_piece[piece], piece) for piece in uncovered(by_piece)]
        return found

    def _piece(self, folder: str) -> Piece:
        match = _PIECE.search(folder)
        assert match is not None
        return Piece(match[1], int(match[2]), int(match[3]))

    def _matching(self, folder: str, level: int) -> list[str]:
        return [f"{folder}/{name}" for name in self._names(folder) if _FOLDERS[level].fullmatch(name)]

    def _names(self, folder: str) -> list[str]:
        path = self._path(folder)
        if not self._files.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(path))

    def queries(self) -> dict[str, str]:
        """Return the ids of the streaming queries with a checkpoint here, by the names of their pieces."""
        files = [f"{self.address}/checkpoints/{job}/metadata" for job in self._names(f"{self.address}/checkpoints")]
        found = [path for path in files if self._files.exists(self._path(path))]
        ids = [str(json.loads(row[0])["id"]) for row in self.spark.read.text(found).collect()] if found else []
        return {id_.replace("-", "")[:JOB_CHARACTERS]: id_ for id_ in ids}

    def copy_checkpoints(self, lake: Lake) -> None:
        """Copy the checkpoints, so that archives continue in the new lake."""
        source, target = self._path(f"{self.address}/checkpoints"), self._path(f"{lake.address}/checkpoints")
        if self._files.exists(source):
            there = target.getFileSystem(self._configuration)
            there.delete(target, True)
            self._jvm.org.apache.hadoop.fs.FileUtil.copy(
                self._files, source, there, target, False, True, self._configuration
            )


def convert(spark: SparkSession, old: str, new: str) -> int:
    """Write the rows of an old lake to a new one; return their number. Raise LakeRefused.

    Each table is one commit. A conversion that was interrupted continues; one that is complete changes nothing.
    """
    source, lake = OldLake(spark, old), SparkLake(spark, new)
    pieces = {table: source.pieces(table) for table in TABLES}
    if not any(pieces.values()):
        raise LakeRefused(f"there is no lake of an older version at '{old}'")
    # Its name in the table's log, as if it were a query with one batch.
    name = f"convert {source.address}"
    lake.create()
    tables = lake.tables
    if any(target.files() and target.last_batch(name) is None for target in tables.values()):
        raise LakeRefused(f"'{new}' is not empty: a lake is converted to a new one only")
    if all(target.last_batch(name) is not None for target in tables.values()):
        return 0
    queries = source.queries()
    count = 0
    for table, found in pieces.items():
        if tables[table].last_batch(name) is not None:
            continue
        if table == "poisoned":
            # After the events and before the commit that completes the conversion.
            source.copy_checkpoints(lake)
        folder = tables[table].new_folder("convert", 0)
        if found:
            rows = spark.read.schema(TABLES[table]).parquet(*[path for path, _ in found])
            # Without a place in a record, an event is from a message of its own.
            rows = rows.fillna(0, ["trace_index"]) if table == "events" else rows
            lake.write_files(table, rows, folder)
        batches = {name: 0}
        for _, piece in found:
            if query := queries.get(piece.job):
                batches[query] = max(piece.last, batches.get(query, -1))
        count += tables[table].commit(folder, batches, "a conversion")
    return count
