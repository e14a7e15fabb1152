"""The administrative part of the HTTP API as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import AmqpBroker
from compat.management.http_asking import Api
from compat.management_admin.playing import play
from compat.oracle.comparing import fields
from compat.oracle.suite import Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ

PLUGINS = ("rabbitmq_management", "rabbitmq_shovel_management", "rabbitmq_federation_management")


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield _told(broker)


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    # RabbitMQ runs without this plugin.
    broker.options += ("--no-prometheus",)
    with broker.running():
        yield _told(broker)


def _told(broker: RabbitMQ | AmqpBroker) -> Answers:
    return {title: said._asdict() for title, said in play(Api(broker)).items()}


MANAGEMENT_ADMIN = Suite("management_admin", _answers, _own_answers, fields, plugins=PLUGINS, has_areas=True)
