"""The duel finds the bugs that the simulation plants, by programs with a RabbitMQ's answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.brokers import AmqpBroker
from compat.duel import recorded
from compat.duel.http_steps import prepare
from compat.duel.judge import OWN, Corner
from compat.duel.planted import PlantedBroker, bugs
from compat.duel.recorded import Recorded
from compat.management.http_asking import Api

ORACLE, VHOST = "4.3", "duel0"
# Bugs, and the number of recorded programs within which each is found.
FOUND_WITHIN = {
    "requeued_messages_go_to_the_end": 10,
    "a_closed_channel_loses_what_it_held": 10,
    "new_messages_overtake_those_that_came_back": 40,
    "a_rollback_brings_tags_back_in_any_order": 70,
}
# The bugs of these modules are in what a program does not do, or in what is not compared.
NEVER = {
    "bugs_in_faults": "RabbitMQ has no fault rules",
    "bugs_in_remembering": "no program restarts the broker, or makes its disk fail",
    "bugs_in_counting": "the statistics of messages are not compared",
}


def number_found(corner: Corner, programs: list[Recorded]) -> int | None:
    """Return the number of the first program that differs three times from RabbitMQ's answers; None if all agree."""
    for number, one in enumerate(programs, 1):
        if all(_differs(corner, one, f"{number:06x}{turn:02}.") for turn in range(3)):
            return number
    return None


def _differs(corner: Corner, one: Recorded, prefix: str) -> bool:
    windows = corner.play(one.program, prefix, one.windows).windows
    return windows != one.windows[: len(windows)]


def found(name: str, folder: Path, count: int | None = None) -> int | None:
    """Return the number of programs until a planted bug is found, of the first `count` ones."""
    broker = PlantedBroker(folder, name, ORACLE)
    with broker.running():
        prepare(Api(broker), VHOST)
        return number_found(Corner(broker, VHOST, OWN, ORACLE), recorded.load(ORACLE)[:count])


@pytest.mark.verify
@pytest.mark.parametrize("name", FOUND_WITHIN)
def test_a_planted_bug_is_found(tmp_path: Path, name: str) -> None:
    assert found(name, tmp_path, FOUND_WITHIN[name]) is not None


def test_each_bug_that_is_found_is_planted() -> None:
    assert FOUND_WITHIN.keys() <= {name for name, module in bugs().items() if module not in NEVER}


@pytest.mark.verify
def test_the_broker_answers_the_recorded_programs_as_rabbitmq(tmp_path: Path) -> None:
    broker = AmqpBroker(tmp_path, profile=ORACLE)
    with broker.running():
        prepare(Api(broker), VHOST)
        # Those that the bugs are looked for in; later ones depend on how quick the machine is.
        programs = recorded.load(ORACLE)[: max(FOUND_WITHIN.values())]
        assert number_found(Corner(broker, VHOST, OWN, ORACLE), programs) is None
