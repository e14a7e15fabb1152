"""Programs with the answers of RabbitMQ."""

from __future__ import annotations

from pathlib import Path

import pytest
from pamqp.commands import Basic, Queue

from amqp_broker.conformance.duel import program_records
from amqp_broker.conformance.duel.program_records import Recorded, from_json, load, save, to_json
from amqp_broker.conformance.duel.steps import At, Call, End, Http, Name, Publish, Settle, Wait
from amqp_broker.conformance.records import ORACLES
from amqp_broker.conformance.wire import Field

PROGRAM = (
    Call(At(1, 2), Queue.Declare, {"queue": Name("q0"), "arguments": {"x-max-length": Field("b", 5)}}),
    Call(At(), Basic.Recover, {"requeue": True}),
    Publish(At(), {"routing_key": Name("q0"), "headers": {"CC": [Name("q1")], "n": None}}, 2, 30),
    Settle(At(), "nack", None, {"requeue": True}),
    End(1, is_reset=True),
    Wait(1200),
    Http("PUT", "policies/{vhost}/p", {"definition": {"max-length": 1}}),
)


def test_each_kind_of_step_is_the_same_after_json() -> None:
    assert tuple(from_json(to_json(step)) for step in PROGRAM) == PROGRAM


def test_saved_programs_are_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(program_records, "RECORDED", tmp_path / "duel.jsonl.gz")
    recorded = [Recorded(PROGRAM, [["q0: 1 ready, 0 consumers"]], ("4.0", "4.3"))]
    save(recorded)
    assert load() == recorded


@pytest.mark.parametrize("oracle", ORACLES)
def test_each_oracle_has_programs(oracle: str) -> None:
    assert sum(oracle in one.oracles for one in load()) >= 100


def test_each_program_has_windows_for_its_steps() -> None:
    assert all(len(one.windows) >= len(one.program) for one in load())
