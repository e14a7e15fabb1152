"""Runs the rows on all brokers in turn, so that other load of the machine affects all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.generator import Load, LoadError, Outcome, run_load
from bench.row import CPU_US, MICROSECONDS, STALL, Row, Sample, median
from bench.subjects import Broker, Subject

SETTLE_S = 1.0  # time until a broker's memory is stable
PAUSE_S = 0.3  # time for a broker to clean up after a run
ROW_S = 60.0  # a row that takes longer is not repeated


@dataclass
class Figures:
    """All samples so far, by row and broker."""

    samples: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, row: Row, broker: str, sample: Sample) -> None:
        self.samples.setdefault(row.name, {}).setdefault(broker, []).append(sample)

    def median(self, row: Row, broker: str) -> Sample | None:
        samples = self.samples.get(row.name, {}).get(broker)
        return median(samples) if samples else None


@dataclass(frozen=True)
class Effort:
    """Number and length of the runs: the whole measurement, or a quick one."""

    repeats: int = 5
    divisor: int = 1

    def cut(self, load: Load) -> Load:
        """Return the load with fewer messages."""
        return replace(
            load,
            messages=max(load.messages // self.divisor, 1),
            sessions=load.sessions // self.divisor,
            receive=load.receive // self.divisor,
        )


QUICK = Effort(repeats=1, divisor=2)

Say = Callable[[str], None]


def compare(
    rows: Iterable[Row], subjects: Iterable[Subject], effort: Effort, folder: Path, figures: Figures, say: Say
) -> None:
    """Add the figures of all rows that have a load."""
    loaded = [(row, row.load) for row in rows if row.load is not None]
    if not loaded:
        return
    brokers = {subject.name: subject.make(folder / subject.name.replace(" ", "-")) for subject in subjects}
    try:
        for broker in brokers.values():
            broker.start()
            warm_up(broker)
        for row, load in loaded:
            _measure(row, load, brokers, effort, figures, say)
    except LoadError as error:
        figures.failures.append(f"a first load: {error}")
    finally:
        for broker in brokers.values():
            broker.kill()


def _measure(row: Row, load: Load, brokers: Mapping[str, Broker], effort: Effort, figures: Figures, say: Say) -> None:
    pids = {name: broker.pid for name, broker in brokers.items()}
    deadline = time.monotonic() + ROW_S
    for repeat in range(effort.repeats):
        if repeat and time.monotonic() > deadline:
            break
        for name, broker in brokers.items():
            if name in row.missing_in:
                continue
            time.sleep(PAUSE_S)
            try:
                if row.before is not None:
                    run_load(effort.cut(row.before), broker, pids[name])
                with _running(row.beside and effort.cut(row.beside), broker, pids[name]):
                    outcome = run_load(effort.cut(load), broker, pids[name])
            except LoadError as error:
                figures.failures.append(f"{row.name}, {name}: {error}")
                say(f"{name}: {row.title}: {error}")
                continue
            sample = sample_of(outcome, row)
            figures.add(row, name, sample)
            say(f"{name}: {row.title}: {row.unit.text(sample.value)}")


@contextmanager
def _running(load: Load | None, broker: Broker, pid: int) -> Iterator[None]:
    """Run a load on the broker in the background."""
    if load is None:
        yield
        return
    with ThreadPoolExecutor(1) as executor:
        beside = executor.submit(run_load, load, broker, pid)
        yield
        beside.result()


def sample_of(outcome: Outcome, row: Row) -> Sample:
    value = max(outcome.publish_rate, outcome.receive_rate)
    is_paced = row.unit in (MICROSECONDS, STALL, CPU_US)
    has_latency = is_paced or (row.load is not None and row.load.callers > 0)
    if row.unit is CPU_US:
        value = outcome.broker_cpu_us_per_message
    elif is_paced:
        assert outcome.latency_p99_us is not None
        assert outcome.latency_p999_us is not None
        value = outcome.latency_p999_us if row.unit is STALL else outcome.latency_p99_us
    return Sample(
        value,
        cpu_us=outcome.broker_cpu_us_per_message,
        # At full speed, latency is waiting time, which says nothing about the broker. That of a call is its duration.
        p50_us=outcome.latency_p50_us if has_latency else None,
        p99_us=outcome.latency_p99_us if has_latency else None,
        generator_cpu_us=outcome.own_cpu_us_per_message,
        generator_share=outcome.own_cpu_share,
        elsewhere_share=outcome.elsewhere_share,
    )


def warm_up(broker: Broker) -> None:
    """Run a short load first: the first messages of a process cost more."""
    run_load(Load(messages=20_000, window=1000, ack=1, prefetch=200), broker, broker.pid)


def fill(broker: Broker, messages: int, prefix: str = "full", argument: str = "") -> None:
    """Leave a queue with this number of messages in the broker."""
    load = Load(consumers=0, messages=messages, window=10_000, prefix=prefix, argument=argument, keep=True, seconds=300)
    run_load(load, broker, broker.pid)


def memory_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
