"""Offsets in Spark's checkpoint: the next offset to read by queue, sorted by name."""

from __future__ import annotations

from typing import Final, NamedTuple

Offsets = dict[str, int]

# In options, as in Spark's source for Kafka.
LATEST: Final = -1
EARLIEST: Final = -2


class Range(NamedTuple):
    """Offsets of a queue from `start` to before `end`."""

    queue: str
    start: int
    end: int


def capped(start: Offsets, tails: Offsets, rows_max: int | None) -> Offsets:
    """Return the end of a batch: at most the tails, and at most a number of offsets in all.

    Queues share the number evenly; what one does not need goes to the others.
    """
    ends = {}
    lefts = sorted((max(tails[queue] - first, 0), queue) for queue, first in start.items())
    budget = rows_max if rows_max is not None else sum(left for left, _ in lefts)
    for index, (left, queue) in enumerate(lefts):
        count = min(left, -(-budget // (len(lefts) - index)))
        ends[queue] = start[queue] + count
        budget -= count
    return dict(sorted(ends.items()))


def split(start: Offsets, end: Offsets, partitions_min: int, records_max: int | None) -> list[Range]:
    """Return the ranges of tasks: at least `partitions_min` if possible, each with at most `records_max` offsets.

    A queue whose start is after its end has no ranges.
    """
    counts = {queue: max(last - start.get(queue, last), 0) for queue, last in end.items()}
    total = sum(counts.values())
    ranges = []
    for queue, count in counts.items():
        if not count:
            continue
        parts = max(1, -(-partitions_min * count // total))
        if records_max is not None:
            parts = max(parts, -(-count // records_max))
        parts = min(parts, count)
        first = start[queue]
        cuts = [first + count * part // parts for part in range(parts + 1)]
        ranges += [Range(queue, cuts[part], cuts[part + 1]) for part in range(parts)]
    return ranges
