"""Our broker says what RabbitMQ says, in every scenario, but for what is listed in `differences.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.differential import scenarios  # noqa: F401 (registers them)
from compat.differential.comparing import problems
from compat.differential.differences import DIFFERENCES
from compat.differential.lab import SCENARIOS, Scenario
from compat.differential.running import Stage

DOCUMENT = Path(__file__).parents[1] / "DIFFERENCES.md"


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: f"{scenario.area}-{scenario.name}")
def test_our_broker_says_what_rabbitmq_says(stage: Stage, scenario: Scenario) -> None:
    found = list(problems(scenario, stage.play(scenario)))
    if found:
        pytest.fail("\n".join(found + stage.warnings()), pytrace=False)


def test_every_listed_difference_is_explained_to_users() -> None:
    headings = {line.removeprefix("### ") for line in DOCUMENT.read_text().splitlines() if line.startswith("### ")}
    assert {difference.title for difference in DIFFERENCES} <= headings


def test_every_listed_difference_is_of_scenarios_that_exist() -> None:
    assert {change.scenario for difference in DIFFERENCES for change in difference.changes} <= SCENARIOS.keys()
