"""The list of rows, with the goal of each."""

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
MILLISECONDS = Unit(lambda value: f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms")
MICROSECONDS = Unit(lambda value: f"{value:.0f} µs")
# Like MICROSECONDS, but for the 999th message of a thousand.
STALL = Unit(lambda value: f"{value:.0f} µs")
SECONDS = Unit(lambda value: f"{value:.2f} s")
MEGABYTES = Unit(lambda value: f"{value:.0f} MB")
BYTES = Unit(lambda value: f"{value:.0f} B")


@dataclass(frozen=True)
class Goal:
    """A limit for a figure of amqp-broker, or for its advantage over RabbitMQ."""

    target: str
    figure: Callable[[Row, Sample, Sample | None], float | None]
    at_least: float | None = None
    below: float | None = None

    def is_met(self, figure: float) -> bool:
        return figure >= self.at_least if self.at_least is not None else figure < (self.below or 0)


@dataclass(frozen=True)
class Row:
    """One line of the table, measured on running brokers if it has a load, else on a new one.

    With `is_managed` the broker has management and metrics, and managed.py measures it.
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

    def advantage(self, amqp_broker: Sample, rabbitmq: Sample | None) -> float | None:
        """Return how many times better amqp-broker's value is than RabbitMQ's."""
        if rabbitmq is None:
            return None
        better, worse = (amqp_broker, rabbitmq) if self.unit.is_more_better else (rabbitmq, amqp_broker)
        return better.value / worse.value


def cpu_advantage(row: Row, amqp_broker: Sample, rabbitmq: Sample | None) -> float | None:
    """Return the ratio of RabbitMQ's CPU time per message to amqp-broker's."""
    if rabbitmq is None or rabbitmq.cpu_us is None or not amqp_broker.cpu_us:
        return None
    return rabbitmq.cpu_us / amqp_broker.cpu_us


def _faster(times: float) -> Goal:
    return Goal(f"at least {times:g} x RabbitMQ's rate", Row.advantage, at_least=times)


def _cheaper(times: float) -> Goal:
    return Goal(f"at most 1/{times:g} of RabbitMQ's CPU per message", cpu_advantage, at_least=times)


def _below(limit: float, text: str) -> Goal:
    return Goal(f"below {text}", lambda row, amqp_broker, rabbitmq: amqp_broker.value, below=limit)


QUEUED_MESSAGES = 1_000_000

ROWS = (
    Row(
        "plain",
        "16 B, no ack, no confirm",
        RATE,
        Load(messages=400_000),
        (_faster(3), _cheaper(5)),
    ),
    Row("plain-1k", "1 KiB, no ack, no confirm", RATE, Load(messages=250_000, body=1024)),
    Row(
        "confirm",
        "16 B, confirms (window 1000), ack each, prefetch 200",
        RATE,
        Load(messages=200_000, window=1000, ack=1, prefetch=200),
        (_faster(3.5), _cheaper(6)),
    ),
    Row(
        "plain-64k",
        "64 KiB, no ack, no confirm",
        RATE,
        Load(messages=20_000, body=65_536),
        (_faster(1.3),),
    ),
    Row(
        "many",
        "10 publishers, consumers and queues, confirms, ack each",
        RATE,
        Load(publishers=10, consumers=10, queues=10, messages=20_000, window=1000, ack=1, prefetch=200),
        (_faster(4),),
    ),
    Row(
        "fanout",
        "fanout to 10 queues (deliveries)",
        RATE,
        Load(consumers=10, queues=10, messages=40_000, fanout=True),
        (_faster(4),),
    ),
    Row(
        "ttl",
        "16 B, no ack, a queue with x-message-ttl",
        RATE,
        Load(messages=200_000, argument="x-message-ttl=3600000"),
        (_faster(2.5),),
    ),
    Row(
        "max-length",
        "16 B into a full queue (x-max-length 1000), confirms",
        RATE,
        Load(consumers=0, messages=200_000, window=1000, argument="x-max-length=1000"),
        (_faster(2.5),),
    ),
    Row(
        "priority",
        "16 B, no ack, 10 priorities (x-max-priority 10)",
        RATE,
        Load(messages=200_000, argument="x-max-priority=10", priorities=10),
        (_faster(2.5),),
    ),
    Row(
        "dead-letter",
        "16 B, expired after 5 ms and dead-lettered, no ack",
        RATE,
        Load(messages=100_000, expiration=5, dead_letter=True),
        (_faster(2.5),),
    ),
    Row(
        "consistent-hash",
        "16 B, no ack, 10 000 keys hashed over 10 queues",
        RATE,
        Load(consumers=10, queues=10, messages=200_000, hash_keys=10_000),
        (_faster(2.5),),
    ),
    Row(
        "persistent",
        "1 KiB persistent, confirms (window 1000), ack each",
        RATE,
        Load(messages=100_000, body=1024, window=1000, ack=1, prefetch=200, persistent=True),
        (_faster(5), _cheaper(7)),
    ),
    Row(
        "persistent-backlog",
        "1 KiB persistent, confirms (window 1000), no consumer",
        RATE,
        Load(consumers=0, messages=100_000, body=1024, window=1000, persistent=True),
        (_faster(5),),
    ),
    Row(
        "persistent-1",
        "1 KiB persistent, one unconfirmed at a time",
        RATE,
        Load(messages=2_000, body=1024, window=1, ack=1, prefetch=200, persistent=True),
        (_faster(1),),
    ),
    Row(
        "persistent-drain",
        "a backlog of 200 000 persistent 1 KiB messages, ack each",
        RATE,
        Load(publishers=0, ack=1, prefetch=200, receive=200_000, persistent=True, prefix="drain"),
        (_faster(3),),
        before=Load(consumers=0, messages=200_000, body=1024, window=1000, persistent=True, prefix="drain", keep=True),
    ),
    Row(
        "stream",
        "100 B to a stream, confirms (window 1000), one reader",
        RATE,
        Load(messages=200_000, body=100, window=1000, ack=100, prefetch=1000, persistent=True, stream=True),
        (_faster(2),),
    ),
    Row(
        "persistent-latency",
        "p99 latency at 1 000 persistent msg/s",
        MICROSECONDS,
        Load(messages=4_000, rate=1000, persistent=True),
        (Goal("no worse than RabbitMQ's", Row.advantage, at_least=1),),
    ),
    Row(
        "stall",
        "p99.9 at 1 000 msg/s, beside 20 000 persistent ones",
        STALL,
        Load(messages=5_000, rate=1000),
        (_below(5000, "5 ms"),),
        beside=Load(messages=110_000, body=1024, window=1000, ack=1, prefetch=200, persistent=True, rate=20_000),
    ),
    Row(
        "latency",
        "p99 latency at 1 000 msg/s",
        MICROSECONDS,
        Load(messages=4_000, rate=1000),
        (Goal("no worse than RabbitMQ's", Row.advantage, at_least=1),),
    ),
    Row("queued", "memory per queued 16 B message", BYTES, goals=(_below(400, "400 B"),)),
    Row("ready", "process start to ready, with management", SECONDS, goals=(_below(0.4, "0.4 s"),), is_managed=True),
    Row("idle", "memory when idle, with management", MEGABYTES, goals=(_below(60, "60 MB"),), is_managed=True),
    Row("ping", "diagnostics ping", MILLISECONDS, goals=(_below(100, "100 ms"),), is_managed=True),
    Row("queues-list", "GET /api/queues of 1 000 queues", MILLISECONDS, goals=(_below(50, "50 ms"),), is_managed=True),
    Row(
        "scraped",
        "rate left while metrics and overview are asked for each second",
        SHARE,
        goals=(Goal("at least 97 %", lambda row, amqp_broker, rabbitmq: amqp_broker.value, at_least=0.97),),
        is_managed=True,
    ),
    Row(
        "administered",
        "p99 latency at 1 000 msg/s, beside administration",
        MILLISECONDS,
        goals=(_below(20, "20 ms"),),
        is_managed=True,
    ),
    Row(
        "administered-worst",
        "longest latency of these",
        MILLISECONDS,
        goals=(_below(100, "100 ms"),),
        is_managed=True,
    ),
)
