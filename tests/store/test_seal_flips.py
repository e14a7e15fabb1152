from __future__ import annotations

import ast
from pathlib import Path

from tests.store.stores import outcomes_of


def test_no_flipped_bit_makes_a_broker_deliver_a_changed_message(tmp_path: Path) -> None:
    """`python -m tests.store.flips` tries more flips."""
    outcomes = ast.literal_eval(outcomes_of("tests.store.flips", tmp_path, seed=7, count=24))
    assert sum(outcomes.values()) == 24
    assert outcomes["records"] > 2, outcomes
