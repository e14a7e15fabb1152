"""A part of a day; `python -m tests.soak.day` lives through a whole one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.adversity.watching import MIB, needs_proc
from tests.soak.day import Count, leaks, live

FIRST = Count(50 * MIB, 20, 1, Counter(Queue=0, Timer=1))


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (Count(60 * MIB, 21, 3, Counter(Timer=11)), []),
        (Count(50 * MIB, 20, 1, Counter(Queue=30)), ["30 more objects Queue"]),
        (Count(50 * MIB, 20, 50, Counter()), ["timers were left: 1, at the end 50"]),
        (
            Count(90 * MIB, 30, 1, Counter()),
            ["files were left open: 20, at the end 30", "memory grew from 50 to 90 MiB"],
        ),
    ],
)
def test_a_leak_is_an_error(last: Count, expected: list[str]) -> None:
    assert list(leaks(FIRST, last)) == expected


@needs_proc
@pytest.mark.verify
def test_a_broker_keeps_nothing_of_the_hours_that_have_passed(tmp_path: Path) -> None:
    day = live(tmp_path / "data", hours=3, seed=2)
    assert list(leaks(day.counts[0], day.counts[-1])) == []
    assert day.connections == 180
