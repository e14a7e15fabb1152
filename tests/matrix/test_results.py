"""Outcomes of the client matrix, and the differences between the two brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.matrix.results import (
    AMQP_BROKER,
    RABBITMQ,
    ClientResults,
    Kind,
    Outcome,
    differences,
    load,
    parse_result,
    save,
)

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
        ("RESULT ttl failed", ("ttl", Outcome(Kind.FAILED, "no reason given"))),
    ],
)
def test_a_result_is_a_scenario_with_its_outcome(line: str, result: tuple[str, Outcome]) -> None:
    assert parse_result(line) == result


@pytest.mark.parametrize("line", ["", "RESULT", "RESULT ttl", "RESULT ttl fine", "result ttl ok", "the RESULT ttl ok"])
def test_any_other_line_is_not_a_result(line: str) -> None:
    assert parse_result(line) is None


def played(amqp_broker: Outcome | None, rabbitmq: Outcome | None) -> dict[str, ClientResults]:
    brokers = {AMQP_BROKER: amqp_broker, RABBITMQ: rabbitmq}
    outcomes = {broker: {"ttl": outcome} for broker, outcome in brokers.items() if outcome}
    return {"pika": ClientResults("Python", "1.3", outcomes=outcomes)}


@pytest.mark.parametrize(
    ("amqp_broker", "rabbitmq"),
    [
        (OK, OK),
        (FAILED, FAILED),
        (UNSUPPORTED, UNSUPPORTED),
        (OK, None),
        (UNSUPPORTED, None),
        (OK, UNSUPPORTED),
        (None, FAILED),
    ],
)
def test_equal_or_missing_outcomes_are_not_a_difference(amqp_broker: Outcome | None, rabbitmq: Outcome | None) -> None:
    assert differences(played(amqp_broker, rabbitmq), ["ttl"]) == []


@pytest.mark.parametrize(
    ("amqp_broker", "rabbitmq", "line"),
    [
        (FAILED, OK, "pika, ttl: failed, nothing came; RabbitMQ: ok"),
        (OK, FAILED, "pika, ttl: ok; RabbitMQ: failed, nothing came"),
        (UNSUPPORTED, OK, "pika, ttl: unsupported, no streams; RabbitMQ: ok"),
        (FAILED, UNSUPPORTED, "pika, ttl: failed, nothing came; RabbitMQ: unsupported, no streams"),
        (FAILED, None, "pika, ttl: failed, nothing came; RabbitMQ was not asked"),
    ],
)
def test_an_outcome_that_differs_from_rabbitmqs_is_reported(
    amqp_broker: Outcome, rabbitmq: Outcome | None, line: str
) -> None:
    assert differences(played(amqp_broker, rabbitmq), ["ttl"]) == [line]


def test_only_the_requested_scenarios_are_compared() -> None:
    assert differences(played(FAILED, OK), ["rpc"]) == []


def test_saved_results_are_loaded(tmp_path: Path) -> None:
    results = {**played(FAILED, OK), "bunny": ClientResults("Ruby", "2.23", absent="no Ruby here")}
    save(tmp_path / "results.json", results)
    assert load(tmp_path / "results.json") == results


def test_without_a_file_there_are_no_results(tmp_path: Path) -> None:
    assert load(tmp_path / "results.json") == {}
