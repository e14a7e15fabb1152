"""A short soak; `make soak` runs a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversity.watching import MIB
from tests.soak.soak import Checkpoint, leftovers, soak

DURATION_S = 45
FIRST = Checkpoint(50 * MIB, 20, {"queues": 0})


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (Checkpoint(60 * MIB, 21, {"queues": 0}), []),
        (Checkpoint(90 * MIB, 20, {"queues": 0}), ["memory grew from 50 to 90 MiB"]),
        (Checkpoint(50 * MIB, 30, {"queues": 0}), ["files were left open: 20, at the end 30"]),
        (Checkpoint(50 * MIB, 20, {"queues": 1}), ["objects were left: {'queues': 0}, at the end {'queues': 1}"]),
    ],
)
def test_a_leak_is_an_error(last: Checkpoint, told: list[str]) -> None:
    assert list(leftovers(FIRST, last)) == told


@pytest.mark.verify
def test_a_broker_keeps_nothing_of_applications_that_have_left(tmp_path: Path) -> None:
    result = soak(tmp_path / "broker", DURATION_S, seed=1)
    assert result.errors == []
    assert result.rounds > 10
    assert result.messages > 100
