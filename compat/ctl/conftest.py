"""A RabbitMQ for each module, whose own command line is compared with ours.

What one module leaves there, another must not see.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.brokers import OurBroker, RabbitMQ
from compat.ctl.running import Ours, Theirs


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    broker = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=("rabbitmq_management",))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def theirs(rabbitmq: RabbitMQ) -> Theirs:
    return Theirs(rabbitmq)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    """Our broker, which imitates the RabbitMQ that it is compared with as well as it can, and our command line."""
    folder = tmp_path_factory.mktemp("ours")
    broker = OurBroker(folder, options=("--compat", "3.13", "--management-port", "0", "--node-name", "ours@localhost"))
    running = Ours(broker, folder / "run")
    broker.start()
    yield running
    broker.kill()
