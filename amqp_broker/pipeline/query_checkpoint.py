"""The checkpoint of a streaming query in Spark's form: each engine continues the other's query.

    metadata      the id of the query
    offsets/7     the end of batch 7, written before the batch is read
    commits/7     batch 7 is stored

Sources: StreamMetadata.scala, OffsetSeqLog.scala and CommitLog.scala of Spark.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.pipeline.lake_table import LakeRefused

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

# Batches that a checkpoint keeps; Spark keeps as many.
KEPT: Final = 100
VERSION: Final = "v1"


class PlannedBatch(NamedTuple):
    """A batch before it is read: each queue's next offset after it, and the time of rows without one."""

    number: int
    end: dict[str, int]
    time_ms: int


class QueryCheckpoint:
    """The checkpoint in a folder of these files; `query` is the id of its query, which it creates.

    Raise LakeRefused for files of another version.
    """

    def __init__(self, files: FileSystem, folder: str) -> None:
        self.files = files
        self.folder = folder
        text = self._read("metadata")
        if text is None:
            text = json.dumps({"id": str(uuid.uuid4())})
            self._write("metadata", text)
        self.query = str(json.loads(text)["id"])

    def planned(self, number: int | None = None) -> PlannedBatch | None:
        """Return the last planned batch, or one with a number; None if there is none."""
        number = self._last("offsets") if number is None else number
        text = None if number is None else self._read(f"offsets/{number}")
        if number is None or text is None:
            return None
        version, head, *ends = text.splitlines()
        if version != VERSION or len(ends) != 1:
            raise LakeRefused(f"the checkpoint '{self.folder}' is that of another query: {text[:80]!r}")
        return PlannedBatch(number, json.loads(ends[0]), int(json.loads(head)["batchTimestampMs"]))

    def committed(self) -> int:
        """Return the number of the last committed batch, -1 if there is none."""
        last = self._last("commits")
        return -1 if last is None else last

    def plan(self, batch: PlannedBatch) -> None:
        """Store the end of a batch, before it is read."""
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": batch.time_ms, "conf": {}})
        self._write(f"offsets/{batch.number}", f"{VERSION}\n{head}\n{json.dumps(batch.end)}")

    def commit(self, number: int) -> None:
        """Store that a batch is stored, and forget old ones."""
        self._write(f"commits/{number}", f'{VERSION}\n{{"nextBatchWatermarkMs":0}}')
        for log in ("offsets", "commits"):
            for old in self._numbers(log):
                if old <= number - KEPT:
                    self.files.delete_file(f"{self.folder}/{log}/{old}")

    def _last(self, log: str) -> int | None:
        return max(self._numbers(log), default=None)

    def _numbers(self, log: str) -> list[int]:
        from pyarrow.fs import FileSelector

        found = self.files.get_file_info(FileSelector(f"{self.folder}/{log}", allow_not_found=True))
        return [int(info.base_name) for info in found if info.base_name.isdigit()]

    def _read(self, name: str) -> str | None:
        try:
            with self.files.open_input_stream(f"{self.folder}/{name}") as file:
                return str(file.read().decode())
        except FileNotFoundError:
            return None

    def _write(self, name: str, text: str) -> None:
        with self.files.open_output_stream(f"{self.folder}/{name}") as file:
            file.write(text.encode())
