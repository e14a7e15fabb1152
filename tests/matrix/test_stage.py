"""The assignment of stages to clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.matrix.results import AMQP_BROKER, RABBITMQ
from compat.matrix.stage import Scene, Stages
from tests.matrix.rehearsal import Rehearsal


@pytest.fixture
def made() -> list[Rehearsal]:
    return []


@pytest.fixture
def stages(made: list[Rehearsal], tmp_path: Path) -> Stages:
    def make(broker_name: str, folder: Path) -> Scene:
        made.append(Rehearsal({"folder": folder.name}, broker_name))
        return made[-1]

    return Stages(tmp_path, make)


def test_clients_that_play_at_once_have_separate_stages(stages: Stages, made: list[Rehearsal]) -> None:
    with stages.taken(AMQP_BROKER) as one, stages.taken(AMQP_BROKER) as other:
        assert [one, other] == made
    assert [stage.asked for stage in made] == [["start"], ["start"]]
    assert len({stage.variables["folder"] for stage in made}) == 2


def test_a_free_stage_is_reused(stages: Stages, made: list[Rehearsal]) -> None:
    for _ in range(2):
        with stages.taken(AMQP_BROKER):
            pass
    assert [stage.asked for stage in made] == [["start"]]


def test_each_broker_has_separate_stages(stages: Stages) -> None:
    for name in (AMQP_BROKER, RABBITMQ, AMQP_BROKER):
        with stages.taken(name) as stage:
            assert stage.name == name


def test_a_stage_is_not_reused_after_an_error(stages: Stages, made: list[Rehearsal]) -> None:
    with pytest.raises(RuntimeError, match="did not start"), stages.taken(AMQP_BROKER):
        raise RuntimeError("did not start")
    with stages.taken(AMQP_BROKER) as stage:
        assert stage is made[1]


def test_all_stages_are_stopped_at_the_end(stages: Stages, made: list[Rehearsal]) -> None:
    with stages.taken(AMQP_BROKER), stages.taken(RABBITMQ):
        pass
    stages.end()
    assert [stage.asked for stage in made] == [["start", "end"], ["start", "end"]]
