"""The administrative part of the HTTP API as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import RabbitMQ
from compat.management.http_asking import Api
from compat.management_admin.playing import play
from compat.oracle.suite import Answers, Suite

PLUGINS = ("rabbitmq_management", "rabbitmq_shovel_management", "rabbitmq_federation_management")


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    yield {title: said._asdict() for title, said in play(Api(broker)).items()}


MANAGEMENT_ADMIN = Suite("management_admin", _answers, plugins=PLUGINS, has_areas=True)
