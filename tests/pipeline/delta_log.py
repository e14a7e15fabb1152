"""A second reader of a lake's tables: the protocol of Delta by hand, without deltalake and Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq


def files(table: Path) -> set[Path]:
    """Return the files of the newest version, from the commits alone."""
    found: set[str] = set()
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text("utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                found.add(action["add"]["path"])
            elif "remove" in action:
                found.discard(action["remove"]["path"])
    return {table / path for path in found}


def offsets(table: Path) -> list[int]:
    """Return the offsets of all events in the table, sorted."""
    return sorted(
        offset
        for file in files(table)
        for offset in pq.ParquetFile(file).read(["trace_offset"])["trace_offset"].to_pylist()
    )
