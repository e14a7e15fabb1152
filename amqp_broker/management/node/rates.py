"""Rates, and the samples of charts.

Every five seconds the counts of all objects are added to their histories, whether anybody looks or not. A rate is the
change of the last five seconds.
Source: rabbit_mgmt_stats.erl, rabbit_mgmt_format.erl, and what version 3.10.8 answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.counting.history import BASIC, GLOBAL, RECENT, Charted, History, Retention
from amqp_broker.broker.queues.arrival_times import sample_arrivals
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.node.totals import lengths_of, sampled

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.timers import Timer

INTERVAL_MS: Final = 5_000
SAMPLES_MAX: Final = 1_000
# A whole number of seconds that Python reads, whatever its limit of digits.
_SECONDS: Final = re.compile(r"[0-9]{1,15}")
# The rate of a counter that does not change; it is shared and must not be modified.
RATE: Final = {"rate": 0.0}
# The history of an object whose counts were 0 at all samples.
NOTHING: Final = History()
# Steps that are as long as thinning a history out.
THINNING_STEPS: Final = 20

Counts = dict[str, int]


class _Details(dict[str, str]):
    """Names of the details of counters, cached since a long list needs thousands of them."""

    def __missing__(self, name: str) -> str:
        self[name] = details = f"{name}_details"
        return details


DETAILS: Final = _Details()


class Range(NamedTuple):
    """Samples from `age_ms` ago until now, every `step_ms`."""

    age_ms: int
    step_ms: int

    @classmethod
    def of(cls, query: Mapping[str, str], group: str) -> Range | None:
        """Return the range of `<group>_age` and `<group>_incr` (seconds) in a query, or None without them.

        Groups are `lengths`, `msg_rates` and `data_rates`. Raise InvalidParameter for an invalid number.
        """
        age, step = query.get(f"{group}_age"), query.get(f"{group}_incr")
        if age is None or step is None:
            return None
        if not (_SECONDS.fullmatch(age) and _SECONDS.fullmatch(step) and int(step)):
            raise InvalidParameter(f"invalid range: {group}_age={age}, {group}_incr={step}")
        if int(age) // int(step) > SAMPLES_MAX:
            raise InvalidParameter(f"more than {SAMPLES_MAX} samples: {group}_age={age}, {group}_incr={step}")
        return cls(int(age) * 1000, int(step) * 1000)


class Rates:
    """The rates and samples of the objects of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._timer: Timer | None = None
        self._is_sampling = False
        # When the first sample was taken, and when the last one of all objects was begun (ms).
        self._started_ms = self._sampled_ms = broker.real_now()

    def start(self) -> None:
        """Sample every five seconds from now on."""
        if self._timer is None:
            self._started_ms = self._sampled_ms = self._broker.real_now()
            self._on_interval(self._started_ms)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stats(self, holder: Charted, counts: Counts, span: Range | None = None) -> dict[str, Any]:
        """Return current counts of an object, each with its `_details`.

        `Broker.collect_counts` must have been called.
        """
        history, now = holder.history or NOTHING, self._broker.real_now()
        row = self._details(history, counts, now)
        if span is not None:
            for name, samples in self._samples(history, counts, now, span).items():
                row[DETAILS[name]] = {**row[DETAILS[name]], **samples}
        return row

    def past(self, holder: Charted, counts: Counts, age_ms: int) -> Mapping[str, float]:
        """Return what the current counts of an object were some time ago; `Broker.collect_counts` comes before."""
        now = self._broker.real_now()
        return (holder.history or NOTHING).at(now - age_ms, counts, now, self._sampled_ms)

    def resetting(self) -> Steps[None]:
        """Let all histories begin anew, in steps."""
        broker, now = self._broker, self._broker.real_now()
        holders: list[Charted] = [broker.counters]
        for vhost in list(broker.vhosts.values()):
            holders += [vhost.counts, *vhost.exchanges.values()]
            for queue in list(vhost.queues.values()):
                holders.append(queue.statistics)
                yield
        for connection in list(broker.connections):
            holders.append(connection)
            for channel in connection.channels.values():
                holders += [channel.counts, *channel.consumers.values()]
        for holder in holders:
            if holder.history is not None:
                holder.history.restart(now)
            yield

    def _details(self, history: History, counts: Counts, now: int) -> dict[str, Any]:
        """Return the counts with their rates (1/s) of the last five seconds, or since the start."""
        row = dict[str, Any]()
        since = max(now - INTERVAL_MS, self._started_ms)
        is_zero = history is NOTHING and not any(counts.values())
        past = counts if is_zero or since == now else history.at(since, counts, now, self._sampled_ms)
        for name, count in counts.items():
            row[name], then = count, past[name]
            row[DETAILS[name]] = RATE if then == count else {"rate": (count - then) * 1000 / (now - since)}
        return row

    def _samples(self, history: History, counts: Counts, now: int, span: Range) -> dict[str, dict[str, Any]]:
        """Return the samples of counts, newest first, and their averages, for RabbitMQ's `<name>_details`."""
        newest = now - now % span.step_ms
        times = range(newest, newest - span.age_ms - 1, -span.step_ms)
        pasts = [history.at(time, counts, now, self._sampled_ms) for time in times]
        duration_s = (times[0] - times[-1]) / 1000
        found = {}
        for name in counts:
            values = [round(past[name]) for past in pasts]
            found[name] = {
                "samples": [{"sample": value, "timestamp": time} for value, time in zip(values, times, strict=True)],
                "avg_rate": (values[0] - values[-1]) / duration_s if duration_s else 0.0,
                "avg": sum(values) / len(values),
            }
        return found

    def _on_interval(self, now: int) -> None:
        self._timer = self._broker.real_timers.at(now + INTERVAL_MS, self._on_interval)
        if not self._is_sampling:
            self._is_sampling = True
            self._broker.do_in_portions(self._sampling())

    def _sampling(self) -> Steps[None]:
        """Sample all objects, each at its step; of queues those that have changed."""
        broker, begun_ms = self._broker, self._broker.real_now()
        try:
            yield from broker.collecting_counts()
            yield from self._sampling_queues()
            for vhost in list(broker.vhosts.values()):
                for exchange in list(vhost.exchanges.values()):
                    history, published = exchange.history, exchange.publishes.publish
                    if published and (history is None or published != history.last("publish_in")):
                        publishes = exchange.publishes
                        yield from self._keeping(exchange, publishes.exchange_stats() | publishes.unroutable_stats())
                    yield
                yield from self._keeping(vhost.counts, {**sampled([vhost]), **vhost.counts.message_stats()}, GLOBAL)
            for connection in list(broker.connections):
                counts = {"recv_oct": connection.received_bytes, "send_oct": connection.sent_bytes}
                yield from self._keeping(connection, counts)
                for channel in list(connection.channels.values()):
                    yield from self._keeping(channel.counts, channel.counts.message_stats())
                    for consumer in list(channel.consumers.values()):
                        yield from self._sampling_consumer(consumer)
            stats = {**sampled(broker.vhosts.values()), **broker.counters.message_stats(), **broker.counters.churn()}
            yield from self._keeping(broker.counters, stats, GLOBAL)
            self._sampled_ms = begun_ms
        finally:
            self._is_sampling = False

    def _sampling_queues(self) -> Steps[None]:
        changed = self._broker.changed_queues
        # A queue that changes meanwhile comes last, and may wait for the next time.
        for _ in range(len(changed)):
            if changed:
                # Nothing may refer to the queue between two steps: a deleted one is freed at once.
                for _ in range(self._sample_queue(changed.popitem(last=False)[0])):
                    yield

    def _sample_queue(self, queue: Queue) -> int:
        queue.is_changed = False
        sample_arrivals(queue, self._broker.real_now())
        statistics, lengths = queue.statistics, lengths_of(queue)
        all_, ready, unacked = lengths.values()
        self._broker.vhosts[queue.vhost.name].counts.sample_lengths(queue, (all_, ready, unacked))
        return self._keep(statistics, {**lengths, **statistics.message_stats()}, BASIC)

    def _sampling_consumer(self, consumer: Consumer) -> Steps[None]:
        history, totals = consumer.history, consumer.totals()
        if any(count != (0 if history is None else history.last(name)) for name, count in totals.items()):
            yield from self._keeping(consumer, totals, RECENT)

    def _keeping(self, holder: Charted, counts: Mapping[str, int], retention: Retention = BASIC) -> Steps[None]:
        for _ in range(self._keep(holder, counts, retention)):
            yield

    def _keep(self, holder: Charted, counts: Mapping[str, int], retention: Retention) -> int:
        """Add counts to a history; return the number of steps that this takes the time of."""
        history, now = holder.history, self._broker.real_now()
        if history is None:
            history = History(retention)
            history.keep(counts, now, min(self._sampled_ms, now))
            if len(history):
                holder.history = history
        elif history.keep(counts, now, self._sampled_ms):
            return THINNING_STEPS
        return 1
