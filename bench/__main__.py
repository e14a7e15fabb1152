"""`python -m bench`: measure amqp-broker beside RabbitMQ, and its cost per message in several settings."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import figures_report
from bench.benchmarks import ROWS
from bench.flat import FLAT_ROWS, FlatFigures, measure_flat
from bench.generator import MissingToolError, build_generator
from bench.managed import measure_managed
from bench.memory import measure_memory
from bench.side_by_side import QUICK, Effort, Figures, Say, compare
from bench.subjects import Subject, amqp_broker, compiled, rabbitmq, running
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES

UNAVAILABLE = 69  # sysexits.h: a requirement is missing
OPEN_FILES = 30_000  # ten thousand connections, and some more


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    names = [row.name for row in ROWS] + [row.name for row in FLAT_ROWS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of each row, with fewer messages")
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="runs of each row, whose median counts (default 5)"
    )
    parser.add_argument("--rows", metavar="NAME,...", help=f"only these rows: {', '.join(names)}")
    parser.add_argument(
        "--rabbitmq", metavar="VERSION,...", default="4.3", help=f"of {', '.join(ORACLES)} (default 4.3); none: ''"
    )
    parser.add_argument(
        "--compiled",
        action="store_true",
        help="measure the build of `make compiled`, too, for the goals",
    )
    parser.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="OPTIONS",
        help="measure amqp-broker with these options of `serve`, too (for example '--store-sync os')",
    )
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        type=running,
        metavar="NAME=URL,PID",
        help="measure a broker that runs already, too",
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to a file")
    arguments = parser.parse_args(words)
    arguments.rows = arguments.rows.split(",") if arguments.rows else names
    if unknown := set(arguments.rows) - set(names):
        parser.error(f"no row is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    arguments.rabbitmq = arguments.rabbitmq.split(",") if arguments.rabbitmq else []
    if unknown := set(arguments.rabbitmq) - ORACLES.keys():
        parser.error(f"there is no RabbitMQ {', '.join(sorted(unknown))}; there are {', '.join(ORACLES)}")
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    return arguments


def subjects_of(arguments: argparse.Namespace) -> list[Subject]:
    """Return the brokers to be measured, first the one that has the goals. Raise MissingToolError."""
    variants = [amqp_broker(f"amqp-broker {options}", tuple(shlex.split(options))) for options in arguments.variant]
    try:
        rabbitmqs = [rabbitmq(version) for version in arguments.rabbitmq]
    except Unavailable as reason:
        raise MissingToolError(f"{reason}. Measure without it: --rabbitmq ''") from None
    builds = [compiled()] if arguments.compiled else []
    return [*builds, amqp_broker(), *variants, *rabbitmqs, *arguments.beside]


def allow_open_files() -> None:
    """Raise the limit of open files, which brokers and generator inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> int:
    arguments = parse_arguments()
    effort = QUICK if arguments.quick else Effort(repeats=arguments.repeats)
    try:
        subjects = subjects_of(arguments)
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

    figures, flat = measure(arguments.rows, subjects, effort, say)
    if arguments.json:
        found = figures_report.as_json(ROWS, figures, FLAT_ROWS, flat)
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return print_report(arguments, subjects, figures, flat)


def measure(names: list[str], subjects: list[Subject], effort: Effort, say: Say) -> tuple[Figures, FlatFigures]:
    """Measure the rows of these names."""
    rows = [row for row in ROWS if row.name in names]
    flat_rows = [row for row in FLAT_ROWS if row.name in names]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        figures = Figures()
        measure_memory(rows, subjects, effort, Path(folder), figures, say)
        compare(rows, subjects, effort, Path(folder), figures, say)
        measure_managed(rows, subjects, effort, Path(folder), figures, say)
        return figures, measure_flat(flat_rows, effort, Path(folder), say)


def print_report(arguments: argparse.Namespace, subjects: list[Subject], figures: Figures, flat: FlatFigures) -> int:
    machine = figures_report.machine()
    print(f"\n{machine['cores']} x {machine['cpu']}, {machine['system']}; CPython {machine['python']}", end="")
    print(f"; {'one short run' if arguments.quick else 'medians'}\n")
    are_all_met = True
    if rows := [row for row in ROWS if row.name in arguments.rows]:
        print(figures_report.comparison_table(rows, [subject.name for subject in subjects], figures), end="\n\n")
        text, are_all_met = figures_report.goals_table(rows, subjects[0].name, figures)
        print("Goals\n" + text, end="\n\n")
    if flat_rows := [row for row in FLAT_ROWS if row.name in arguments.rows]:
        text, is_flat = figures_report.flat_table(flat_rows, flat)
        are_all_met = are_all_met and is_flat
        print("Stays flat: CPU per message of amqp-broker\n" + text, end="\n\n")
    for failure in figures.failures + flat.failures:
        print("failed:", failure)
    is_failed = bool(figures.failures or flat.failures) or (arguments.check and not are_all_met)
    return 1 if is_failed else os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
