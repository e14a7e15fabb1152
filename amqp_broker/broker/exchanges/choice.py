"""Choices of one destination by a number, for exchanges with one destination per message."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from amqp_broker.broker.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Destination

T = TypeVar("T")


class Choice:
    """Destinations with the number of their bindings, each of which has the same chance.

    They are sorted: exchanges first, then queues, each by name. A deleted destination is never chosen, although its
    bindings are removed in steps.
    """

    __slots__ = ("_counts", "_ends", "_sorted")

    def __init__(self) -> None:
        self._counts: dict[Destination, int] = {}
        # The destinations in order, and for each the number of bindings up to it: made when they are needed.
        self._sorted: list[Destination] = []
        self._ends: list[int] = []

    def add(self, destination: Destination) -> None:
        """Add a binding of a destination."""
        self._counts[destination] = self._counts.get(destination, 0) + 1
        self._ends = []

    def remove(self, destination: Destination) -> None:
        """Remove a binding of a destination."""
        left = self._counts.get(destination, 1) - 1
        if left:
            self._counts[destination] = left
        else:
            # It may have been deleted, and found so before.
            self._counts.pop(destination, None)
        self._ends = []

    def __len__(self) -> int:
        return len(self._counts)

    def of(self, number: int) -> Collection[Destination]:
        """Return the destination that a number stands for, if there is any."""
        while self._counts:
            ends = self._ends or self._sort()
            chosen = self._sorted[bisect_right(ends, number % ends[-1])]
            if not chosen.is_deleted:
                return (chosen,)
            self._counts = without_deleted(self._counts)
            self._ends = []
        return ()

    def _sort(self) -> list[int]:
        self._sorted = sorted(self._counts, key=kind_and_name)
        self._ends = list(accumulate(self._counts[destination] for destination in self._sorted))
        return self._ends


def without_deleted(by_destination: dict[Destination, T]) -> dict[Destination, T]:
    """Return values by destination, without those of deleted ones."""
    return {destination: value for destination, value in by_destination.items() if not destination.is_deleted}


def kind_and_name(destination: Destination) -> str:
    kind = "exchange" if isinstance(destination, Exchange) else "queue"
    return f"{kind} {destination.name}"
