"""A difference may stay if amqp-broker with a quirk of RabbitMQ answers alike."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from pamqp.commands import Queue

from amqp_broker.conformance.duel.steps import At, Call, Name, Program, Publish
from amqp_broker.settings.profiles import DEFAULT
from compat.brokers import AmqpBroker
from compat.duel.judge import ALLOWED, DIFFERS, OWN, SLOW, Corner, Judge
from compat.duel.planted import PlantedBroker
from compat.duel.quirks import QUIRKS, a_first_message_arrives_behind_dead_letters, older_deaths_are_reversed
from compat.duel.unmended import Plant

QUEUES = [Name(f"q{number}") for number in range(4)]


def declared(queue: Name, target: Name | None = None, kind: str = "classic") -> Call:
    """Declare a queue; with a target, one that dead-letters each message to it at once."""
    dropping = {"x-max-length": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
    arguments = {"x-queue-type": kind} | (dropping if target else {})
    return Call(At(), Queue.Declare, {"queue": queue, "durable": True, "arguments": arguments})


def bound(queue: Name) -> Call:
    return Call(At(), Queue.Bind, {"queue": queue, "exchange": "amq.fanout"})


PROGRAMS: dict[Plant, Program] = {
    # A message to two queues, of which the first dead-letters it to the second.
    a_first_message_arrives_behind_dead_letters: (
        declared(QUEUES[0], QUEUES[1]),
        declared(QUEUES[1], kind="quorum"),
        bound(QUEUES[0]),
        bound(QUEUES[1]),
        Publish(At(), {"exchange": "amq.fanout"}),
    ),
    # A message that dies three times.
    older_deaths_are_reversed: (
        *(declared(queue, target) for queue, target in pairwise(QUEUES)),
        declared(QUEUES[-1]),
        Publish(At(), {"routing_key": QUEUES[0]}),
    ),
}


def test_each_quirk_has_a_program() -> None:
    assert PROGRAMS.keys() == QUIRKS.keys()


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.__name__)
def test_a_quirk_is_no_difference_with_all_that_follows(tmp_path: Path, quirk: Plant) -> None:
    profile = next(iter(QUIRKS[quirk]), DEFAULT)
    sound = AmqpBroker(tmp_path / "sound", profile=profile)
    quirky = PlantedBroker(tmp_path / "quirky", quirk.__name__, profile)
    with sound.running(), quirky.running():
        # The quirky broker stands for RabbitMQ, too.
        ours, theirs, otherwise = (Corner(broker, "duel", OWN, profile) for broker in (sound, quirky, quirky))
        for corner in (ours, theirs):
            corner.prepare()
        program = PROGRAMS[quirk]
        assert Judge(ours, [theirs], 0, paces=SLOW[:2]).judge(program).outcome == DIFFERS
        assert Judge(ours, [theirs], 1, [otherwise], paces=SLOW[:2]).judge(program).outcome == ALLOWED
