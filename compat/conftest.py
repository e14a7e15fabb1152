"""The broker for the client programs: amqp-broker, or RabbitMQ with BROKER=rabbitmq."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest

from compat.brokers import AmqpBroker, BrokerProcess
from compat.oracles.rabbitmq import RabbitMQ


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a missing client into a failure in CI."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {report.longrepr}"
    return report


def make_broker(tmp_path_factory: pytest.TempPathFactory) -> BrokerProcess:
    folder = tmp_path_factory.mktemp("broker")
    return RabbitMQ(folder) if os.environ.get("BROKER") == "rabbitmq" else AmqpBroker(folder)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Provide one broker for all tests that do not stop it; each test uses unique names."""
    process = make_broker(tmp_path_factory)
    process.start()
    yield process
    process.kill()


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Provide a broker that a test may kill and restart."""
    process = make_broker(tmp_path_factory)
    process.start()
    yield process
    process.kill()
