"""Takes turns: CI has no time for all cases of its slowest tests, so each day has some of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from typing import TypeVar

Case = TypeVar("Case")


def in_turn(cases: Sequence[Case], count: int, turn: int) -> list[Case]:
    """Return `count` of the cases; over the turns each of them is returned equally often."""
    first = turn * count
    return [cases[(first + index) % len(cases)] for index in range(min(count, len(cases)))]


def of_today(cases: Sequence[Case], count: int, today: date | None = None) -> list[Case]:
    """Return all cases, in CI `count` of them, others each day."""
    if not os.environ.get("CI"):
        return list(cases)
    return in_turn(cases, count, (today or date.today()).toordinal())
