"""A few messages; `python -m tests.soak.fragmentation` has millions of them pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversity.watching import MIB, needs_proc
from tests.soak.fragmentation import WARM_UP, Course, passed


@pytest.mark.parametrize(("last_mib", "errors"), [(60, []), (81, []), (120, ["memory grew from 50 to 120 MiB"])])
def test_growth_after_the_warm_up_is_an_error(last_mib: int, errors: list[str]) -> None:
    course = Course({1: 40 * MIB, WARM_UP: 50 * MIB, WARM_UP + 1: 90 * MIB, 2 * WARM_UP: last_mib * MIB})
    assert course.errors() == errors


@needs_proc
@pytest.mark.verify
def test_memory_does_not_stay_in_pieces(tmp_path: Path) -> None:
    course = passed(tmp_path / "broker", 20_000, seed=1, backlog_max=8_000)
    assert len(course.memory) > 2
    assert course.errors() == []
