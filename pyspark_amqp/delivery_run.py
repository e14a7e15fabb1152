"""Runs of deliveries, which are one object for many messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace


@dataclass(slots=True)
class Run:
    """Successive deliveries with all in common but body, delivery tag and stream offset. The numbers rise by one.

    `tag` and `offset` are those of the first; `offset` is None if it is not the first of the headers. `header` is the
    payload of a content header frame: that of any of them, or of one before, with its body size and stream offset.
    Runs with the same object as header share exchange and routing key, too.
    """

    tag: int
    redelivered: bool
    exchange: bytes
    routing_key: bytes
    header: bytes
    bodies: list[bytes]
    offset: int | None = None

    @property
    def count(self) -> int:
        return len(self.bodies)

    @property
    def last_tag(self) -> int:
        return self.tag + len(self.bodies) - 1

    @property
    def size(self) -> int:
        """Octets of the bodies and headers."""
        return sum(map(len, self.bodies)) + len(self.header) * len(self.bodies)

    def part(self, start: int, end: int) -> Run:
        """Return the deliveries with these indices; there must be one."""
        if start <= 0 and end >= len(self.bodies):
            return self
        start = max(start, 0)
        offset = None if self.offset is None else self.offset + start
        return replace(self, tag=self.tag + start, bodies=self.bodies[start:end], offset=offset)


def between(runs: Iterable[Run], start: int, end: int) -> Iterator[Run]:
    """Yield the deliveries with these indices in all runs together."""
    at = 0
    for run in runs:
        if at >= end:
            return
        if at + run.count > start < end:
            yield run.part(start - at, end - at)
        at += run.count


def total_count(runs: Iterable[Run]) -> int:
    return sum(run.count for run in runs)


def total_size(runs: Iterable[Run]) -> int:
    """Return the octets of the bodies and headers of all runs."""
    return sum(run.size for run in runs)


def singles(run: Run) -> Iterator[Run]:
    """Yield each delivery as a run of its own."""
    return (run.part(index, index + 1) for index in range(run.count))
