"""Work in steps, for tests of what happens between two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from amqp_broker.broker.scheduling.portions import Steps

T = TypeVar("T")


def counted(steps: Steps[T], between: dict[int, Callable[[], object]] | None = None) -> tuple[int, T]:
    """Run all steps, and return their number and the result; `between` has calls by the number of steps before."""
    calls, count = dict(between or {}), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            assert not calls, f"there were only {count} steps"
            result: T = end.value
            return count, result
        count += 1
        if count in calls:
            calls.pop(count)()
