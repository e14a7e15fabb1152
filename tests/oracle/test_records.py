"""RabbitMQ's answers are stored in files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat.brokers import BrokerProcess
from compat.oracle import records
from compat.oracle.comparing import fields
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracle.suites import SUITES
from compat.oracles.oracle import ORACLES


@contextmanager
def _no_answers(_: BrokerProcess) -> Iterator[Answers]:
    yield {}


PLAIN = Suite("plain", _no_answers, _no_answers, fields)
WITH_AREAS = Suite("parted", _no_answers, _no_answers, fields, has_areas=True)


def save(suite: Suite, seen: records.Seen, folder: Path) -> None:
    records.save(suite, seen, "3.10", folder)


def load(suite: Suite, folder: Path) -> records.Seen:
    return records.load(suite, "3.10", folder)


@pytest.mark.parametrize(
    ("suite", "seen"),
    [
        (PLAIN, {"greeting": [["é", 1.0, None]], "a/b": [{"x": True}, {"x": False}]}),
        (WITH_AREAS, {"users/GET users/guest": ["x"], "users/PUT users": ["y"], "vhosts/GET vhosts": [1, 2]}),
        (PLAIN, {}),
        (WITH_AREAS, {}),
    ],
)
def test_saved_records_are_loaded(suite: Suite, seen: records.Seen, tmp_path: Path) -> None:
    save(suite, seen, tmp_path)
    assert load(suite, tmp_path) == seen


@pytest.mark.parametrize("suite", [PLAIN, WITH_AREAS])
def test_a_new_suite_has_no_records(suite: Suite, tmp_path: Path) -> None:
    assert load(suite, tmp_path) == {}


def test_a_suite_is_one_file_per_oracle(tmp_path: Path) -> None:
    save(PLAIN, {"a/b": ["é"]}, tmp_path)
    assert (tmp_path / "3.10" / "plain.json").read_text("utf-8") == '{\n "a/b": [\n  "é"\n ]\n}\n'


def test_an_area_is_a_file_of_questions_without_the_areas_name(tmp_path: Path) -> None:
    save(WITH_AREAS, {"users/GET users/guest": [1], "vhosts/GET vhosts": [2]}, tmp_path)
    files = {file.name: file.read_text("utf-8") for file in (tmp_path / "3.10" / "parted").iterdir()}
    assert files == {
        "users.json": '{\n "GET users/guest": [\n  1\n ]\n}\n',
        "vhosts.json": '{\n "GET vhosts": [\n  2\n ]\n}\n',
    }


def test_an_area_without_questions_loses_its_file(tmp_path: Path) -> None:
    save(WITH_AREAS, {"users/a": [1], "vhosts/b": [2]}, tmp_path)
    save(WITH_AREAS, {"users/a": [1]}, tmp_path)
    assert [file.name for file in (tmp_path / "3.10" / "parted").iterdir()] == ["users.json"]


def test_oracles_are_separate(tmp_path: Path) -> None:
    save(PLAIN, {"a": [1]}, tmp_path)
    records.save(PLAIN, {"a": [2]}, "4.3", tmp_path)
    assert load(PLAIN, tmp_path) == {"a": [1]}


def test_another_answer_is_an_alternative() -> None:
    seen: records.Seen = {"a": [1], "b": [1]}
    assert records.merge(PLAIN, seen, {"a": 2, "b": 1, "c": None}) == ["a", "c"]
    assert seen == {"a": [1, 2], "b": [1], "c": [None]}
    assert records.merge(PLAIN, seen, {"a": 1, "c": None}) == []


def test_the_order_of_keys_is_irrelevant() -> None:
    assert records.unseen(PLAIN, {"a": [{"x": 1, "y": 2}]}, {"a": {"y": 2, "x": 1}}) == []


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, 1.0), ([{"x": 0}], [{"x": 0.0}])])
def test_values_that_only_python_treats_as_equal_are_different_answers(one: Answer, other: Answer) -> None:
    assert records.unseen(PLAIN, {"a": [one]}, {"a": other}) == ["a"]


def test_the_order_of_a_set_is_irrelevant() -> None:
    seen: records.Seen = {"a": [[{"name": "x"}, {"name": "y"}]]}
    assert records.unseen(PLAIN, seen, {"a": [{"name": "y"}, {"name": "x"}]}) == []
    assert records.unseen(PLAIN, seen, {"a": [{"name": "y"}, {"name": "z"}]}) == ["a"]


def test_a_question_without_a_record_is_unseen() -> None:
    assert records.unseen(PLAIN, {"a": [1]}, {"a": 1, "b": 1}) == ["b"]


def test_the_exact_version_is_recorded_once_for_all_suites(tmp_path: Path) -> None:
    assert records.recorded_version("4.3", tmp_path) == ""
    records.save_version("4.3", "4.3.6", tmp_path)
    assert records.recorded_version("4.3", tmp_path) == "4.3.6"


@pytest.mark.parametrize("oracle", ORACLES)
def test_each_suite_is_recorded_of_each_oracle(oracle: str) -> None:
    files = [file.stem for suite in SUITES.values() for file in ((suite.folder or records.RECORDED) / oracle).iterdir()]
    assert set(files) == {*SUITES, Path(records.VERSION_FILE).stem}
    assert [name for name, suite in SUITES.items() if not records.load(suite, oracle)] == []


@pytest.mark.parametrize("oracle", ORACLES)
def test_the_recorded_version_is_one_of_the_oracle(oracle: str) -> None:
    assert records.recorded_version(oracle).startswith(f"{oracle}.")
