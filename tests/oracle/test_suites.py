"""The suites that a day asks."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from compat.oracle.suites import SUITES, of_today
from compat.oracles import oracle


def test_all_suites_are_asked_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert of_today(date(2026, 11, 23)) == list(SUITES)


def test_ci_asks_each_oracle_each_suite_within_six_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    days = [date(2026, 11, 23) + timedelta(number) for number in range(6)]
    asked = [(minor, name) for day in days for minor in oracle.of_today(day) for name in of_today(day)]
    assert sorted(asked) == sorted((minor, name) for minor in oracle.ORACLES for name in SUITES)
