"""The scenarios as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from amqp_broker.conformance import scenarios  # noqa: F401 (registers them)
from amqp_broker.conformance.api_client import HttpApi
from amqp_broker.conformance.comparing import fields
from amqp_broker.conformance.lab import HTTP_SCENARIOS, SCENARIOS, Scenario
from amqp_broker.conformance.playing import Playing
from amqp_broker.conformance.records import RECORDED
from amqp_broker.conformance.terms import Terms
from compat.brokers import AmqpBroker
from compat.oracle.suite import Answers, Suite
from compat.oracles.rabbitmq import EXCHANGE_PLUGINS, RabbitMQ


def _asking(
    chosen: Iterable[Scenario],
) -> tuple[
    Callable[[RabbitMQ], AbstractContextManager[Answers]], Callable[[AmqpBroker], AbstractContextManager[Answers]]
]:
    """Return what asks a RabbitMQ, and what asks an amqp-broker that is not yet started."""

    @contextmanager
    def answers(broker: AmqpBroker | RabbitMQ) -> Iterator[Answers]:
        api = HttpApi(f"http://{broker.host}:{broker.management_port}", broker.user, broker.password)
        with Playing(broker, chosen, Terms(api=api)) as playing:
            yield playing

    @contextmanager
    def own_answers(broker: AmqpBroker) -> Iterator[Answers]:
        with broker.running(), answers(broker) as playing:
            yield playing

    return answers, own_answers


WIRE = Suite("wire", *_asking(SCENARIOS.values()), fields, plugins=EXCHANGE_PLUGINS, has_areas=True, folder=RECORDED)
# Scenarios that ask the HTTP API.
HTTP = Suite(
    "http", *_asking(HTTP_SCENARIOS.values()), fields, plugins=("rabbitmq_management",), has_areas=True, folder=RECORDED
)
