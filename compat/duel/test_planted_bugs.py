"""The duel finds bugs: `found.json` has a program for each, which a broker with the bug answers differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.duel.finding import UNSEEN, finds, load_found, sought
from compat.duel.planted import bugs

FOUND = load_found()
# Bugs that none of the random programs has shown, although programs that show them can be drawn.
RARE: set[str] = {
    "nobody_looks_behind_the_last_that_is_delivered",
    "settling_does_not_count_in_the_queue",
    "what_is_due_behind_the_head_expires",
}


@pytest.mark.verify
@pytest.mark.parametrize("name", sorted(FOUND.keys() - RARE))
def test_a_planted_bug_is_found(tmp_path: Path, name: str) -> None:
    found = FOUND[name]
    assert found is not None
    assert finds(found, name, tmp_path)


def test_each_bug_is_found_or_a_reason_is_given() -> None:
    assert FOUND.keys() == set(sought())
    assert {name for name, found in FOUND.items() if found is None} == RARE
    assert UNSEEN.keys() <= bugs().keys()
