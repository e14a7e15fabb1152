"""`python -m bench`: measure amqp-broker beside RabbitMQ, and its cost per message in several settings."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench import figures_report
from bench.benchmarks import ROWS
from bench.flat import FLAT_ROWS, FlatFigures, measure_flat
from bench.generator import MissingToolError, build_generator
from bench.managed import measure_managed
from bench.side_by_side import BROKERS, QUICK, Brokers, Effort, Figures, compare
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import OLDEST

UNAVAILABLE = 69  # sysexits.h: a requirement is missing
OPEN_FILES = 4096  # a thousand connections, with two ends each


def parse_arguments() -> argparse.Namespace:
    names = [row.name for row in (*ROWS, *FLAT_ROWS)]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of each row, with fewer messages")
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="runs of each row, whose median counts (default 5)"
    )
    parser.add_argument("--rows", metavar="NAME,...", help=f"only these rows: {', '.join(names)}")
    parser.add_argument("--only", choices=sorted(BROKERS), help="measure only this broker")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to a file")
    arguments = parser.parse_args()
    arguments.rows = arguments.rows.split(",") if arguments.rows else names
    if unknown := set(arguments.rows) - set(names):
        parser.error(f"no row is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    return arguments


def brokers_for(only: str | None) -> Brokers:
    brokers = {name: make for name, make in BROKERS.items() if only in (None, name)}
    if "rabbitmq" in brokers:
        try:
            OLDEST.have()
        except Unavailable as reason:
            raise MissingToolError(f"{reason}. Measure with --only amqp-broker.") from None
    return brokers


def allow_open_files() -> None:
    """Raise the limit of open files, which brokers and generator inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> int:
    arguments = parse_arguments()
    effort = QUICK if arguments.quick else Effort(repeats=arguments.repeats)
    rows = [row for row in ROWS if row.name in arguments.rows]
    flat_rows = [row for row in FLAT_ROWS if row.name in arguments.rows and arguments.only != "rabbitmq"]
    try:
        brokers = brokers_for(arguments.only)
        build_generator()
    except MissingToolError as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    allow_open_files()
    # Exit normally on SIGTERM, so that the brokers are stopped.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:4.0f} s  {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        figures = compare(rows, brokers, effort, Path(folder), say) if rows else Figures()
        measure_managed(rows, brokers, effort, Path(folder), figures, say)
        flat = measure_flat(flat_rows, effort, Path(folder), say) if flat_rows else FlatFigures()
    if arguments.json:
        arguments.json.write_text(
            json.dumps(figures_report.as_json(rows, figures, flat_rows, flat), indent=1) + "\n", "utf-8"
        )
    return print_report(arguments, figures, flat)


def print_report(arguments: argparse.Namespace, figures: Figures, flat: FlatFigures) -> int:
    machine = figures_report.machine()
    print(f"\n{machine['cores']} x {machine['cpu']}, {machine['system']}; CPython {machine['python']}", end="")
    print(f"; RabbitMQ {OLDEST.version or 'absent'}; {'one short run' if arguments.quick else 'medians'}\n")
    are_all_met = True
    if rows := [row for row in ROWS if row.name in arguments.rows]:
        print(figures_report.comparison_table(rows, figures), end="\n\n")
        text, are_all_met = figures_report.goals_table(rows, figures)
        if arguments.only != "rabbitmq":
            print("Goals\n" + text, end="\n\n")
    flat_rows = [row for row in FLAT_ROWS if row.name in arguments.rows]
    if flat_rows and arguments.only != "rabbitmq":
        text, is_flat = figures_report.flat_table(flat_rows, flat)
        are_all_met = are_all_met and is_flat
        print("Stays flat: CPU per message of amqp-broker\n" + text, end="\n\n")
    for failure in figures.failures + flat.failures:
        print("failed:", failure)
    is_failed = bool(figures.failures or flat.failures) or (arguments.check and not are_all_met)
    return 1 if is_failed else os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
