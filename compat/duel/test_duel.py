"""The duel finds bugs: a broker without the bug stands for RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import just

from amqp_broker.conformance.duel.program_records import from_json, to_json
from amqp_broker.conformance.duel.steps import Program
from amqp_broker.settings.profiles import DEFAULT
from compat.brokers import AmqpBroker
from compat.duel.campaign import Search, Tally
from compat.duel.judge import OWN, SLOW, Corner, Judge
from compat.duel.planted import PlantedBroker
from compat.duel.programs import programs
from compat.duel.themes import Theme

VHOST = "duel"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    broker = AmqpBroker(tmp_path_factory.mktemp("sound"), profile=DEFAULT)
    with broker.running():
        yield broker


def found_in(planted: PlantedBroker, sound: AmqpBroker, count: int) -> str:
    """Return the scenario that shows the bug."""
    with planted.running():
        corners = [Corner(broker, VHOST, OWN) for broker in (planted, sound)]
        for corner in corners:
            corner.prepare()
        # Both are amqp-broker, which has no races that only one of many paces shows.
        judge = Judge(corners[0], corners[1:], 0, paces=SLOW[:2])
        # Programs of this theme have few waits.
        search = Search(judge, Tally(), {}, shrink_s=60.0, drawn=programs(just(Theme())))
        verdict = search.run("5", count, (Phase.generate, Phase.shrink))
    return verdict.source if verdict else ""


def test_a_planted_bug_is_found_and_shown_by_a_small_scenario(tmp_path: Path, sound: AmqpBroker) -> None:
    source = found_in(PlantedBroker(tmp_path, "what_came_back_is_not_marked", DEFAULT), sound, 50)
    steps = [line for line in source.splitlines() if "lab.rest" not in line]
    assert "def found_by_the_duel(lab: Lab) -> None:" in source
    assert len(steps) < 20


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_a_program_is_the_same_after_a_record(program: Program) -> None:
    assert tuple(from_json(to_json(step)) for step in program) == program
