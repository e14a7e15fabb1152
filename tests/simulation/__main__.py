"""Longer runs: python -m tests.simulation --seeds 1000 --steps 500 [--first 0]."""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback

import pytest

from tests.simulation.planting import with_small_buffers
from tests.simulation.simulation import Simulation


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="number of runs")
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--steps", type=int, default=300, help="steps of each run")
    parser.add_argument("--faults", action="store_true", help="add and remove fault rules")
    options = parser.parse_args()
    logging.disable()
    with_small_buffers(pytest.MonkeyPatch())
    began, failed = time.monotonic(), 0
    for seed in range(options.first, options.first + options.seeds):
        try:
            Simulation(seed, has_faults=options.faults).run(options.steps)
        except Exception:
            failed += 1
            traceback.print_exc()
    duration_s = time.monotonic() - began
    print(f"{options.seeds} runs of {options.steps} steps in {duration_s:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
