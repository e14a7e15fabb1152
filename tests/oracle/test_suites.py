"""The suites that a day asks."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from compat.ctl.running import WITHOUT_ADMIN
from compat.oracle.suites import SUITES, areas_of_today, of_today
from compat.oracles import oracle


def test_all_suites_are_asked_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert of_today(date(2026, 11, 23)) == list(SUITES)


def test_ci_asks_each_oracle_each_suite_within_six_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    days = [date(2026, 11, 23) + timedelta(number) for number in range(6)]
    asked = [(minor, name) for day in days for minor in oracle.of_today(day) for name in of_today(day)]
    assert sorted(asked) == sorted((minor, name) for minor in oracle.ORACLES for name in SUITES)


def test_ci_asks_each_oracle_each_area_of_the_command_lines_within_eighteen_days(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", "true")
    days = [date(2026, 11, 23) + timedelta(number) for number in range(18)]
    ctl = [day for day in days if "ctl" in of_today(day)]
    asked = {(minor, area) for day in ctl for minor in oracle.of_today(day) for area in areas_of_today("ctl", day)}
    assert asked == {(minor, f"{area}/") for minor in oracle.ORACLES for area in WITHOUT_ADMIN}


def test_a_contributor_asks_the_command_lines_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert areas_of_today("ctl", date(2026, 11, 23)) == [""]


def test_other_suites_are_asked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert areas_of_today("wire", date(2026, 11, 23)) == [""]
