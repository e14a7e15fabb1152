"""The scenarios as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import AmqpBroker
from compat.differential import scenarios  # noqa: F401 (registers them)
from compat.differential.fields import fields
from compat.differential.lab import SCENARIOS
from compat.differential.playing import Playing
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


WIRE = Suite("wire", _answers, _own_answers, fields, plugins=EXCHANGE_PLUGINS, has_areas=True)
