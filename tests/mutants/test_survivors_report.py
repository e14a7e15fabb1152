from __future__ import annotations

import pytest

from tests.mutants import survivors_report
from tests.mutants.matrix import Outcome
from tests.mutants.survivors_report import alone, needed, survivors

OUTCOMES = [
    Outcome("of one", "a.py:1", ["t::quick"], 3),
    Outcome("of two", "a.py:2", ["t::quick", "t::slow"], 3),
    Outcome("of others", "a.py:3", ["t::slow", "t::fast"], 3),
    Outcome("of none", "a.py:4", [], 3),
    Outcome("the same", "a.py:5", [], 3),
]


def test_a_survivor_is_neither_caught_nor_equivalent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survivors_report, "EQUIVALENT", {"the same": "because"})
    assert [outcome.name for outcome in survivors(OUTCOMES)] == ["of none"]


def test_tests_that_catch_a_mutant_alone_are_reported() -> None:
    assert alone(OUTCOMES) == {"t::quick": 1}


def test_the_quickest_of_equivalent_tests_is_needed() -> None:
    assert needed(OUTCOMES, {"t::quick": 0.1, "t::slow": 2.0, "t::fast": 0.5}) == {"t::quick": 2, "t::fast": 1}
