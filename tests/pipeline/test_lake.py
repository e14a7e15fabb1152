"""Pieces cover each other, and no crash loses or duplicates rows."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amqp_broker.pipeline.event_rows import SCHEMA
from amqp_broker.pipeline.lake import PIECES_MAX, Hour, Lake, Piece, uncovered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def rows(spark: SparkSession, offsets: range, time: datetime = NOON) -> DataFrame:
    names = [field.name for field in spark.createDataFrame([], SCHEMA).schema]
    blank = dict.fromkeys(names)
    told = [{**blank, "time": time, "trace_queue": "t", "trace_offset": offset} for offset in offsets]
    return spark.createDataFrame([tuple(row[name] for name in names) for row in told], SCHEMA)


def offsets_in(lake: Lake, since: datetime | None = None, until: datetime | None = None) -> list[int]:
    found = lake.read("events", since, until).select("trace_offset").collect()
    return sorted(row.trace_offset for row in found)


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


def test_a_repeated_batch_replaces_only_itself(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path))
    assert offsets_in(lake) == []
    lake.write("events", rows(spark, range(5)), "time", Piece("job", 0, 0))
    lake.write("events", rows(spark, range(50, 52)), "time", Piece("other", 1, 1))
    for _ in range(2):
        later = rows(spark, range(8, 10), NOON + timedelta(hours=1))
        lake.write("events", rows(spark, range(5, 8)).union(later), "time", Piece("job", 1, 1))
    assert offsets_in(lake) == [*range(10), 50, 51]
    assert lake.hours("events") == [Hour("2026-11-21", 12), Hour("2026-11-21", 13)]
    assert offsets_in(lake, since=NOON + timedelta(minutes=61)) == [8, 9]
    assert offsets_in(lake, until=NOON + timedelta(minutes=59)) == [*range(8), 50, 51]


def test_compacting_keeps_each_row_once_even_if_interrupted(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path))
    hour = Hour.of(NOON)
    for number in range(3):
        lake.write("events", rows(spark, range(number * 2, number * 2 + 2)), "time", Piece("job", number, number))
    folder = tmp_path / "events" / hour.path
    kept = tmp_path / "kept"
    shutil.copytree(folder / "piece=job-1-1", kept)
    assert lake.compact("events", "job", 2, is_over=True) == 1
    assert sorted(lake.pieces("events", hour)) == [Piece("job", 0, 1), Piece("job", 2, 2)]
    assert offsets_in(lake) == list(range(6))
    # As if the process had been killed before it removed the joined pieces.
    shutil.copytree(kept, folder / "piece=job-1-1")
    assert offsets_in(lake) == list(range(6))
    lake.compact("events", "job", 2)
    assert sorted(lake.pieces("events", hour)) == [Piece("job", 0, 1), Piece("job", 2, 2)]


def test_the_newest_hour_is_compacted_only_if_it_has_many_pieces(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path))
    hour = Hour.of(NOON)
    lake.write("events", rows(spark, range(1)), "time", Piece("job", 0, 0))
    folder = tmp_path / "events" / hour.path
    for number in range(1, PIECES_MAX):
        shutil.copytree(folder / "piece=job-0-0", folder / f"piece=job-{number}-{number}")
    assert lake.compact("events", "job", PIECES_MAX) == 0
    shutil.copytree(folder / "piece=job-0-0", folder / f"piece=job-{PIECES_MAX}-{PIECES_MAX}")
    assert lake.compact("events", "job", PIECES_MAX + 1) == 1
    assert lake.pieces("events", hour) == [Piece("job", 0, PIECES_MAX)]
    assert len(offsets_in(lake)) == PIECES_MAX + 1
