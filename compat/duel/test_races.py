"""A difference may stay if amqp-broker answers alike where a race ends as in RabbitMQ."""

from __future__ import annotations

from pathlib import Path

import pytest
from pamqp.commands import Queue

from amqp_broker.conformance.duel.steps import At, Call, Name, Program, Publish
from amqp_broker.settings.profiles import DEFAULT
from compat.brokers import AmqpBroker
from compat.duel.judge import ALLOWED, DIFFERS, OWN, Corner, Judge
from compat.duel.planted import PlantedBroker
from compat.duel.races import RACES

SOURCE, TARGET = Name("q0"), Name("q1")
DROPPING = {"x-max-length": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": TARGET}
# A message to two queues, of which the first dead-letters it to the second.
PROGRAM: Program = (
    Call(At(), Queue.Declare, {"queue": SOURCE, "durable": True, "arguments": DROPPING}),
    Call(At(), Queue.Declare, {"queue": TARGET, "durable": True, "arguments": {"x-queue-type": "quorum"}}),
    Call(At(), Queue.Bind, {"queue": SOURCE, "exchange": "amq.fanout"}),
    Call(At(), Queue.Bind, {"queue": TARGET, "exchange": "amq.fanout"}),
    Publish(At(), {"exchange": "amq.fanout"}),
)


@pytest.mark.parametrize("race", RACES)
def test_a_race_is_no_difference_with_all_that_follows(tmp_path: Path, race: str) -> None:
    sound, raced = AmqpBroker(tmp_path / "sound", profile=DEFAULT), PlantedBroker(tmp_path / "raced", race, DEFAULT)
    with sound.running(), raced.running():
        # The raced broker stands for RabbitMQ, too.
        ours, theirs, otherwise = (Corner(broker, "duel", OWN) for broker in (sound, raced, raced))
        for corner in (ours, theirs):
            corner.prepare()
        assert Judge(ours, [theirs], 0).judge(PROGRAM).outcome == DIFFERS
        assert Judge(ours, [theirs], 1, [otherwise]).judge(PROGRAM).outcome == ALLOWED
