"""The cases of slow tests take turns."""

from __future__ import annotations

from datetime import date

import pytest

from compat.turns import in_turn, of_today

CASES = ["a", "b", "c", "d", "e"]


def test_each_case_has_its_turn_equally_often() -> None:
    found = [case for turn in range(5) for case in in_turn(CASES, 2, turn)]
    assert sorted(found) == sorted(CASES * 2)


def test_a_turn_has_no_case_twice() -> None:
    assert sorted(in_turn(CASES, 9, 3)) == CASES


def test_ci_has_other_cases_each_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    days = [of_today(CASES, 2, date(2026, 11, day)) for day in (22, 23, 24)]
    assert {case for day in days for case in day} == set(CASES)


def test_a_contributor_has_all_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert of_today(CASES, 2, date(2026, 11, 22)) == CASES
