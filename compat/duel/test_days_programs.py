"""Random programs of the day, at this broker and at live RabbitMQs."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAMS = 200


@pytest.mark.verify
@pytest.mark.parametrize("oracle", ["4.0", "4.3"])
def test_the_programs_of_the_day_are_answered_as_by_rabbitmq(oracle: str) -> None:
    command = [sys.executable, "-m", "compat.duel", "--oracle", oracle, "--programs", str(PROGRAMS), "--today"]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stdout + run.stderr
