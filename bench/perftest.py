"""Measure amqp-broker and RabbitMQ in turn with PerfTest, which is RabbitMQ's own load generator.

    python -m bench.perftest [--compiled] [--seconds 15] [--repeats 3]

Prints a table for docs/performance.md: the rate that arrives, or that is confirmed where there is no consumer, and the
processor time per message of the broker and of PerfTest. Where PerfTest takes most of two processors, it is the limit.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.generator import LoadError, cpu_seconds_of
from bench.row import REFERENCE
from bench.subjects import Subject, amqp_broker, compiled, rabbitmq
from compat.brokers import BrokerProcess

FOLDER: Final = Path(__file__).parents[1] / "compat" / "perftest"
MAIN: Final = ("java", "-cp", "target/lib/*", "com.rabbitmq.perf.PerfTest")
# The options of each row, after the address.
COMMAND_LINES: Final = (
    "-x 1 -y 1 -a",
    "-x 1 -y 2 -a",
    "-x 1 -y 1",
    "-x 1 -y 1 -f persistent -c 100 -q 200 -s 1000",
    "-x 10 -y 10 --queue-pattern q-%d --queue-pattern-from 1 --queue-pattern-to 10 -c 100 -q 200",
    "-x 1 -y 1 --quorum-queue -u quorum -c 100 -q 200 -s 1000",
    "-x 1 -y 1 --stream-queue -u stream -c 100 -q 200 -s 1000",
)


class Sample(NamedTuple):
    """One run: messages per second, and µs of processor time per message of the broker and of PerfTest."""

    rate: float
    broker_us: float
    generator_us: float


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.perftest", description=__doc__)
    parser.add_argument("--compiled", action="store_true", help="measure the build of `make compiled`, too")
    parser.add_argument("--seconds", type=int, default=15, help="length of a run (default 15)")
    parser.add_argument("--repeats", type=int, default=3, help="runs, whose median counts (default 3)")
    options = parser.parse_args(words)
    subprocess.run(["mvn", "--quiet", "--batch-mode", "process-classes"], cwd=FOLDER, check=True)
    subjects = [*([compiled()] if options.compiled else []), amqp_broker(), rabbitmq(REFERENCE.partition(" ")[2])]
    print("| PerfTest's options | " + " | ".join(subject.name for subject in subjects) + " |")
    print("|---|" + "--:|" * len(subjects))
    for line in COMMAND_LINES:
        samples: dict[str, list[Sample]] = {subject.name: [] for subject in subjects}
        for _ in range(options.repeats):
            for subject in subjects:
                samples[subject.name].append(measure(subject, line, options.seconds))
        print(f"| `{line}` | " + " | ".join(text(found) for found in samples.values()) + " |", flush=True)


def measure(subject: Subject, line: str, seconds: int) -> Sample:
    """Run PerfTest at a new broker. Raise LoadError."""
    with tempfile.TemporaryDirectory() as folder:
        broker = subject.make(Path(folder))
        assert isinstance(broker, BrokerProcess)
        with broker.running():
            before_s, children_s = cpu_seconds_of(broker.pid), children_cpu_seconds()
            command = [*MAIN, "--uri", broker.url.rstrip("/"), "--time", str(seconds), *line.split()]
            done = subprocess.run(command, cwd=FOLDER, capture_output=True, encoding="utf-8", check=False)
            broker_s, generator_s = cpu_seconds_of(broker.pid) - before_s, children_cpu_seconds() - children_s
            if done.returncode:
                raise LoadError(f"PerfTest {line}: {done.stdout[-500:]}{done.stderr[-500:]}")
            rate = rate_in(done.stdout)
            return Sample(rate, broker_s / (rate * seconds) * 1e6, generator_s / (rate * seconds) * 1e6)


def rate_in(printed: str) -> float:
    """Return the average rate of PerfTest's last lines: received, or sent if nothing was. Raise LoadError."""
    for what in ("receiving", "sending"):
        found = re.findall(rf"{what} rate avg: (\d+) msg/s", printed)
        if found and float(found[-1]):
            return float(found[-1])
    raise LoadError(f"PerfTest has printed no rate: {printed[-500:]}")


def children_cpu_seconds() -> float:
    """Return the processor time of programs that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def text(samples: list[Sample]) -> str:
    rate, broker_us, generator_us = (median(figures) for figures in zip(*samples, strict=True))
    return f"{rate / 1000:.1f} k/s, {broker_us:.0f} µs (PerfTest {generator_us:.0f})"


if __name__ == "__main__":
    main()
