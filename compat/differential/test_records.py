"""The recorded transcripts."""

from __future__ import annotations

import pytest

from amqp_broker.conformance.lab import STOPPED
from compat.differential.suite import WIRE
from compat.oracle.records import load
from compat.oracles.oracle import ORACLES

# RabbitMQ before 4.3 knows neither these timeouts nor delays, and stays silent.
SILENT = {"3.10", "4.0"}
SILENT_IN = ("consumer_timeouts/", "delayed_retries/a_rejected_message_comes_back_after_a_delay")


@pytest.mark.parametrize("oracle", ORACLES)
def test_every_scenario_was_played_to_its_end(oracle: str) -> None:
    recorded = load(WIRE, oracle)
    stopped = {question for question, answers in recorded.items() if STOPPED in str(answers)}
    assert recorded
    assert stopped == {question for question in recorded if oracle in SILENT and question.startswith(SILENT_IN)}
