from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path


def test_no_flipped_bit_makes_a_broker_deliver_a_changed_message(tmp_path: Path) -> None:
    """`python -m tests.store.flips` tries more flips."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.flips", str(tmp_path), "7", "24"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, ((tmp_path / "case").read_text("utf-8"), done.stderr)
    outcomes = ast.literal_eval(done.stdout)
    assert sum(outcomes.values()) == 24
    assert outcomes["records"] > 2, outcomes
