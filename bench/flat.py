"""Checks that the cost per message does not grow with the number of queues, bindings or messages.

It also checks that waiting messages cost nothing, with or without TTL.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.generator import Load, LoadError, cpu_seconds_of, run_load
from bench.row import Sample, median
from bench.side_by_side import PAUSE_S, SETTLE_S, Effort, Say, fill, warm_up
from compat.brokers import AmqpBroker, BrokerProcess


@dataclass(frozen=True)
class Variant:
    """The row's traffic in another setting.

    With `backlog`, the queue always holds this many messages; with `delayed`, an exchange keeps them back.
    """

    title: str
    load: Load
    backlog: int = 0
    delayed: int = 0


@dataclass(frozen=True)
class FlatRow:
    """The same traffic in several settings; the last ones may cost at most a multiple of the first."""

    name: str
    title: str
    variants: tuple[Variant, ...]
    factor_max: float = 1.1


_PLAIN = Load(messages=300_000)
_SMALL_BATCHES = Load(messages=200_000, batch=10, window=10)
_TOPIC = Load(messages=300_000)
_EXPIRING = "x-message-ttl=3600000"
_DELAYED = Load(messages=200_000, delay=1)
_SETTLED = Load(messages=200_000, window=1000, ack=1, prefetch=200, receive=200_000)

FLAT_ROWS = (
    FlatRow(
        "queues",
        "16 B, no ack, one connection in turn to",
        (
            Variant("1 queue", replace(_PLAIN, queues=1, spread=True)),
            Variant("1 000 queues", replace(_PLAIN, queues=1000, spread=True)),
            Variant("10 000 queues", replace(_PLAIN, queues=10_000, spread=True)),
        ),
    ),
    FlatRow(
        "idle-queues",
        "16 B, no ack, beside",
        (
            Variant("no other queue", replace(_PLAIN, queues=1)),
            Variant("10 000 idle queues", replace(_PLAIN, queues=10_001)),
        ),
    ),
    FlatRow(
        "connections",
        "16 B, no ack, beside",
        (Variant("no other connection", _PLAIN), Variant("10 000 idle connections", replace(_PLAIN, idle=10_000))),
    ),
    # Each batch waits for its confirms, so that the broker reads ten messages at a time from one connection as from a
    # thousand. Otherwise a single connection would fill its buffer, and reads of many messages are cheaper.
    FlatRow(
        "publishers",
        "16 B, batches of 10, each confirmed before the next, from",
        (
            Variant("1 connection", _SMALL_BATCHES),
            Variant("1000 connections", replace(_SMALL_BATCHES, publishers=1000, messages=200)),
        ),
    ),
    FlatRow(
        "bindings",
        "16 B, no ack, topic exchange, one match, 10 routing keys,",
        (
            Variant("10 bindings", replace(_TOPIC, topic_bindings=10)),
            Variant("100 000 bindings", replace(_TOPIC, topic_bindings=100_000, topic_keys=10)),
        ),
    ),
    # No bounded cache holds 10 000 keys: this row measures the matching itself.
    FlatRow(
        "keys",
        "16 B, no ack, topic exchange, one match, 10 000 bindings,",
        (
            Variant("10 routing keys", replace(_TOPIC, topic_bindings=10_000, topic_keys=10)),
            Variant("10 000 routing keys", replace(_TOPIC, topic_bindings=10_000)),
        ),
    ),
    FlatRow(
        "backlog",
        "16 B, confirms, ack each, in a queue with a backlog of",
        (Variant("0", _SETTLED), Variant("10 000 000", _SETTLED, backlog=10_000_000)),
    ),
    FlatRow(
        "delayed",
        "16 B, delayed by 1 ms, beside waiting messages in number",
        (Variant("0", _DELAYED), Variant("1 000 000", _DELAYED, delayed=1_000_000)),
    ),
    FlatRow(
        "expiring",
        "16 B, confirms, ack each, x-message-ttl, with a backlog of",
        tuple(
            Variant(f"{backlog:_}".replace("_", " "), replace(_SETTLED, argument=_EXPIRING), backlog=backlog)
            for backlog in (10_000, 1_000_000)
        ),
    ),
)

IDLE_S = 3.0
IDLE_CORES_MAX = 0.01  # /proc counts in steps of 10 ms


@dataclass
class FlatFigures:
    """All samples so far, by row and setting."""

    samples: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)
    # Share of a core that an idle broker with a backlog uses.
    idle_shares: dict[tuple[str, str], float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def median(self, row: FlatRow, variant: Variant) -> Sample | None:
        samples = self.samples.get((row.name, variant.title))
        return median(samples) if samples else None

    def factor(self, row: FlatRow, variant: Variant) -> float | None:
        """Return the CPU per message relative to the row's first variant."""
        first, this = self.median(row, row.variants[0]), self.median(row, variant)
        if first is None or this is None or not first.cpu_us or this.cpu_us is None:
            return None
        return this.cpu_us / first.cpu_us


def measure_flat(rows: Iterable[FlatRow], effort: Effort, folder: Path, say: Say) -> FlatFigures:
    figures = FlatFigures()
    for row in rows:
        # A new broker for each variant, so that none affects the next.
        brokers: list[AmqpBroker] = []
        try:
            for number, variant in enumerate(row.variants):
                broker = AmqpBroker(folder / f"flat-{row.name}-{number}")
                brokers.append(broker)
                broker.start()
                warm_up(broker)
                if variant.delayed:
                    delayed = replace(_WAITING, messages=variant.delayed // effort.divisor)
                    run_load(delayed, broker, broker.pid)
                if variant.backlog:
                    fill(broker, variant.backlog // effort.divisor, prefix=_BACKLOG, argument=variant.load.argument)
                    figures.idle_shares[row.name, variant.title] = idle_share(broker)
            for _ in range(effort.repeats):
                for broker, variant in zip(brokers, row.variants, strict=True):
                    _measure(row, variant, broker, effort, figures, say)
        except LoadError as error:
            figures.failures.append(f"{row.name}: {error}")
        finally:
            for broker in brokers:
                broker.kill()
    return figures


_BACKLOG = "backlog"
_WAITING = Load(consumers=0, window=10_000, delay=36_000_000, prefix="waiting", keep=True)


def idle_share(broker: BrokerProcess) -> float:
    """Return the share of a core that an idle broker uses."""
    time.sleep(SETTLE_S)
    before = cpu_seconds_of(broker.pid)
    time.sleep(IDLE_S)
    return (cpu_seconds_of(broker.pid) - before) / IDLE_S


def _measure(
    row: FlatRow, variant: Variant, broker: BrokerProcess, effort: Effort, figures: FlatFigures, say: Say
) -> None:
    time.sleep(PAUSE_S)
    load = effort.cut(variant.load)
    if variant.backlog:
        load = replace(load, prefix=_BACKLOG, keep=True)
    outcome = run_load(load, broker, broker.pid)
    sample = Sample(
        outcome.receive_rate,
        cpu_us=outcome.broker_cpu_us_per_message,
        generator_cpu_us=outcome.own_cpu_us_per_message,
        generator_share=outcome.own_cpu_share,
        elsewhere_share=outcome.elsewhere_share,
    )
    figures.samples.setdefault((row.name, variant.title), []).append(sample)
    say(f"amqp-broker: {row.title} {variant.title}: {outcome.broker_cpu_us_per_message:.2f} µs/message")
