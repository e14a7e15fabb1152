"""The broker that the client programs run against: ours, or the real RabbitMQ with BROKER=rabbitmq."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest

from compat.brokers import BrokerProcess, OurBroker, RabbitMQ


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI runs, a client that is not there is a failure."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {report.longrepr}"
    return report


def make_broker(tmp_path_factory: pytest.TempPathFactory) -> BrokerProcess:
    folder = tmp_path_factory.mktemp("broker")
    return RabbitMQ(folder) if os.environ.get("BROKER") == "rabbitmq" else OurBroker(folder)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests that leave it running; each test uses names of its own."""
    process = make_broker(tmp_path_factory)
    process.start()
    yield process
    process.kill()


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that a test may kill and restart."""
    process = make_broker(tmp_path_factory)
    process.start()
    yield process
    process.kill()
