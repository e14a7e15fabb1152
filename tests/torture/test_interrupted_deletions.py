"""A few kills during deletions; `make torture ARGS="--rounds 0 --deletion-rounds 50"` does more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.interrupted_deletions import KINDS, interrupt_deletion

ROUNDS = 2
SEED = 1
BINDINGS = 10_000


@pytest.mark.verify
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_deletion_is_finished_by_the_next_start(tmp_path: Path, kind: str) -> None:
    result = interrupt_deletion(kind, tmp_path / kind, ROUNDS, SEED, BINDINGS)
    assert result.errors == []
    # Otherwise nothing was interrupted.
    assert result.kills > 0
