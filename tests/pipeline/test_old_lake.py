"""Old lakes become tables, each row once, and their archives continue."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqp_broker.pipeline.event_rows import ARROW
from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_table import LakeRefused
from amqp_broker.pipeline.old_lake import Piece, convert, uncovered
from tests.pipeline import delta_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "4f2a91c0-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["a-0-0", "a-1-1"], ["a-0-0", "a-1-1"]),
        (["a-0-0", "a-0-3", "a-2-2", "a-4-4"], ["a-0-3", "a-4-4"]),
        (["a-0-3", "a-0-9", "a-5-9"], ["a-0-9"]),
        (["a-0-3", "b-0-0"], ["a-0-3", "b-0-0"]),
    ],
)
def test_a_covered_piece_does_not_count(pieces: list[str], expected: list[str]) -> None:
    def piece(text: str) -> Piece:
        job, first, last = text.split("-")
        return Piece(job, int(first), int(last))

    assert uncovered(map(piece, pieces)) == [piece(text) for text in expected]


def write_piece(lake: Path, hour: int, piece: str, offsets: range) -> None:
    """Write events as they were when each was a message, without a place in a record."""
    schema = pa.schema([column for column in ARROW if column.name != "trace_index"])
    time = datetime(2026, 11, 21, hour, tzinfo=UTC)
    folder = lake / "events" / "date=2026-11-21" / f"hour={hour}" / f"piece={piece}"
    folder.mkdir(parents=True)
    told = [{"time": time, "trace_queue": "trace", "trace_offset": offset} for offset in offsets]
    pq.write_table(pa.Table.from_pylist(told, schema), folder / "part-0.parquet")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An old lake that was killed before it removed two joined pieces."""
    lake = tmp_path / "old lake"
    write_piece(lake, 12, "4f2a91c0-0-0", range(5))
    write_piece(lake, 12, "4f2a91c0-1-1", range(5, 8))
    write_piece(lake, 12, "4f2a91c0-0-1", range(8))
    write_piece(lake, 13, "4f2a91c0-2-2", range(8, 10))
    (lake / "checkpoints" / "trace").mkdir(parents=True)
    (lake / "checkpoints" / "trace" / "metadata").write_text(json.dumps({"id": QUERY}), "utf-8")
    return lake


def test_an_old_lake_is_converted_once(spark: SparkSession, old: Path, tmp_path: Path) -> None:
    assert convert(spark, str(old), str(tmp_path / "new")) == 10
    assert convert(spark, str(old), str(tmp_path / "new")) == 0
    lake = Lake(str(tmp_path / "new"))
    found = lake.dataset().to_table(columns=["trace_offset", "trace_index"]).to_pylist()
    places = sorted(tuple(row.values()) for row in found)
    assert places == [(offset, 0) for offset in range(10)]
    assert delta_log.offsets(tmp_path / "new" / "events") == list(range(10))
    # A repeated batch is recognized.
    assert (lake.query_of("trace"), lake.tables["events"].last_batch(QUERY)) == (QUERY, 2)


def test_a_conversion_that_was_killed_continues(
    spark: SparkSession, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("amqp_broker.pipeline.old_lake.OldLake.copy_checkpoints", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        convert(spark, str(old), str(tmp_path / "new"))
    monkeypatch.undo()
    convert(spark, str(old), str(tmp_path / "new"))
    assert delta_log.offsets(tmp_path / "new" / "events") == list(range(10))
    assert Lake(str(tmp_path / "new")).query_of("trace") == QUERY


def test_only_an_old_lake_is_converted_and_only_to_a_new_one(
    spark: SparkSession, old: Path, lake: Lake, tmp_path: Path
) -> None:
    with pytest.raises(LakeRefused, match="there is no lake of an older version at"):
        convert(spark, str(tmp_path), str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    with pytest.raises(LakeRefused, match="is not empty: a lake is converted to a new one only"):
        convert(spark, str(old), lake.path)
    with pytest.raises(LakeRefused, match="is of an older version: `amqp-broker pipeline convert"):
        Lake(str(old)).dataset()
