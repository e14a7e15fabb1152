"""A slice of guided fuzzing of each target, with a fixed seed, and planted faults that it has to find."""

from __future__ import annotations

import platform
import sys

import pytest

from tests.fuzzing import corpus, runs
from tests.fuzzing.planted import FAULTS
from tests.fuzzing.target import NAMES, attempt, load

# atheris has no wheels for others.
HAS_ATHERIS = (
    sys.platform == "linux"
    and platform.machine() == "x86_64"
    and sys.version_info < (3, 14)
    and platform.python_implementation() == "CPython"
)
pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(not HAS_ATHERIS, reason="atheris has no wheel for this Python and system"),
    pytest.mark.timeout(600),
]
SEED = 34
# How often a target is executed in this slice: some take milliseconds.
EXECUTIONS = {"session": 400, "http": 1000, "eval": 500, "store_file": 1000, "snapshot": 2000, "definitions": 2000}
EXECUTIONS_OF_OTHERS = 8000


@pytest.mark.parametrize("name", NAMES)
def test_a_slice_finds_nothing(name: str) -> None:
    run = runs.run(name, EXECUTIONS.get(name, EXECUTIONS_OF_OTHERS), SEED)
    assert not run.is_failed, run.output[-6000:]
    assert run.executions >= EXECUTIONS.get(name, EXECUTIONS_OF_OTHERS)
    assert len(run.found) >= len(corpus.read(name)) // 2


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    run = runs.run(name, FAULTS[name].executions, SEED, planted=name)
    assert run.failed is not None, run.output[-2000:]
    # Without the fault, the input is one as any other.
    attempt(load(name), run.failed)
