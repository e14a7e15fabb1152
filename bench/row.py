"""Rows, samples, units and goals."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from bench.generator import Load


@dataclass(frozen=True)
class Sample:
    """One measurement of a row on one broker; `value` is in the row's unit, other figures are optional."""

    value: float
    cpu_us: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    generator_cpu_us: float | None = None
    generator_share: float | None = None
    elsewhere_share: float | None = None


def median(samples: Sequence[Sample]) -> Sample:
    """Return the median of each figure separately."""
    figures: dict[str, float] = {}
    for field in fields(Sample):
        measured = [value for sample in samples if (value := getattr(sample, field.name)) is not None]
        if measured:
            figures[field.name] = statistics.median(measured)
    return Sample(**figures)


@dataclass(frozen=True)
class Unit:
    text: Callable[[float], str]
    is_more_better: bool = False


def _rate_text(value: float) -> str:
    return f"{value / 1000:.1f} k/s" if value < 99_950 else f"{value / 1000:.0f} k/s"


RATE = Unit(_rate_text, is_more_better=True)
# The remaining share of a rate.
SHARE = Unit(lambda value: f"{value:.1%}", is_more_better=True)
# For short connections, of which there are few in a second.
PER_SECOND = Unit(lambda value: f"{value:.0f}/s", is_more_better=True)
MILLISECONDS = Unit(lambda value: f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms")
MICROSECONDS = Unit(lambda value: f"{value:.0f} µs")
# Like MICROSECONDS, but for the 999th message of a thousand.
STALL = Unit(lambda value: f"{value:.0f} µs")
# The broker's CPU time per message.
CPU_US = Unit(lambda value: f"{value:.1f} µs")
SECONDS = Unit(lambda value: f"{value:.2f} s")
MEGABYTES = Unit(lambda value: f"{value:.0f} MB")
BYTES = Unit(lambda value: f"{value:.0f} B" if value < 10_000 else f"{value / 1000:.1f} kB")


@dataclass(frozen=True)
class Goal:
    """A limit for a figure of amqp-broker, or for its advantage over RabbitMQ."""

    target: str
    figure: Callable[[Row, Sample, Sample | None], float | None]
    at_least: float | None = None
    below: float | None = None

    def is_met(self, figure: float) -> bool:
        return figure >= self.at_least if self.at_least is not None else figure < (self.below or 0)


# The tables of the report, in their order.
REAL = "Messages of applications, each different"
CALLS = "An application's day, with such messages"
REPEATED = "One message repeated, which the broker recognises"
OTHER = "Latency, memory, start and management"
GROUPS = (REAL, CALLS, REPEATED, OTHER)
# The name of the build that has goals of its own.
COMPILED_NAME = "amqp-broker compiled"
# The goals compare with it.
REFERENCE = "RabbitMQ 4.3"


@dataclass(frozen=True)
class Row:
    """One line of the table, measured on running brokers if it has a load, else on a new one.

    With `is_managed` the broker has management and metrics, and managed.py measures it; with `is_memory`, memory.py
    does.
    """

    name: str
    title: str
    unit: Unit
    load: Load | None = None
    goals: tuple[Goal, ...] = ()
    # Load beside the measurement, and messages published before it.
    beside: Load | None = None
    before: Load | None = None
    is_managed: bool = False
    is_memory: bool = False
    group: str = OTHER
    # The goals of the compiled build, if it has others.
    compiled_goals: tuple[Goal, ...] = ()
    # Why amqp-broker is not at least twice as fast as RabbitMQ, for the documentation.
    reason: str = ""
    # Brokers that lack what the row measures.
    missing_in: tuple[str, ...] = ()

    def goals_of(self, broker: str) -> tuple[Goal, ...]:
        return self.compiled_goals if broker == COMPILED_NAME and self.compiled_goals else self.goals

    def advantage(self, amqp_broker: Sample, other: Sample | None) -> float | None:
        """Return how many times better amqp-broker's value is than that of another broker."""
        if other is None:
            return None
        better, worse = (amqp_broker, other) if self.unit.is_more_better else (other, amqp_broker)
        return better.value / worse.value if worse.value > 0 else None


def cpu_advantage(row: Row, amqp_broker: Sample, other: Sample | None) -> float | None:
    """Return the ratio of another broker's CPU time per message to amqp-broker's."""
    if other is None or other.cpu_us is None or not amqp_broker.cpu_us:
        return None
    return other.cpu_us / amqp_broker.cpu_us


def faster(times: float) -> Goal:
    return Goal(f"at least {times:g} x RabbitMQ's rate", Row.advantage, at_least=times)


def cheaper(times: float) -> Goal:
    return Goal(f"at most 1/{times:g} of RabbitMQ's CPU per message", cpu_advantage, at_least=times)


def below(limit: float, text: str) -> Goal:
    return Goal(f"below {text}", lambda row, amqp_broker, rabbitmq: amqp_broker.value, below=limit)


NO_WORSE = Goal("no worse than RabbitMQ's", Row.advantage, at_least=1)
