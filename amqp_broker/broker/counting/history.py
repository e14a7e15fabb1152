"""The history of an object's counts: samples, for rates and charts.

Each object owns its history, and both are freed together. Nothing else refers to a history: weak references to compiled
objects are not cleared.
Source: RabbitMQ, "Management Plugin", sample_retention_policies.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final, Protocol, TypeAlias

# Ages up to which samples are kept, and the times between those of that age (ms).
Retention: TypeAlias = tuple[tuple[int, int], ...]
# Counts of an object, and how long they are kept. A younger sample than ten minutes is always kept.
BASIC: Final[Retention] = ((605_000, 1), (3_660_000, 60_000))
# For rates alone, not for charts: the last two minutes.
RECENT: Final[Retention] = ((130_000, 1),)
GLOBAL: Final[Retention] = (*BASIC, (29_400_000, 600_000), (88_200_000, 1_800_000))
# New samples after which old ones are thinned out.
THINNED_AFTER: Final = 60

# Counts that are not of events: they may decrease.
LENGTHS: Final = ("messages", "messages_ready", "messages_unacknowledged")

# The places of names in the samples of a history: many histories share few of these.
_shared: Final[dict[tuple[str, ...], dict[str, int]]] = {}


def _places(names: tuple[str, ...]) -> dict[str, int]:
    if names not in _shared:
        _shared[names] = {name: place for place, name in enumerate(names, 1)}
    return _shared[names]


class History:
    """The changes of counts. Between two samples they change evenly.

    Before the first sample lengths are 0, and nothing was counted.

    A sample is kept only if it differs from the one before. `rows` has a time (ms) and the counts for each sample.
    """

    __slots__ = ("_places", "_retention", "_rows", "_thinned_at")

    def __init__(self, retention: Retention = BASIC) -> None:
        self._retention = retention
        self._places = _places(())
        self._rows: array[int] = array("q")
        # Number of integers in `_rows` from which on they are thinned out.
        self._thinned_at = 0

    def __len__(self) -> int:
        """Number of samples."""
        return len(self._rows) // (len(self._places) + 1)

    @property
    def bytes(self) -> int:
        """The size of the samples."""
        return len(self._rows) * self._rows.itemsize

    def last(self, name: str) -> int:
        """Return a count as it was at the last sample."""
        place = self._places.get(name, 0)
        return self._rows[place - len(self._places) - 1] if place else 0

    @property
    def newest_ms(self) -> int:
        """The time of the newest sample (ms): when counts were last seen to have changed. 0 without a sample."""
        return self._rows[-len(self._places) - 1] if self._rows else 0

    @property
    def times(self) -> list[int]:
        """The times of the samples (ms), in ascending order."""
        return self._rows[:: len(self._places) + 1].tolist()

    def keep(self, counts: Mapping[str, int], now: int, unchanged_until_ms: int) -> bool:
        """Keep counts as a sample if they have changed.

        Since the sample before they had not changed until `unchanged_until_ms`. Return whether old samples were thinned
        out, which takes some 100 µs.
        """
        if len(counts) > len(self._places):
            self._add_names(counts)
        places, rows = self._places, self._rows
        row = array("q", [now])
        row.extend([counts.get(name, 0) for name in places])
        width = len(row)
        if not rows:
            if not any(row[1:]):
                return False
            if unchanged_until_ms < now:
                rows.append(unchanged_until_ms)
                rows.extend([0] * (width - 1))
        elif rows[1 - width :] == row[1:]:
            return False
        elif rows[-width] < unchanged_until_ms < now:
            last = rows[1 - width :]
            rows.append(unchanged_until_ms)
            rows.extend(last)
        rows.extend(row)
        if len(rows) < self._thinned_at:
            return False
        self.thin(now)
        return True

    def _add_names(self, counts: Mapping[str, int]) -> None:
        old, before = self._rows, len(self._places) + 1
        added = [name for name in counts if name not in self._places]
        self._places = _places((*self._places, *added))
        rows = array("q")
        for start in range(0, len(old), before):
            rows.extend(old[start : start + before])
            rows.extend([0] * len(added))
        self._rows = rows
        self._thinned_at = len(rows) + THINNED_AFTER * (len(self._places) + 1)

    def backwards(self, *names: str) -> Iterator[tuple[int, list[int]]]:
        """Yield the times of the samples (ms) with these counts, the newest first."""
        rows, width = self._rows, len(self._places) + 1
        places = [self._places.get(name, 0) for name in names]
        for start in range(len(rows) - width, -1, -width):
            yield rows[start], [rows[start + place] if place else 0 for place in places]

    def restart(self, now: int) -> None:
        """Forget all samples but the last, which is now the first."""
        rows, width = self._rows, len(self._places) + 1
        self._rows = rows[len(rows) - width :]
        self._rows[0] = now

    def thin(self, now: int) -> None:
        """Keep the last of several old samples, and of those that are too old the last one, for the start."""
        rows, width = self._rows, len(self._places) + 1
        starts: list[int] = []
        kept = (0, 0)
        for start in range(len(rows) - width, -1, -width):
            at_ms = rows[start]
            step_ms = 0
            for age_ms, step in self._retention:
                if now - at_ms <= age_ms:
                    step_ms = step
                    break
            if not step_ms:
                starts.append(start)
                break
            if (step_ms, at_ms // step_ms) != kept:
                kept = (step_ms, at_ms // step_ms)
                starts.append(start)
        thinned = array("q")
        for start in reversed(starts):
            thinned.extend(rows[start : start + width])
        self._rows = thinned
        self._thinned_at = len(thinned) + THINNED_AFTER * width

    def at(self, time_ms: int, counts: Mapping[str, int], now: int, unchanged_until_ms: int) -> dict[str, float]:
        """Return what these counts were at a time; `counts` are those of now, after the last sample."""
        rows, places = self._rows, self._places
        width = len(places) + 1
        start = (bisect_right(rows[::width], time_ms) - 1) * width
        if rows and start < 0:
            counted = {name: float(rows[place]) for name, place in places.items() if name not in LENGTHS}
            return {name: counted.get(name, 0.0) for name in counts}
        if 0 <= start < len(rows) - width:
            share = (time_ms - rows[start]) / (rows[start + width] - rows[start])
            before = rows[start : start + width]
            after = rows[start + width : start + 2 * width]
            past: dict[str, float] = {}
            for name in counts:
                place = places.get(name, 0)
                past[name] = before[place] + (after[place] - before[place]) * share if place else 0.0
            return past
        last = rows[start:] if rows else array("q", [0] * width)
        since = max(last[0], unchanged_until_ms)
        share = 0.0 if time_ms <= since else min((time_ms - since) / (now - since), 1.0)
        past = {}
        for name, count in counts.items():
            place = places.get(name, 0)
            then = last[place] if place else 0
            past[name] = then + (count - then) * share if share else float(then)
        return past


class Charted(Protocol):
    """Bears the history of its counts; None as long as there are no samples."""

    history: History | None
