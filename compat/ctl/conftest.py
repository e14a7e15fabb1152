"""The output of all command lines at amqp-broker, and of its tools at a RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat.brokers import AmqpBroker
from compat.ctl.playing import play
from compat.ctl.running import AmqpBrokerSide, ToolsAtRabbitMQ
from compat.ctl.suite import CTL
from compat.oracles.rabbitmq import RabbitMQ


@contextmanager
def running(folder: Path) -> Iterator[AmqpBrokerSide]:
    """Run amqp-broker in the imitated version closest to the oracle, with its command line."""
    broker = AmqpBroker(folder, options=("--node-name", AmqpBrokerSide.node), profile="3.13")
    broker.variables = {"AMQP_BROKER_RUNTIME_DIR": str(folder / "run")}
    broker.start()
    try:
        yield AmqpBrokerSide(broker)
    finally:
        broker.kill()


@pytest.fixture(scope="session")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBrokerSide]:
    """Provide a newly started broker."""
    with running(tmp_path_factory.mktemp("new")) as amqp_broker:
        yield amqp_broker


@contextmanager
def rabbitmq(folder: Path) -> Iterator[ToolsAtRabbitMQ]:
    """Run RabbitMQ, with amqp-broker's command line."""
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    broker = RabbitMQ(folder, plugins=CTL.plugins)
    broker.start()
    try:
        yield ToolsAtRabbitMQ(broker)
    finally:
        broker.kill()


@pytest.fixture(scope="session")
def said_at_rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as amqp_broker:
        return play(amqp_broker, ToolsAtRabbitMQ.areas)


@pytest.fixture(scope="session")
def tools_at_rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolsAtRabbitMQ]:
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as amqp_broker:
        yield amqp_broker
