"""amqp-broker, started once, and its transcripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.brokers import AmqpBroker
from compat.differential.lab import SCENARIOS
from compat.differential.playing import Playing


@pytest.fixture(scope="session")
def amqp_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    broker = AmqpBroker(tmp_path_factory.mktemp("amqp-broker"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def playing(amqp_broker: AmqpBroker, request: pytest.FixtureRequest) -> Playing:
    """Return amqp-broker's transcripts of the scenarios that this process tests."""
    names = {item.name for item in request.session.items}
    tested = [scenario for scenario in SCENARIOS.values() if any(scenario.question in name for name in names)]
    return Playing(amqp_broker, tested)
