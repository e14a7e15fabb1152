"""Fuzz the broker: `python -m tests.fuzzing [--target NAME] [--executions N] [--seed N]`.

Without `--target`, mutated conversations are thrown at sessions for `--seconds` (`conversations.py`); `--case` repeats
one of a seed. With a target (or `all`), atheris looks for inputs that reach new code, from those in `corpus` on;
`--keep` adds what it found to them, and `--input FILE` gives a target one input. Exit code 1 for a failure.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
import time
from pathlib import Path

from tests.fuzzing import conversations, corpus, runs
from tests.fuzzing.target import NAMES, Failure, attempt, load, silence

FAILURES = Path(__file__).parents[2] / ".cache" / "fuzzing"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description="Fuzz the broker.")
    parser.add_argument("--target", choices=[*NAMES, "all"], help="fuzz this, guided by coverage")
    parser.add_argument("--executions", type=int, default=100_000, help="of each target (default: 100000)")
    parser.add_argument("--keep", action="store_true", help="add the inputs that reach new code to the corpus")
    parser.add_argument("--input", type=Path, metavar="FILE", help="give the target this input only")
    parser.add_argument("--seconds", type=float, default=20, help="duration without a target (default: 20)")
    parser.add_argument("--seed", type=int, help="first seed (default: from the clock)")
    parser.add_argument("--case", type=int, help="without a target, only this case of the seed")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else time.time_ns() // 1_000_000 % 1_000_000
    silence()
    try:
        if options.target is None:
            converse(seed, options.case, options.seconds)
        elif options.input is not None:
            attempt(load(options.target), options.input.read_bytes())
        else:
            for name in NAMES if options.target == "all" else [options.target]:
                fuzz(name, options.executions, seed, is_kept=options.keep)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def converse(seed: int, case: int | None, seconds: float) -> None:
    print(f"seed {seed}, {seconds:g} s", flush=True)
    tried = conversations.fuzz(seed, itertools.count() if case is None else [case], seconds)
    print(f"{tried} cases, no failure")


def fuzz(name: str, executions: int, seed: int, *, is_kept: bool) -> None:
    """Fuzz a target. Raise Failure."""
    began = time.monotonic()
    print(f"{name}: seed {seed}", flush=True)
    run = runs.run(name, executions, seed, is_shown=True)
    if run.failed is not None:
        FAILURES.mkdir(parents=True, exist_ok=True)
        path = FAILURES / f"{name}-{hashlib.sha256(run.failed).hexdigest()[:12]}"
        path.write_bytes(run.failed)
        raise Failure(f"{run.output[-6000:]}\nagain: python -m tests.fuzzing --target {name} --input {path}")
    if run.is_failed:
        raise Failure(run.output[-6000:])
    print(f"{name}: {run.executions} executions in {time.monotonic() - began:.0f} s, no failure", flush=True)
    if is_kept:
        target = load(name)
        kept = corpus.minimised(target, [*target.seeds(), *corpus.read(name), *run.found])
        corpus.write(name, kept)
        print(f"{name}: {len(kept)} inputs are kept, {corpus.path_of(name).stat().st_size} octets")


if __name__ == "__main__":
    sys.exit(main())
