"""The recorded transcripts."""

from __future__ import annotations

import pytest

from amqp_broker.conformance.lab import STOPPED
from compat.differential.suite import WIRE
from compat.oracle.records import load
from compat.oracles.oracle import ORACLES

# Chapters and scenarios that RabbitMQ ends early. Before 4.3 it knows neither these timeouts nor delays. 3.10 delivers
# no dead letter from a stream, and a queue crashes under a consumer that follows another one without acknowledging.
_UNKNOWN = ("consumer_timeouts/", "delayed_retries/a_rejected_message_comes_back_after_a_delay")
_OLDEST = (
    "cancelling/a_consumer_without_acks_counts_with_the_one_of_a_quorum_queue_that_it_follows",
    "stream_headers/a_message_that_died_twice_",
    "stream_headers/a_rejected_message_from_a_",
    "stream_headers/an_expired_message_",
)
STOPPED_IN = {"3.10": (*_UNKNOWN, *_OLDEST), "4.0": _UNKNOWN, "4.3": ()}


@pytest.mark.parametrize("oracle", ORACLES)
def test_every_scenario_was_played_to_its_end(oracle: str) -> None:
    recorded = load(WIRE, oracle)
    stopped = {question for question, answers in recorded.items() if STOPPED in str(answers)}
    assert recorded
    assert stopped == {question for question in recorded if question.startswith(STOPPED_IN[oracle])}
