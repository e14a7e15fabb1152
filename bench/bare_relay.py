"""Measure a relay that is no broker: no broker takes less of the processor.

    python -m bench.bare_relay [--repeats 5]

Prints a table for docs/performance.md with a few rows of the benchmark. The relay is a program in C that copies octets
from one socket to another; beside its rate and processor time per message stands the time of a copy in memory. At a
fixed rate, one more line has a relay that sleeps a moment after each read, and so reads several messages at once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.generator import PROGRAM, build

SOURCES: Final = Path(__file__).with_name("relay")
# Octets of the frames around the body in a publish of the load generator.
ENVELOPE_BYTES: Final = 84


class Row(NamedTuple):
    title: str
    body: int
    messages: int
    rate: int = 0
    nap_us: int = 0


ROWS: Final = (
    Row("16 B", 16, 4_000_000),
    Row("1 KiB", 1024, 1_000_000),
    Row("64 KiB", 65_536, 40_000),
    Row("20 000 messages of 100 B per second", 100, 60_000, 20_000),
    Row("the same, with a pause of 0.1 ms after each read", 100, 60_000, 20_000, 100),
)


class Sample(NamedTuple):
    """Messages per second, and the means of a message. `copy_us` is the time of a copy in memory."""

    rate: float
    cpu_us_per_message: float
    reads_per_message: float
    copy_us: float


def run(row: Row) -> Sample:
    """Measure a row once."""
    program = build(SOURCES, PROGRAM.with_name("relay"))
    words = [str(row.body + ENVELOPE_BYTES), str(row.messages), str(row.rate), str(row.nap_us)]
    done = subprocess.run([str(program), *words], check=True, capture_output=True, encoding="utf-8", timeout=120)
    return Sample(**json.loads(done.stdout))


def line(row: Row, samples: Sequence[Sample]) -> str:
    """Return the medians of a row as a line of the table."""
    rate, cpu_us, reads, copy_us = (median(values) for values in zip(*samples, strict=True))
    shown = f"{rate / 1000:.0f} k/s" if rate >= 100_000 else f"{rate / 1000:.1f} k/s"
    return f"| {row.title} | {shown} | {cpu_us:.2f} µs | {reads:.2f} | {copy_us:.2f} µs |"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bare_relay", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs, whose median counts (default 5)")
    options = parser.parse_args(words)
    print("| a bare relay | rate | processor time | reads per message | a copy in memory |")
    print("|---|--:|--:|--:|--:|")
    for row in ROWS:
        print(line(row, [run(row) for _ in range(options.repeats)]), flush=True)


if __name__ == "__main__":
    main()
