"""Both brokers, started once; those scenarios begun at once that wait for seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from compat.brokers import EXCHANGE_PLUGINS, BrokerProcess, OurBroker, RabbitMQ
from compat.differential.running import OURS, RABBITMQ, Stage


@pytest.fixture(scope="session")
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if not RabbitMQ.is_installed():
        pytest.skip("the oracle is not installed: Debian's rabbitmq-server")
    brokers: dict[str, BrokerProcess] = {
        RABBITMQ: RabbitMQ(tmp_path_factory.mktemp("oracle"), plugins=EXCHANGE_PLUGINS),
        OURS: OurBroker(tmp_path_factory.mktemp("ours")),
    }
    with ExitStack() as stack:
        for broker in brokers.values():
            stack.callback(broker.kill)
            broker.start()
        addresses = {name: (broker.host, broker.port) for name, broker in brokers.items()}
        stage = Stage(addresses, our_log=brokers[OURS].log_path)
        calls = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
        stage.begin(call["scenario"] for call in calls if "scenario" in call)
        yield stage
