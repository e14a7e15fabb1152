"""The cost and speed of management, on real brokers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.benchmarks import ROWS
from bench.managed import measure_managed
from bench.side_by_side import Effort, Figures
from bench.subjects import amqp_broker

MANAGED_ROWS = [row for row in ROWS if row.is_managed]


def test_rows_of_management_have_separate_loads() -> None:
    assert [row.name for row in MANAGED_ROWS if row.load or row.beside or row.before] == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="the load generator needs a C compiler")
def test_each_row_of_management_has_a_figure_per_process(tmp_path: Path) -> None:
    figures, said = Figures(), list[str]()
    measure_managed(MANAGED_ROWS, [amqp_broker()], Effort(repeats=2, divisor=20), tmp_path, figures, said.append)
    assert figures.failures == []
    assert {name: len(samples["amqp-broker"]) for name, samples in figures.samples.items()} == {
        row.name: 2 for row in MANAGED_ROWS
    }
    ready, listed = figures.median(MANAGED_ROWS[0], "amqp-broker"), figures.median(MANAGED_ROWS[3], "amqp-broker")
    assert ready is not None
    assert listed is not None
    assert 0.05 < ready.value < 30
    assert 1 < listed.value < 3000


def test_a_silent_broker_is_a_failure(tmp_path: Path) -> None:
    silent = amqp_broker(options=("--no-control",))
    figures = Figures()
    rows = [row for row in MANAGED_ROWS if row.name == "ping"]
    measure_managed(rows, [silent], Effort(repeats=1), tmp_path, figures, lambda text: None)
    assert figures.samples == {}
    assert [failure.partition(":")[0] for failure in figures.failures] == ["management, amqp-broker"]
