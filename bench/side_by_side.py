"""Runs the rows on both brokers in turn, so that other load of the machine affects both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.benchmarks import MICROSECONDS, QUEUED_MESSAGES, STALL, Row, Sample, median
from bench.generator import Load, LoadError, Outcome, run_load
from compat.brokers import AmqpBroker, BrokerProcess
from compat.oracles.rabbitmq import RabbitMQ

Brokers = dict[str, Callable[[Path], BrokerProcess]]
BROKERS: Brokers = {
    "amqp-broker": AmqpBroker,
    "rabbitmq": lambda folder: RabbitMQ(folder, plugins=("rabbitmq_consistent_hash_exchange",)),
}
SETTLE_S = 1.0  # time until a broker's memory is stable
PAUSE_S = 0.3  # time for a broker to clean up after a run
ROW_S = 60.0  # a row that takes longer is not repeated
LONG_REPEATS = 3  # repetitions of rows that take RabbitMQ long


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
        return replace(load, messages=load.messages // self.divisor, receive=load.receive // self.divisor)


QUICK = Effort(repeats=1, divisor=2)

Say = Callable[[str], None]


def compare(rows: Iterable[Row], brokers: Brokers, effort: Effort, folder: Path, say: Say) -> Figures:
    """Measure all rows but those of management."""
    figures = Figures()
    rows = list(rows)
    for row in rows:
        for repeat in range(min(effort.repeats, LONG_REPEATS) if row.name == "queued" else 0):
            for name, make in brokers.items():
                _measure_queued(row, name, make(folder / f"{name}-fresh-{repeat}"), effort, figures, say)
    loaded = [row for row in rows if row.load is not None]
    if loaded:
        running = {name: make(folder / name) for name, make in brokers.items()}
        try:
            for broker in running.values():
                broker.start()
                warm_up(broker)
            for row in loaded:
                _measure_loaded(row, running, effort, figures, say)
        except LoadError as error:
            figures.failures.append(f"a first load: {error}")
        finally:
            for broker in running.values():
                broker.kill()
    return figures


def _measure_queued(row: Row, name: str, broker: BrokerProcess, effort: Effort, figures: Figures, say: Say) -> None:
    """Return the growth of a new process with a full queue."""
    try:
        broker.start()
        time.sleep(SETTLE_S)
        idle_bytes, messages = memory_bytes(broker.pid), QUEUED_MESSAGES // effort.divisor
        fill(broker, messages)
        time.sleep(SETTLE_S)
        each = (memory_bytes(broker.pid) - idle_bytes) / messages
        figures.add(row, name, Sample(each))
        say(f"{name}: {each:.0f} B for each of {messages} queued messages")
    except LoadError as error:
        figures.failures.append(f"queued, {name}: {error}")
    finally:
        broker.kill()


def _measure_loaded(row: Row, brokers: dict[str, BrokerProcess], effort: Effort, figures: Figures, say: Say) -> None:
    assert row.load is not None
    load = effort.cut(row.load)
    pids = {name: broker.pid for name, broker in brokers.items()}
    deadline = time.monotonic() + ROW_S
    for repeat in range(effort.repeats):
        if repeat and time.monotonic() > deadline:
            break
        for name, broker in brokers.items():
            time.sleep(PAUSE_S)
            try:
                if row.before is not None:
                    run_load(effort.cut(row.before), broker, pids[name])
                with _running(row.beside and effort.cut(row.beside), broker, pids[name]):
                    outcome = run_load(load, broker, pids[name])
            except LoadError as error:
                figures.failures.append(f"{row.name}, {name}: {error}")
                say(f"{name}: {row.title}: {error}")
                continue
            sample = sample_of(outcome, row)
            figures.add(row, name, sample)
            say(f"{name}: {row.title}: {row.unit.text(sample.value)}")


@contextmanager
def _running(load: Load | None, broker: BrokerProcess, pid: int) -> Iterator[None]:
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
    is_paced = row.unit in (MICROSECONDS, STALL)
    if is_paced:
        assert outcome.latency_p99_us is not None
        assert outcome.latency_p999_us is not None
        value = outcome.latency_p999_us if row.unit is STALL else outcome.latency_p99_us
    return Sample(
        value,
        cpu_us=outcome.broker_cpu_us_per_message,
        # At full speed, latency is waiting time, which says nothing about the broker.
        p50_us=outcome.latency_p50_us if is_paced else None,
        p99_us=outcome.latency_p99_us if is_paced else None,
        generator_cpu_us=outcome.own_cpu_us_per_message,
        generator_share=outcome.own_cpu_share,
        elsewhere_share=outcome.elsewhere_share,
    )


def warm_up(broker: BrokerProcess) -> None:
    """Run a short load first: the first messages of a process cost more."""
    run_load(Load(messages=20_000, window=1000, ack=1, prefetch=200), broker, broker.pid)


def fill(broker: BrokerProcess, messages: int, prefix: str = "full", argument: str = "") -> None:
    """Leave a queue with this number of messages in the broker."""
    load = Load(consumers=0, messages=messages, window=10_000, prefix=prefix, argument=argument, keep=True, seconds=120)
    run_load(load, broker, broker.pid)


def memory_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
