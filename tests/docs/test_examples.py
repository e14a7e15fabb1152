from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amqp_broker.pipeline.report_tables import TABLES
from tests.spark_session import spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark"]
EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline.py"


def test_the_example_ends_with_a_report(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLE))
    # At least a publish, a confirm, a delivery and an ack or nack for each of 300 orders.
    counts = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines() if line.endswith("poisoned")]
    assert len(counts) == 1
    assert counts[0] >= 1200
    assert "Dead letters" in (tmp_path / "trace" / "report.html").read_text("utf-8")
    assert {path.name for path in (tmp_path / "trace" / "report").iterdir()} == set(TABLES)
    runpy.run_path(str(EXAMPLE.with_name("lake.py")))
    told = dict(line.split() for line in capsys.readouterr().out.splitlines() if len(line.split()) == 2)
    assert sum(map(int, told.values())) == counts[0]
    assert told["publish"] == "300"
