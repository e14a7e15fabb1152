"""Random programs at this broker and at live RabbitMQs."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A part of the tests, as in CI, plays fewer programs, of one seed: a new difference is a find, and no reason to refuse
# a change that has nothing to do with it.
PROGRAMS, PROGRAMS_OF_DAY = 200, 100
SEED = 739946


@pytest.mark.verify
@pytest.mark.parametrize("oracle", ["4.0", "4.3"])
def test_random_programs_are_answered_as_by_rabbitmq(oracle: str, day: int | None) -> None:
    if day is None:
        chosen = ["--programs", str(PROGRAMS), "--today"]
    else:
        chosen = ["--programs", str(PROGRAMS_OF_DAY), "--seed", str(SEED)]
    command = [sys.executable, "-m", "compat.duel", "--oracle", oracle, *chosen]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stdout + run.stderr
