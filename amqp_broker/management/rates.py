"""The history of counters: rates, and the samples of charts.

Only the overview is always sampled. Other counters are sampled every five seconds after a request for them, and dropped
ten minutes after the last one. A sample is kept only if it differs from the one before.
Source: rabbit_mgmt_stats.erl, rabbit_mgmt_format.erl, and what version 3.10.8 answers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.portions import Steps, finished

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.timers import Timer

INTERVAL_MS: Final = 5_000
# Requests within this time share a sample.
INTERVAL_MS_MIN: Final = 1_000
# Age of the samples that a rate needs, and the oldest of charts.
KEEP_MS: Final = 3 * INTERVAL_MS
KEEP_MS_MAX: Final = 60 * 60 * 1000
FORGET_MS: Final = 10 * 60 * 1000
SAMPLES_MAX: Final = 1_000
# The rate of a counter that does not change; it is shared and must not be modified.
RATE: Final = {"rate": 0.0}

Counts = dict[str, int]
T = TypeVar("T")
# Returns the counters of an object, or the steps to them.
Read: TypeAlias = Callable[[T], "Counts | Steps[Counts]"]


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
        if not (age.isascii() and age.isdigit() and step.isascii() and step.isdigit() and int(step)):
            raise InvalidParameter(f"invalid range: {group}_age={age}, {group}_incr={step}")
        if int(age) // int(step) > SAMPLES_MAX:
            raise InvalidParameter(f"more than {SAMPLES_MAX} samples: {group}_age={age}, {group}_incr={step}")
        return cls(int(age) * 1000, int(step) * 1000)


class History:
    """The changes of an object's counters; before the first sample they are assumed to be constant."""

    def __init__(self, read: Read[Any], now: int) -> None:
        self.read = read
        self.keep_ms = KEEP_MS
        self.asked_at_ms = now
        self._looked_at_ms = -INTERVAL_MS_MIN
        self._times: list[int] = []
        self._samples: list[Counts] = []

    def keep(self, counts: Counts, now: int) -> None:
        """Keep counters as a sample unless there is a recent one."""
        before = self._looked_at_ms
        if now - before < INTERVAL_MS_MIN:
            return
        self._looked_at_ms = now
        if not self._samples or self._samples[-1] != counts:
            if self._samples and before > self._times[-1]:
                # The counters were unchanged until then.
                self._times.append(before)
                self._samples.append(self._samples[-1])
            self._times.append(now)
            self._samples.append(counts)
        # The last sample before the kept period is still needed for its start.
        if (too_old := bisect_right(self._times, now - self.keep_ms) - 1) > 0:
            del self._times[:too_old], self._samples[:too_old]

    def at(self, time_ms: int) -> tuple[Counts, Counts, float]:
        """Return the samples before and after a time, and the share of the time between them that has passed."""
        times, samples = self._times, self._samples
        index = bisect_right(times, time_ms) - 1
        if index < 0 or index + 1 == len(times):
            only = samples[max(index, 0)]
            return only, only, 0.0
        share = (time_ms - times[index]) / (times[index + 1] - times[index])
        return samples[index], samples[index + 1], share

    def details(self, counts: Counts, now: int) -> dict[str, Any]:
        """Return the counters with their rates (1/s) of the last five seconds, interpolated between samples."""
        times, row = self._times, dict[str, Any]()
        since = max(now - INTERVAL_MS, times[0])
        if now == since or (times[-1] <= since and counts == self._samples[-1]):
            for name, count in counts.items():
                row[name], row[DETAILS[name]] = count, RATE
            return row
        before, after, share = self.at(since)
        duration_s = (now - since) / 1000
        for name, count in counts.items():
            then: float = before.get(name, 0)
            if share:
                then += (after.get(name, 0) - then) * share
            row[name], row[DETAILS[name]] = count, RATE if then == count else {"rate": (count - then) / duration_s}
        return row

    def samples(self, name: str, count: int, now: int, span: Range) -> dict[str, Any]:
        """Return the samples of a counter, newest first, and their averages, for RabbitMQ's `<name>_details`."""
        newest = now - now % span.step_ms
        times = range(newest, newest - span.age_ms - 1, -span.step_ms)
        values = []
        for time in times:
            before, after, share = self.at(time)
            value = _between(before.get(name, 0), after.get(name, 0), share)
            values.append(count if time == now else round(value))
        duration_s = (times[0] - times[-1]) / 1000
        return {
            "samples": [{"sample": value, "timestamp": time} for value, time in zip(values, times, strict=True)],
            "avg_rate": (values[0] - values[-1]) / duration_s if duration_s else 0.0,
            "avg": sum(values) / len(values),
        }


