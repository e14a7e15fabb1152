"""The list of rows, with the goal of each."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

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


def _faster(times: float) -> Goal:
    return Goal(f"at least {times:g} x RabbitMQ's rate", Row.advantage, at_least=times)


def _cheaper(times: float) -> Goal:
    return Goal(f"at most 1/{times:g} of RabbitMQ's CPU per message", cpu_advantage, at_least=times)


def _below(limit: float, text: str) -> Goal:
    return Goal(f"below {text}", lambda row, amqp_broker, rabbitmq: amqp_broker.value, below=limit)


_NO_WORSE = Goal("no worse than RabbitMQ's", Row.advantage, at_least=1)

# Persistent messages to each kind of queue, with a limited number of unconfirmed ones. A stream has no reader.
_KINDS = {
    "classic": Load(body=1024, ack=1, prefetch=200, persistent=True),
    "quorum": Load(body=1024, ack=1, prefetch=200, persistent=True, argument="x-queue-type=quorum"),
    "stream": Load(body=100, consumers=0, persistent=True, stream=True),
}
_WINDOWS = {1: 2_000, 10: 20_000, 100: 50_000}
_WINDOW_GOALS: dict[tuple[str, int], tuple[Goal, ...]] = {
    ("classic", 100): (_faster(4), _cheaper(8.5)),
    ("quorum", 100): (_faster(3.3), _cheaper(8.5)),
    ("stream", 100): (_faster(2.6), _cheaper(8)),
}

ROWS = (
    Row(
        "plain",
        "16 B, no ack, no confirm",
        RATE,
        Load(messages=400_000),
        (_faster(7), _cheaper(13)),
    ),
    Row(
        "plain-1k",
        "1 KiB, no ack, no confirm",
        RATE,
        Load(messages=250_000, body=1024),
        (_faster(5.2), _cheaper(9)),
    ),
    Row(
        "confirm",
        "16 B, confirms (window 1000), ack each, prefetch 200",
        RATE,
        Load(messages=200_000, window=1000, ack=1, prefetch=200),
        (_faster(8), _cheaper(16)),
    ),
    Row(
        "plain-64k",
        "64 KiB, no ack, no confirm",
        RATE,
        Load(messages=20_000, body=65_536),
        (_faster(1.7), _cheaper(2.6)),
    ),
    Row(
        "many",
        "10 publishers, consumers and queues, confirms, ack each",
        RATE,
        Load(publishers=10, consumers=10, queues=10, messages=20_000, window=1000, ack=1, prefetch=200),
        (_faster(8), _cheaper(16)),
    ),
    Row(
        "fanout",
        "fanout to 10 queues (deliveries)",
        RATE,
        Load(consumers=10, queues=10, messages=40_000, fanout=True),
        (_faster(11), _cheaper(24)),
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
        (_faster(7), _cheaper(11)),
    ),
    Row(
        "persistent-backlog",
        "1 KiB persistent, confirms (window 1000), no consumer",
        RATE,
        Load(consumers=0, messages=100_000, body=1024, window=1000, persistent=True),
        (_faster(4.5), _cheaper(8.5)),
    ),
    *(
        Row(
            f"{kind}-{window}",
            f"{'100 B' if kind == 'stream' else '1 KiB'} persistent to a {kind} queue, {window} unconfirmed",
            RATE,
            replace(load, messages=messages, window=window),
            _WINDOW_GOALS.get((kind, window), (_faster(1),)),
        )
        for kind, load in _KINDS.items()
        for window, messages in _WINDOWS.items()
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
        "stream-replay",
        "a stream of 200 000 messages of 100 B, an ack for a hundred",
        RATE,
        Load(publishers=0, ack=100, prefetch=1000, receive=200_000, persistent=True, stream=True, prefix="replay"),
        (_faster(2),),
        before=Load(
            consumers=0,
            messages=200_000,
            body=100,
            window=1000,
            persistent=True,
            stream=True,
            prefix="replay",
            keep=True,
        ),
    ),
    Row(
        "persistent-latency",
        "p99 latency at 1 000 persistent msg/s",
        MICROSECONDS,
        Load(messages=4_000, rate=1000, persistent=True),
        (_NO_WORSE,),
    ),
    Row(
        "stall",
        "p99.9 at 1 000 msg/s, beside 20 000 persistent ones",
        STALL,
        Load(messages=5_000, rate=1000),
        (_below(2000, "2 ms"),),
        beside=Load(messages=110_000, body=1024, window=1000, ack=1, prefetch=200, persistent=True, rate=20_000),
    ),
    Row(
        "latency",
        "p99 latency at 1 000 msg/s",
        MICROSECONDS,
        Load(messages=4_000, rate=1000),
        (_NO_WORSE,),
    ),
    Row(
        "latency-20k",
        "p99 latency at 20 000 msg/s of 100 B",
        MICROSECONDS,
        Load(messages=80_000, body=100, rate=20_000),
        (_NO_WORSE,),
    ),
    Row(
        "paced",
        "CPU per message at 20 000 msg/s of 100 B",
        CPU_US,
        Load(messages=80_000, body=100, rate=20_000),
        (_cheaper(7),),
    ),
    Row(
        "sessions",
        "connect, declare, publish, confirm and close, one after another",
        PER_SECOND,
        Load(publishers=0, consumers=0, sessions=1_000),
        (_faster(1),),
    ),
    Row("queued", "memory per queued 16 B message", BYTES, goals=(_below(400, "400 B"),), is_memory=True),
    Row("connection", "memory per idle connection", BYTES, is_memory=True),
    Row("channel", "memory per idle channel", BYTES, is_memory=True),
    Row("queue", "memory per durable queue", BYTES, is_memory=True),
    Row("binding", "memory per binding", BYTES, is_memory=True),
    Row("ready", "process start to ready, with management", SECONDS, goals=(_below(0.4, "0.4 s"),), is_managed=True),
    Row("idle", "memory when idle, with management", MEGABYTES, goals=(_below(32, "32 MB"),), is_managed=True),
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
        goals=(_NO_WORSE,),
        is_managed=True,
    ),
    Row(
        "administered-worst",
        "longest latency of these",
        MILLISECONDS,
        goals=(_NO_WORSE,),
        is_managed=True,
    ),
)
