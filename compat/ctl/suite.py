"""The command lines as a suite of the oracle: RabbitMQ's own tools run them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import AmqpBroker
from compat.ctl.comparing import fields
from compat.ctl.playing import play
from compat.ctl.running import AmqpBrokerSide, RabbitMQSide
from compat.oracle.suite import Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    side = RabbitMQSide(broker)
    yield play(side, side.areas)


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    broker.options += ("--node-name", AmqpBrokerSide.node)
    broker.variables = {"AMQP_BROKER_RUNTIME_DIR": str(broker.folder / "run")}
    with broker.running():
        side = AmqpBrokerSide(broker)
        yield play(side, side.areas)


CTL = Suite("ctl", _answers, _own_answers, fields, plugins=("rabbitmq_management",), has_areas=True)
