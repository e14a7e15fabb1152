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

ROOT = Path(__file__).parents[2]
CONFTEST: dict[str, Any] = runpy.run_path(str(ROOT / "conftest.py"))
TABLES = ("DAYS", "DAYS_COMPILED", "DAYS_OF_VERIFY")
LISTS = ("VERIFY", "SPARK", "APART", "LONG", "MANY_MESSAGES", "WHOLE_ONLY")
NAMED = [*(CONFTEST[name] for name in LISTS), *(named for table in TABLES for named in CONFTEST[table].values())]
PREFIXES = sorted({CONFTEST["SMOKE"], *(prefix for named in NAMED for prefix in named)})


@pytest.mark.parametrize("prefix", [prefix for prefix in PREFIXES if "::" not in prefix])
def test_a_named_folder_or_file_has_tests(prefix: str) -> None:
    place = ROOT / prefix
    assert place.is_file() or any(place.rglob("test_*.py"))


class Named:
    """Takes the place of a test with marks, or without."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid = nodeid
        self.marks = [*marks]

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark if isinstance(mark, str) else mark.name)


def test_the_option_leaves_tests_out() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "tests/readback/test_ctl_writes.py", "--day", "20787"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    found = re.search(r"^(\d+)/(\d+) tests collected", done.stdout, re.MULTILINE)
    assert found
    assert int(found[1]) == pytest.approx(int(found[2]) / 3, abs=1)


@pytest.mark.parametrize(
    ("file", "marks", "days"),
    [
        ("tests/amqp/test_x.py", (), 1),
        *((CONFTEST["DAYS"][days][0], (), days) for days in CONFTEST["DAYS"]),
        ("tests/test_x.py", ("verify",), 9),
        *((CONFTEST["DAYS_OF_VERIFY"][days][0], ("verify",), days) for days in CONFTEST["DAYS_OF_VERIFY"]),
    ],
)
def test_each_test_runs_on_one_of_its_days(file: str, marks: tuple[str, ...], days: int) -> None:
    items = [Named(f"{file}::{number}", *marks) for number in range(162)]
    others = [Named(f"tests/first/test_x.py::{number}", "verify") for number in range(5)]
    chosen = [[item for item in CONFTEST["of_day"]([*others, *items], day) if item in items] for day in range(days)]
    assert sorted((item for found in chosen for item in found), key=items.index) == items


def test_a_day_has_a_third_of_the_places_and_one_version_of_rabbitmq() -> None:
    items = [Named(f"compat/{folder}/test_x.py::{number}", "verify") for folder in "abcdef" for number in range(20)]
    chosen = [CONFTEST["of_day"](items, day) for day in range(9)]
    assert [len({item.nodeid.split("/")[1] for item in found}) for found in chosen] == [2] * 9
    versions = [{int(item.nodeid.partition("::")[2]) % 3 for item in found} for found in chosen]
    assert versions == [{0}] * 3 + [{1}] * 3 + [{2}] * 3


def test_places_that_take_longest_have_their_days_in_turn() -> None:
    files = [f"{'tests/pyspark_amqp' if place == 'Spark' else place}/test_x.py" for place in CONFTEST["PLACES"]]
    items = [Named(f"{file}::{number}", "verify") for file in files for number in range(81)]
    chosen = [CONFTEST["of_day"](items, day) for day in range(3)]
    found = [list(dict.fromkeys(CONFTEST["place_of"](item.nodeid) for item in items)) for items in chosen]
    assert [places[: len(found)] for places in found] == [list(CONFTEST["PLACES"][turn::3]) for turn in range(3)]


def test_fewer_tests_of_the_http_api_run_with_the_compiled_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    item = Named("tests/management/api/test_x.py")
    assert CONFTEST["days_of"](item) == 1
    monkeypatch.setenv("AMQP_BROKER_COMPILED", "1")
    assert CONFTEST["days_of"](item) == 3


def test_coverage_leaves_out_only_cases_that_run_with_the_compiled_modules() -> None:
    file = CONFTEST["MANY_MESSAGES"][0]
    first, second = Named(f"{file}::test_a[1]"), Named(f"{file}::test_a[2]")
    interpreted = [Named(f"{file}::test_b[{number}]", "interpreted") for number in range(2)]
    CONFTEST["mark"]([first, second, *interpreted])
    assert [item.marks for item in (first, second, *interpreted)] == [
        [],
        ["uncovered"],
        ["interpreted"],
        ["interpreted"],
    ]


def test_the_mark_of_make_verify_is_in_the_files_of_its_tests() -> None:
    """Files without the word are not imported for `make verify`; those of tests/pyspark_amqp have the word Spark."""
    files = [path for folder in ("tests", "compat") for path in (ROOT / folder).rglob("*.py")]
    marking = {path.relative_to(ROOT).as_posix() for path in files if "mark.verify" in path.read_text("utf-8")}
    assert {path for path in marking if not Path(path).name.startswith("test_")} == {"tests/pyspark_amqp/conftest.py"}


def test_a_named_test_exists() -> None:
    # All tests are collected, not those alone: the files of their assertions are cached for the other steps of CI.
    # One module needs a library that only `make verify` installs.
    command = [sys.executable, "-m", "pytest", "--collect-only", "--ignore=tests/bench/test_page.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = tuple(done.stdout.splitlines())
    named = [prefix for prefix in PREFIXES if "::" in prefix]
    assert [prefix for prefix in named if not any(test.startswith(prefix) for test in collected)] == []
