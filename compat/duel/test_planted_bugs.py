"""The duel finds bugs: `found.json` has a program for each, which a broker with the bug answers differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.duel.finding import UNSEEN, finds, load_found, sought
from compat.duel.planted import bugs

FOUND = load_found()
# Bugs that no random program has shown so far, and the order of steps that one would need.
RARE = {
    "settling_does_not_count_in_the_queue": "acks of a transaction, or with a global prefetch, and no close after them",
}


@pytest.mark.verify
@pytest.mark.parametrize("name", sorted(FOUND.keys() - RARE.keys()))
def test_a_planted_bug_is_found(tmp_path: Path, name: str) -> None:
    found = FOUND[name]
    assert found is not None
    assert finds(found, name, tmp_path)


def test_each_bug_is_found_or_a_reason_is_given() -> None:
    assert FOUND.keys() == set(sought())
    assert {name for name, found in FOUND.items() if found is None} == RARE.keys()
    assert UNSEEN.keys() <= bugs().keys()
