"""amqp-broker answers as RabbitMQ in every scenario, except for the differences in `differences.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.brokers import AmqpBroker
from compat.differential.comparing import problems
from compat.differential.differences import DIFFERENCES
from compat.differential.lab import SCENARIOS, Scenario
from compat.differential.playing import Playing
from compat.differential.suite import WIRE
from compat.oracle.records import Seen, load

DOCUMENT = Path(__file__).parents[1] / "DIFFERENCES.md"


@pytest.fixture(scope="module")
def recorded() -> Seen:
    return load(WIRE)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.question)
def test_amqp_broker_answers_as_rabbitmq(
    amqp_broker: AmqpBroker, playing: Playing, recorded: Seen, scenario: Scenario
) -> None:
    found = problems(scenario, recorded.get(scenario.question, []), playing[scenario.question])
    if found:
        pytest.fail("\n".join(found + warnings(amqp_broker)), pytrace=False)


def warnings(broker: AmqpBroker) -> list[str]:
    """Return amqp-broker's latest warnings: a slow disk, an alarm."""
    lines = broker.log_path.read_text("utf-8").splitlines()
    return [line for line in lines if "[warning]" in line or "[error]" in line][-10:]


def test_every_recorded_scenario_is_still_played(recorded: Seen) -> None:
    assert recorded.keys() == {scenario.question for scenario in SCENARIOS.values()}


def test_every_listed_difference_is_explained_to_users() -> None:
    headings = {
        line.removeprefix("### ") for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("### ")
    }
    assert {difference.title for difference in DIFFERENCES} <= headings


def test_every_listed_difference_belongs_to_a_scenario() -> None:
    assert set().union(*(difference.scenarios for difference in DIFFERENCES)) <= SCENARIOS.keys()
