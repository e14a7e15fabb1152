"""Imports and exports of definitions as a suite of the oracle."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager

from amqp_broker.cli.shared.http_api import Api, Place
from compat.brokers import AmqpBroker
from compat.definitions.playing import play
from compat.oracle.comparing import fields
from compat.oracle.suite import Answers, Suite
from compat.oracles.rabbitmq import EXCHANGE_PLUGINS, RabbitMQ


def api_of(broker: RabbitMQ | AmqpBroker) -> Api:
    login = base64.b64encode(b"guest:guest").decode()
    return Api(Place(host=broker.host, port=broker.management_port, authorization=f"Basic {login}"))


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield play(api_of(broker))


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    with broker.running():
        yield play(api_of(broker))


DEFINITIONS = Suite(
    "definitions",
    _answers,
    _own_answers,
    fields,
    plugins=("rabbitmq_management", "rabbitmq_shovel", "rabbitmq_federation", *EXCHANGE_PLUGINS),
)
