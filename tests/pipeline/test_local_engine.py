"""The engine of this process does the jobs of a lake; test_engine.py compares it with Spark."""

from __future__ import annotations

from pathlib import Path

from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_slice import Slice
from amqp_broker.pipeline.local_archive import LocalArchive
from amqp_broker.pipeline.local_engine import LocalEngine
from tests.pipeline.generated import Event


def test_a_slice_is_exported(lake: Lake, events: list[Event], tmp_path: Path) -> None:
    count = LocalEngine(lake).export(Slice(vhost="plain"), str(tmp_path / "new"))
    assert count == sum(event["vhost"] == "plain" for event in events) > 0
    assert len(list((tmp_path / "new").rglob("*.parquet"))) == 1


def test_an_export_of_nothing_writes_no_file(tmp_path: Path) -> None:
    assert LocalEngine(Lake(str(tmp_path / "lake"))).export(Slice(), str(tmp_path / "new")) == 0
    assert list((tmp_path / "new").iterdir()) == []


def test_an_archive_takes_the_options_of_its_source(tmp_path: Path) -> None:
    archive = LocalEngine(Lake(str(tmp_path))).archive({"queue": "a, b"}, "job", with_bodies=False)
    assert isinstance(archive, LocalArchive)
    assert archive.queues == ["a", "b"]
    assert archive.options["bodies"] == "false"
