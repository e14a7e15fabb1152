"""The recorded transcripts of RabbitMQ."""

from __future__ import annotations

import pytest

from amqp_broker.conformance import scenarios  # noqa: F401 (registers them)
from amqp_broker.conformance.lab import HTTP_SCENARIOS, SCENARIOS
from amqp_broker.conformance.records import ORACLES, exact_version, load


@pytest.mark.parametrize("oracle", ORACLES)
def test_each_scenario_has_transcripts_of_each_oracle(oracle: str) -> None:
    recorded = load(oracle)
    assert recorded.keys() == {scenario.question for scenario in (*SCENARIOS.values(), *HTTP_SCENARIOS.values())}
    assert all(transcripts and all(transcripts) for transcripts in recorded.values())


@pytest.mark.parametrize("oracle", ORACLES)
def test_the_exact_version_is_one_of_the_oracle(oracle: str) -> None:
    assert exact_version(oracle).startswith(f"{oracle}.")
