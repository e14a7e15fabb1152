"""The memory of objects is measured on a real broker."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.benchmarks import ROWS
from bench.memory import measure_memory
from bench.side_by_side import Effort, Figures
from bench.subjects import amqp_broker, running

MEMORY_ROWS = [row for row in ROWS if row.is_memory]


@pytest.mark.verify
@pytest.mark.skipif(shutil.which("cc") is None, reason="the load generator needs a C compiler")
def test_each_object_takes_some_memory(tmp_path: Path) -> None:
    figures, said = Figures(), list[str]()
    measure_memory(MEMORY_ROWS, [amqp_broker()], Effort(repeats=1, divisor=10), tmp_path, figures, said.append)
    assert figures.failures == []
    each = {row.name: figures.samples[row.name]["amqp-broker"][0].value for row in MEMORY_ROWS}
    assert 50 < each["queued"] < 1000
    assert 1000 < each["queue"] < 20_000
    assert 5000 < each["connection"] < 200_000


def test_a_broker_that_runs_already_is_left_as_it_is(tmp_path: Path) -> None:
    figures, said = Figures(), list[str]()
    measure_memory(MEMORY_ROWS, [running("x=amqp://localhost,1")], Effort(), tmp_path, figures, said.append)
    assert (figures.samples, figures.failures, said) == ({}, [], [])
