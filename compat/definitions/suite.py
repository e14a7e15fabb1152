"""Imports and exports of definitions as a suite of the oracle."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager

from amqp_broker.cli.http_api import Api, Place
from compat.brokers import EXCHANGE_PLUGINS, AmqpBroker, RabbitMQ
from compat.definitions.playing import play
from compat.oracle.suite import Answers, Suite


def api_of(broker: RabbitMQ | AmqpBroker) -> Api:
    login = base64.b64encode(b"guest:guest").decode()
    return Api(Place(host=broker.host, port=broker.management_port, authorization=f"Basic {login}"))


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield play(api_of(broker))


DEFINITIONS = Suite(
    "definitions",
    _answers,
    plugins=("rabbitmq_management", "rabbitmq_shovel", "rabbitmq_federation", *EXCHANGE_PLUGINS),
)
