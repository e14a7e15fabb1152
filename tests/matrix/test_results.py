"""What the programs of the client matrix say, and where the two brokers are held to differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.matrix.results import OURS, RABBITMQ, ClientResults, Kind, Outcome, differences, load, parse_result, save

OK = Outcome(Kind.OK)
FAILED = Outcome(Kind.FAILED, "nothing came")
UNSUPPORTED = Outcome(Kind.UNSUPPORTED, "no streams")


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("RESULT ttl ok", ("ttl", OK)),
        ("RESULT ttl ok after 3 s", ("ttl", OK)),
        ("RESULT ttl failed nothing came", ("ttl", FAILED)),
        ("RESULT stream unsupported no streams", ("stream", UNSUPPORTED)),
        ("RESULT ttl failed", ("ttl", Outcome(Kind.FAILED, "no reason told"))),
    ],
)
def test_a_result_is_a_scenario_with_its_outcome(line: str, result: tuple[str, Outcome]) -> None:
    assert parse_result(line) == result


@pytest.mark.parametrize("line", ["", "RESULT", "RESULT ttl", "RESULT ttl fine", "result ttl ok", "the RESULT ttl ok"])
def test_any_other_line_is_no_result(line: str) -> None:
    assert parse_result(line) is None


def played(ours: Outcome | None, theirs: Outcome | None) -> dict[str, ClientResults]:
    brokers = {OURS: ours, RABBITMQ: theirs}
    outcomes = {broker: {"ttl": outcome} for broker, outcome in brokers.items() if outcome}
    return {"pika": ClientResults("Python", "1.3", outcomes=outcomes)}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(OK, OK), (FAILED, FAILED), (UNSUPPORTED, UNSUPPORTED), (OK, None), (UNSUPPORTED, None), (None, FAILED)],
)
def test_what_ends_alike_or_was_not_played_is_no_difference(ours: Outcome | None, theirs: Outcome | None) -> None:
    assert differences(played(ours, theirs), ["ttl"]) == []


@pytest.mark.parametrize(
    ("ours", "theirs", "line"),
    [
        (FAILED, OK, "pika, ttl: failed, nothing came; RabbitMQ: ok"),
        (OK, FAILED, "pika, ttl: ok; RabbitMQ: failed, nothing came"),
        (UNSUPPORTED, OK, "pika, ttl: unsupported, no streams; RabbitMQ: ok"),
        (FAILED, None, "pika, ttl: failed, nothing came; RabbitMQ was not asked"),
    ],
)
def test_what_ends_otherwise_than_at_rabbitmq_is_told(ours: Outcome, theirs: Outcome | None, line: str) -> None:
    assert differences(played(ours, theirs), ["ttl"]) == [line]


def test_only_the_scenarios_asked_for_are_compared() -> None:
    assert differences(played(FAILED, OK), ["rpc"]) == []


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results = {**played(FAILED, OK), "bunny": ClientResults("Ruby", "2.23", absent="no Ruby here")}
    save(tmp_path / "results.json", results)
    assert load(tmp_path / "results.json") == results


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert load(tmp_path / "results.json") == {}
