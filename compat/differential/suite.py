"""The scenarios as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from amqp_broker.conformance import scenarios  # noqa: F401 (registers them)
from amqp_broker.conformance.comparing import fields
from amqp_broker.conformance.lab import SCENARIOS
from amqp_broker.conformance.playing import Playing
from amqp_broker.conformance.records import RECORDED
from compat.brokers import AmqpBroker
from compat.oracle.suite import Answers, Suite
from compat.oracles.rabbitmq import EXCHANGE_PLUGINS, RabbitMQ


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    with Playing(broker, SCENARIOS.values()) as playing:
        yield playing


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    with broker.running(), Playing(broker, SCENARIOS.values()) as playing:
        yield playing


WIRE = Suite("wire", _answers, _own_answers, fields, plugins=EXCHANGE_PLUGINS, has_areas=True, folder=RECORDED)
