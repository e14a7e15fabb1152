"""The lake: Delta tables of events and of poisoned messages by date, and the checkpoints of archives, in a folder.

    events/, poisoned/        tables, see lake_table.py
    checkpoints/<job>/        the checkpoint of an archive, see query_checkpoint.py

An engine writes Parquet files (`spark_lake.py`, `batch_files.py`), and the process of the command commits them to the
table's log. A reader gets the files of a snapshot, which no later batch and no compaction changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amqp_broker.pipeline.event_rows import ARROW, FIELDS, POISONED, POISONED_ARROW
from amqp_broker.pipeline.lake_slice import EVERYTHING, Slice
from amqp_broker.pipeline.lake_table import LakeRefused, LakeTable, storage_options

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyarrow.fs import FileSystem

    from amqp_broker.pipeline.lake_table import DataFile

COLUMNS: Final = {"events": ARROW, "poisoned": POISONED_ARROW}
# The column that decides a row's date.
TIMES: Final = {"events": "time", "poisoned": "archived_at"}


def place_of(path: str) -> str:
    """Return the place of a lake: an address with a scheme, or an absolute path."""
    if path.startswith("s3://"):
        # Spark calls these addresses s3a.
        path = f"s3a://{path.removeprefix('s3://')}"
    return path.rstrip("/") if "://" in path else str(Path(path).absolute())


def no_setting(name: str) -> None:
    """Return no value for any setting of Hadoop."""


def tables_of(place: str, setting: Callable[[str], str | None] = no_setting) -> dict[str, LakeTable]:
    """Return the tables of the lake at a place; `setting` returns a setting of Hadoop."""
    options = storage_options(setting)
    return {
        "events": LakeTable(f"{place}/events", FIELDS, options),
        "poisoned": LakeTable(f"{place}/poisoned", POISONED, options),
    }


class Lake:
    """A lake at a path, or at an address of an object store (s3a:…); `setting` returns a setting of Hadoop."""

    def __init__(self, path: str, setting: Callable[[str], str | None] = no_setting) -> None:
        self.path = place_of(path)
        self.options = storage_options(setting)
        self.tables = tables_of(self.path, setting)

    @property
    def address(self) -> str:
        """The lake's place for Spark, whose own default may be another file system."""
        return self.path if "://" in self.path else f"file://{self.path}"

    @property
    def files(self) -> FileSystem:
        from amqp_broker.pipeline.lake_files import files_at

        return files_at(self.path, self.options)

    def checkpoint(self, job: str) -> str:
        return f"{self.address}/checkpoints/{job}"

    def query_of(self, job: str) -> str:
        """Return the id of the query with the checkpoint of a job, or "" if there is no checkpoint."""
        try:
            with self.files.open_input_stream(f"checkpoints/{job}/metadata") as file:
                return str(json.loads(file.read())["id"])
        except FileNotFoundError:
            return ""

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

    def data_files(self, table: str = "events", part: Slice = EVERYTHING) -> list[DataFile]:
        """Return the files of a table's newest snapshot, or those with the dates of a slice.

        Raise LakeRefused if the lake is of an older version, or a newer one.
        """
        self.exists()
        dates = [None if time is None else time.date() for time in (_utc(part.since), _utc(part.until))]
        return self.tables[table].files(*dates)

    def dataset(self, table: str = "events", part: Slice = EVERYTHING) -> Dataset:
        """Return a snapshot of a table for pyarrow and DuckDB, or that of the dates of a slice.

        Raise LakeRefused, as `data_files` does.
        """
        import pyarrow.dataset as arrow

        paths = [f"{table}/{file.path}" for file in self.data_files(table, part)]
        # A column that a file lacks is NULL.
        return arrow.FileSystemDataset.from_paths(
            paths, schema=COLUMNS[table], format=arrow.ParquetFileFormat(), filesystem=self.files
        )

    def compact(self) -> int:
        """Join small files where they are many, and delete old ones; return the number of joined files."""
        joined = 0
        for table in self.tables.values():
            if found := table.compact(only_crowded=True):
                joined += found
                table.vacuum(is_full=False)
        return joined


def extent(lake: Lake) -> str:
    """Return a sentence about the number and the times of all events of a lake."""
    import pyarrow.compute as pc

    times = lake.dataset().to_table(columns=["time"])["time"]
    if not len(times):
        return "It has no events at all."
    ends = pc.min_max(times).as_py()
    first, last = (f"{ends[name]:%Y-%m-%d %H:%M:%S}" for name in ("min", "max"))
    return f"It has {len(times):,} events, from {first} to {last} UTC."


def _utc(time: datetime | None) -> datetime | None:
    return None if time is None else time.astimezone(UTC)
