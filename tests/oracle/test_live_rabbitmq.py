"""Answers of a RabbitMQ compared with the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from compat.brokers import BrokerProcess
from compat.oracle import live_rabbitmq, records
from compat.oracle.comparing import fields
from compat.oracle.live_rabbitmq import disagreements
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracles.oracle import OLDEST


def found(seen: dict[str, list[Answer]], answers: dict[str, Answer]) -> list[str]:
    suite = Suite("plain", no_answers, no_answers, fields)
    return list(disagreements(suite, seen, answers))


def no_answers(_: BrokerProcess) -> AbstractContextManager[Answers]:
    return nullcontext({})


def test_a_recorded_answer_is_not_a_disagreement() -> None:
    assert found({"a": [1, 2]}, {"a": 2}) == []


def test_another_answer_is_reported_as_a_diff() -> None:
    assert found({"a": [["x", "y"]]}, {"a": ["x", "z"]}) == [
        'a\n--- recorded\n+++ RabbitMQ now\n@@ -1,4 +1,4 @@\n [\n  "x",\n- "y"\n+ "z"\n ]'
    ]


def test_an_unrecorded_question_is_reported_with_its_answer() -> None:
    assert found({}, {"a": 1}) == ["a\n--- recorded\n+++ RabbitMQ now\n@@ -0,0 +1 @@\n+1"]


def test_a_record_without_a_question_is_reported() -> None:
    assert found({"a": [1], "b": [1]}, {"a": 1}) == ["b: recorded, but not asked"]


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Suite:
    """Return a suite with the records a: 1 and b: 2, whose RabbitMQ now answers 3 to both."""
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    monkeypatch.setattr(live_rabbitmq, "RabbitMQ", Silent)

    @contextmanager
    def answers(_: BrokerProcess) -> Iterator[Answers]:
        yield {"a": 3, "b": 3}

    suite = Suite("plain", answers, answers, fields)
    records.save(suite, {"a": [1], "b": [2]})
    return suite


class Silent:
    """Takes the place of a RabbitMQ that is not asked."""

    def __init__(self, folder: Path, **settings: object) -> None:
        pass

    def start(self) -> None:
        pass

    def kill(self) -> None:
        pass


@pytest.mark.parametrize(
    ("only", "forgets", "kept"),
    [
        ("", False, {"a": [1, 3], "b": [2, 3]}),
        ("", True, {"a": [3], "b": [3]}),
        ("a", False, {"a": [1, 3], "b": [2]}),
        ("a", True, {"a": [3], "b": [2]}),
    ],
)
def test_only_answers_to_asked_questions_are_forgotten(
    suite: Suite, tmp_path: Path, only: str, forgets: bool, kept: records.Seen
) -> None:
    live_rabbitmq.record(suite, OLDEST, tmp_path, 2, only, forgets)
    assert records.load(suite) == kept


def test_an_answer_that_a_busy_machine_has_changed_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    monkeypatch.setattr(live_rabbitmq, "RabbitMQ", Silent)
    runs = iter([{"late": 0, "changed": 3, "same": 1}, {"late": 1}, {"changed": 3}])

    @contextmanager
    def answers(_: BrokerProcess) -> Iterator[Answers]:
        yield next(runs)

    suite = Suite("plain", answers, answers, fields)
    records.save(suite, {"late": [1], "changed": [1], "same": [1]})
    assert [report.splitlines()[0] for report in live_rabbitmq.untrue(suite, OLDEST, tmp_path)] == ["changed"]


@pytest.mark.parametrize(("part", "outdated"), [(None, {"b", "c", "k"}), (0, set()), (1, {"b", "k"}), (2, {"c"})])
def test_a_ninth_of_the_questions_can_be_asked(
    part: int | None, outdated: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    monkeypatch.setattr(live_rabbitmq, "RabbitMQ", Silent)

    @contextmanager
    def answers(_: BrokerProcess) -> Iterator[Answers]:
        yield {question: 2 if question in "bck" else 1 for question in "abcdefghijk"}

    suite = Suite("plain", answers, answers, fields)
    records.save(suite, {question: [1] for question in "abcdefghijk"})
    reports = live_rabbitmq.untrue(suite, OLDEST, tmp_path, part=part)
    assert {report.splitlines()[0] for report in reports} == outdated


def test_a_missing_question_is_an_error(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(live_rabbitmq.NothingAskedError, match="no question of plain contains 'c'"):
        live_rabbitmq.untrue(suite, OLDEST, tmp_path, "c")
    with pytest.raises(live_rabbitmq.NothingAskedError):
        live_rabbitmq.record(suite, OLDEST, tmp_path, 1, "c")
    assert records.load(suite) == {"a": [1], "b": [2]}
