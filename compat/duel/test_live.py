"""Programs of the day agree with each live oracle."""

from __future__ import annotations

import subprocess
import sys

import pytest

from compat.oracle.profiles import ORACLES_OF
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES

PROGRAMS = 60


@pytest.mark.verify
@pytest.mark.timeout(900)
@pytest.mark.parametrize("profile", ORACLES_OF)
def test_programs_of_the_day_have_the_same_answers(profile: str) -> None:
    try:
        for oracle in ORACLES_OF[profile]:
            ORACLES[oracle].have()
    except Unavailable as reason:
        pytest.skip(str(reason))
    command = [sys.executable, "-m", "compat.duel", "--compat", profile, "--programs", str(PROGRAMS), "--today"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout
