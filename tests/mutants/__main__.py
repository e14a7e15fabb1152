"""Plants small bugs in the core and reports the tests that catch them: `python -m tests.mutants [--count N] [--seed
N]`.

The matrix of mutants and tests is stored in `.cache/mutants/matrix.json`; `--report` prints it again. Of the known
tools, mutmut stops at the first failed test, and cosmic-ray restarts the suite for each mutant, so neither reports in
reasonable time which tests catch what.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import Phase, settings

from tests.mutants.coverage_of_tests import CACHE, CORE, FOLDERS, ROOT, last, measure
from tests.mutants.matrix import Change, ChangedLine, Matrix, Outcome, PlantedBug
from tests.mutants.operators import sample
from tests.mutants.survivors_report import print_report
from tests.simulation.planting import PLANTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the selection")
    parser.add_argument("--only", default="", metavar="TEXT", help="only mutants whose names contain this")
    parser.add_argument("--planted", action="store_true", help="add the planted bugs of the simulation: a minute each")
    parser.add_argument("--minutes", type=float, default=30, help="longest duration")
    parser.add_argument("--measure", action="store_true", help="only find which tests run which lines")
    parser.add_argument("--report", action="store_true", help="only print the last matrix")
    options = parser.parse_args()
    if options.measure:
        measure()
        return 0
    if not last():
        subprocess.run([sys.executable, "-m", "tests.mutants", "--measure"], cwd=ROOT, check=True)
    measured = last()
    assert measured is not None
    if not options.report:
        changes: list[Change] = [ChangedLine(mutant) for mutant in sample(FOLDERS, ROOT, options.count, options.seed)]
        if options.planted:
            changes += planted()
        matrix = Matrix([one for one in changes if options.only in one.name], measured, options.minutes * 60)
        # Shrinking to the smallest failing example takes too long.
        settings.register_profile(
            "mutants",
            max_examples=50,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
        )
        os.environ["HYPOTHESIS_PROFILE"] = "mutants"
        # A separate folder for `tmp_path`, which each fork empties; texts of failures are not needed.
        quick = [
            "--basetemp",
            str(CACHE / "tmp"),
            "--assert=plain",
            "--tb=native",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:faulthandler",
        ]
        pytest.main([*CORE, *quick], plugins=[matrix])
    print_report(msgspec.json.decode((CACHE / "matrix.json").read_bytes(), type=list[Outcome]), measured)
    return 0


def planted() -> list[Change]:
    # Importing this module imports the modules of bugs, which fill the list.
    importlib.import_module("tests.simulation.test_planted_bugs")
    return [PlantedBug(plant) for plant in PLANTS.values()]


if __name__ == "__main__":
    sys.exit(main())
