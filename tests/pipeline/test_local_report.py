"""DuckDB runs Spark's queries; test_report_tables.py compares the results."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_slice import Slice
from amqp_broker.pipeline.local_report import LocalReport, of_duckdb
from amqp_broker.pipeline.report_tables import TABLES


def test_functions_without_a_macro_are_replaced() -> None:
    query = "SELECT explode(a), element_at(percentile(b, array(0.5, 0.9)), 2)"
    assert of_duckdb(query) == "SELECT unnest(a), list_extract(percentile(b, list_value(0.5, 0.9)), 2)"


def test_tables_replace_those_of_an_older_report(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "part-00000-of-spark.parquet").write_bytes(b"old")
    names: list[str] = []
    with LocalReport(lake) as report:
        report.write(str(tmp_path), names.append)
        rows = report.select("SELECT count(*) AS rows FROM queues")
    assert names == list(TABLES)
    [file] = (tmp_path / "queues").iterdir()
    assert [{"rows": pq.read_metadata(file).num_rows}] == rows


def test_a_report_of_no_events_has_empty_tables(lake: Lake) -> None:
    with LocalReport(lake, Slice(until=datetime(2020, 1, 1, tzinfo=UTC))) as report:
        assert [report.select(f"SELECT * FROM {name}") for name in TABLES] == [[]] * len(TABLES)
