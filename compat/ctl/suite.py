"""The command lines as a suite of the oracle: RabbitMQ's own tools run them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from compat.brokers import AmqpBroker
from compat.ctl.comparing import fields
from compat.ctl.lines import questions
from compat.ctl.playing import play
from compat.ctl.running import AmqpBrokerSide, RabbitMQSide
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ


class Played(Mapping[str, Answer]):
    """The answers of one side. The command lines of an area run when an answer of theirs is looked up."""

    def __init__(self, side: AmqpBrokerSide | RabbitMQSide) -> None:
        self._side = side
        self._areas = {question: area for area in side.areas for question in questions(area)}
        self._found: dict[str, list[str]] = {}

    def __getitem__(self, question: str) -> Answer:
        if question not in self._found:
            self._found |= play(self._side, (self._areas[question],))
        return self._found[question]

    def __iter__(self) -> Iterator[str]:
        return iter(self._areas)

    def __len__(self) -> int:
        return len(self._areas)


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield Played(RabbitMQSide(broker))


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    broker.options += ("--node-name", AmqpBrokerSide.node)
    broker.variables = {"AMQP_BROKER_RUNTIME_DIR": str(broker.folder / "run")}
    with broker.running():
        yield Played(AmqpBrokerSide(broker))


CTL = Suite("ctl", _answers, _own_answers, fields, plugins=("rabbitmq_management",), has_areas=True)
