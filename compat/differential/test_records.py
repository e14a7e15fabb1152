"""The recorded transcripts."""

from __future__ import annotations

import pytest

from compat.differential.lab import STOPPED
from compat.differential.suite import WIRE
from compat.oracle.records import load
from compat.oracles.oracle import ORACLES


@pytest.mark.parametrize("oracle", ORACLES)
def test_every_scenario_was_played_to_its_end(oracle: str) -> None:
    recorded = load(WIRE, oracle)
    stopped = [question for question, answers in recorded.items() if STOPPED in str(answers)]
    assert recorded
    assert stopped == []
