"""The log in a query's checkpoint: it tells a source which of its batches are stored.

    offsets/7     the end of batch 7 in each source of the query, written before the batch is read
    commits/7     batch 7 is stored

Sources: OffsetSeqLog.scala and CommitLog.scala of Spark.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Final

from pyarrow import ArrowException
from pyarrow.fs import FileSelector, FileSystem, FileType

from pyspark_amqp.errors import OptionError

OPTION: Final = "checkpointLocation"
ERRORS: Final = (OSError, ArrowException)
logger = logging.getLogger("pyspark_amqp")


class CommitLog:
    """The log of the query that reads a queue, at the query's `checkpointLocation`: a path, or an address."""

    def __init__(self, location: str, queue: str) -> None:
        """Raise OptionError for an address that cannot be used."""
        self.location = location
        self.queue = queue
        try:
            self._files, self._root = FileSystem.from_uri(_address(location))
        # pyarrow has errors of its own for a missing library or an unknown scheme.
        except Exception as error:
            raise OptionError(OPTION, f"{location}: {error}") from None

    def planned(self, end: int) -> int:
        """Return the number of the batch that was planned last; it ends at this offset of the queue.

        Raise OptionError if it does not: the checkpoint is that of another query, or the query reads the queue twice.
        """
        number, ends = self._last_ends()
        if ends != [end]:
            found = "two sources for the queue" if len(ends) > 1 else f"no batch of '{self.queue}' up to offset {end}"
            raise OptionError(OPTION, f"{self.location} has {found}: give the checkpoint of this query, or none")
        return number

    def is_committed(self, number: int) -> bool:
        """Return whether a batch is stored; False if the log cannot be read now."""
        try:
            return bool(self._files.get_file_info(f"{self._root}/commits/{number}").type != FileType.NotFound)
        except ERRORS as error:
            logger.warning("%s cannot be read: %s", self.location, error)
            return False

    def _last_ends(self) -> tuple[int, list[int]]:
        """Return the number of the last planned batch, and its end in each source for the queue."""
        folder = f"{self._root}/offsets"
        try:
            names = [info.base_name for info in self._files.get_file_info(FileSelector(folder, allow_not_found=True))]
            numbers = [int(name) for name in names if name.isdigit()]
            if not numbers:
                return -1, []
            with self._files.open_input_stream(f"{folder}/{max(numbers)}") as file:
                lines = file.read().decode().splitlines()
        except ERRORS as error:
            raise OptionError(OPTION, f"{self.location}: {error}") from None
        # Version and metadata come first.
        return max(numbers), [end for line in lines[2:] if (end := self._end_of(line)) is not None]

    def _end_of(self, line: str) -> int | None:
        """Return the offset if it is one of the queue."""
        try:
            offsets = json.loads(line)
        except ValueError:
            return None
        if not isinstance(offsets, dict) or set(offsets) != {self.queue}:
            return None
        end: int = offsets[self.queue]
        return end


def _address(location: str) -> str:
    """Return the address, or the absolute path, by which pyarrow knows a location of Spark."""
    scheme, colon, path = location.partition(":")
    if not colon:
        return str(Path(location).resolve())
    if scheme == "file":
        return "/" + path.lstrip("/")
    return f"s3:{path}" if scheme == "s3a" else location