def _between(before: int, after: int, share: float) -> float:
    return before + (after - before) * share


class Rates:
    """The histories of requested counters; they live as long as the objects that they belong to."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._histories: WeakKeyDictionary[Any, dict[str, History]] = WeakKeyDictionary()
        self._timer: Timer | None = None
        self._is_sampling = False

    def start(self) -> None:
        """Sample every five seconds from now on."""
        self._timer = self._broker.real_timers.at(self._broker.real_now() + INTERVAL_MS, self._on_interval)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def keep(self, thing: T, group: str, read: Read[T], keep_ms: int = KEEP_MS_MAX) -> None:
        """Sample the counters of an object without requests for them, and keep samples up to an age."""
        history = self._history(thing, group, read)
        history.keep_ms = keep_ms
        finished(self._sample(thing, history))

    def stats(self, thing: T, group: str, read: Callable[[T], Counts], span: Range | None = None) -> dict[str, Any]:
        """Return the counters `read(thing)`, each with its `_details`.

        `Broker.collect_counts` must have been called. `group` distinguishes several readings of the same thing.
        """
        return self._row(self._history(thing, group, read), read(thing), span)

    def reading(
        self, thing: T, group: str, read: Callable[[T], Steps[Counts]], span: Range | None
    ) -> Steps[dict[str, Any]]:
        """Do `stats` in steps, for counters that are read in steps."""
        history = self._history(thing, group, read)
        return self._row(history, (yield from read(thing)), span)

    def _row(self, history: History, counts: Counts, span: Range | None) -> dict[str, Any]:
        now = self._broker.real_now()
        history.asked_at_ms = now
        if span is not None:
            history.keep_ms = max(history.keep_ms, min(span.age_ms + INTERVAL_MS, KEEP_MS_MAX))
        history.keep(counts, now)
        row = history.details(counts, now)
        if span is not None:
            for name, count in counts.items():
                row[DETAILS[name]] = {**row[DETAILS[name]], **history.samples(name, count, now, span)}
        return row

    def _sample(self, thing: object, history: History) -> Steps[None]:
        found = history.read(thing)
        counts = (yield from found) if isinstance(found, Generator) else found
        history.keep(counts, self._broker.real_now())

    def _history(self, thing: T, group: str, read: Read[T]) -> History:
        histories = self._histories.get(thing)
        if histories is None:
            histories = self._histories[thing] = {}
        history = histories.get(group)
        if history is None:
            history = histories[group] = History(read, self._broker.real_now())
        return history

    def _on_interval(self, now: int) -> None:
        self._timer = self._broker.real_timers.at(now + INTERVAL_MS, self._on_interval)
        if not self._is_sampling:
            self._is_sampling = True
            self._broker.do_in_batches(self._sampling())

    def _sampling(self) -> Steps[None]:
        """Sample all counters, and drop the histories of those that are not asked for any more."""
        try:
            yield from self._broker.collecting_counts()
            for thing, histories in list(self._histories.items()):
                for group, history in list(histories.items()):
                    if history.keep_ms < KEEP_MS_MAX and self._broker.real_now() - history.asked_at_ms > FORGET_MS:
                        del histories[group]
                    else:
                        yield from self._sample(thing, history)
                    yield
                if not histories:
                    self._histories.pop(thing, None)
        finally:
            self._is_sampling = False
