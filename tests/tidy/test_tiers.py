"""Each prefix by which the root conftest.py assigns tests to `make verify` or to a worker matches a test.

Otherwise a renamed file would silently move its tests from `make verify` to `make test`.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compat.turns import TURNS

ROOT = Path(__file__).parents[2]
CONFTEST: dict[str, Any] = runpy.run_path(str(ROOT / "conftest.py"))
LISTS = ("VERIFY", "SPARK", "APART", "LONG", "MANY_MESSAGES", "MONTHLY", "NINTH", "THIRD_OF_TEST", "WHOLE_ONLY")
PREFIXES = sorted({CONFTEST["SMOKE"], CONFTEST["HALF"], *(prefix for name in LISTS for prefix in CONFTEST[name])})


@pytest.mark.parametrize("prefix", [prefix for prefix in PREFIXES if "::" not in prefix])
def test_a_named_folder_or_file_has_tests(prefix: str) -> None:
    place = ROOT / prefix
    assert place.is_file() or any(place.rglob("test_*.py"))


class Named:
    """Takes the place of a test without marks."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid

    def get_closest_marker(self, name: str) -> None:
        pass


def test_each_test_is_in_one_third() -> None:
    items = [Named(f"tests/test_x.py::{number}") for number in range(100)]
    thirds = [CONFTEST["of_third"](items, third) for third in range(3)]
    assert sorted((item for third in thirds for item in third), key=items.index) == items
    assert max(map(len, thirds)) - min(map(len, thirds)) <= 1


def test_the_option_leaves_two_of_three_out() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "tests/matrix/test_rows.py", "--third", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    found = re.search(r"^(\d+)/(\d+) tests collected", done.stdout, re.MULTILINE)
    assert found
    assert int(found[1]) == pytest.approx(int(found[2]) / 3, abs=1)


class Marked:
    """Takes the place of a test with a turn."""

    nodeid = "compat/oracle/test_records.py"

    def __init__(self, turn: int) -> None:
        self._turn = turn

    def get_closest_marker(self, name: str) -> pytest.Mark:
        return pytest.Mark(name, (self._turn,), {}, _ispytest=True)


@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.parametrize("number", range(9))
def test_a_test_with_a_turn_runs_on_one_of_27_days(number: int, turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    days = []
    for day in range(20_000, 20_027):
        monkeypatch.setattr("time.time", lambda now=day * 24 * 3600: now)
        if CONFTEST["is_in_third"](Marked(turn), number, day % 3):
            days.append(day)
    monkeypatch.undo()
    assert len(days) == 1


@pytest.mark.parametrize("days", [9, 27])
@pytest.mark.parametrize("number", range(30))
def test_a_long_test_runs_on_one_of_its_days(number: int, days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = []
    for day in range(20_000, 20_000 + days):
        monkeypatch.setattr("time.time", lambda now=day * 24 * 3600: now)
        if CONFTEST["is_of_today"](number, days, day % 3):
            run.append(day)
    monkeypatch.undo()
    assert len(run) == 1


@pytest.mark.parametrize(("files", "each_third"), [("NINTH", 3), ("MONTHLY", 1)])
def test_long_tests_are_numbered_among_themselves(files: str, each_third: int) -> None:
    long = CONFTEST[files][0]
    items = [Named(long if number % 2 else "tests/other.py") for number in range(54)]
    chosen = [CONFTEST["of_third"](items, third) for third in range(3)]
    assert [sum(item.nodeid == long for item in items) for items in chosen] == [each_third] * 3
    assert sum(item.nodeid != long for items in chosen for item in items) == 27


class Marking(Named):
    """Takes the place of a test that gets marks."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        super().__init__(nodeid)
        self.marks = [*marks]

    def get_closest_marker(self, name: str) -> str | None:  # type: ignore[override]
        return name if name in self.marks else None

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark if isinstance(mark, str) else mark.name)


def test_coverage_leaves_out_only_cases_that_run_with_the_compiled_modules() -> None:
    file = CONFTEST["MANY_MESSAGES"][0]
    first, second = Marking(f"{file}::test_a[1]"), Marking(f"{file}::test_a[2]")
    interpreted = [Marking(f"{file}::test_b[{number}]", "interpreted") for number in range(2)]
    CONFTEST["mark"]([first, second, *interpreted])
    assert [item.marks for item in (first, second, *interpreted)] == [
        [],
        ["uncovered"],
        ["interpreted"],
        ["interpreted"],
    ]


def test_each_third_has_every_other_test_of_the_random_programs() -> None:
    items = [Named(f"{CONFTEST['HALF']}::{number}") for number in range(2)]
    assert [CONFTEST["of_third"](items, third) for third in range(3)] == [items[:1], items[1:], items[:1]]


def test_a_third_of_the_long_tests_of_make_test_runs_with_all_others() -> None:
    long = CONFTEST["THIRD_OF_TEST"][0]
    items = [Named(long if number % 2 else "tests/other.py") for number in range(36)]
    chosen = [CONFTEST["of_long_third"](items, third) for third in range(3)]
    assert [sum(item.nodeid == long for item in items) for items in chosen] == [6, 6, 6]
    assert [sum(item.nodeid != long for item in items) for items in chosen] == [18, 18, 18]


def test_the_mark_of_make_verify_is_in_the_files_of_its_tests() -> None:
    """Files without the word are not imported for `make verify`; those of tests/pyspark_amqp have the word Spark."""
    files = [path for folder in ("tests", "compat") for path in (ROOT / folder).rglob("*.py")]
    marking = {path.relative_to(ROOT).as_posix() for path in files if "mark.verify" in path.read_text("utf-8")}
    assert {path for path in marking if not Path(path).name.startswith("test_")} == {"tests/pyspark_amqp/conftest.py"}


def test_a_named_test_exists() -> None:
    named = [prefix for prefix in PREFIXES if "::" in prefix]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *named]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
