"""Random programs at this broker and at live RabbitMQs."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAMS = 200
# A third of the tests, as in CI, plays programs of this seed: a new difference is a find, and no reason to refuse a
# change that has nothing to do with it.
SEED = 739946


@pytest.mark.verify
@pytest.mark.parametrize("oracle", ["4.0", "4.3"])
def test_random_programs_are_answered_as_by_rabbitmq(oracle: str, pytestconfig: pytest.Config) -> None:
    command = [sys.executable, "-m", "compat.duel", "--oracle", oracle, "--programs", str(PROGRAMS)]
    is_whole = pytestconfig.getoption("--third") is None
    command += ["--today"] if is_whole else ["--seed", str(SEED)]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stdout + run.stderr
