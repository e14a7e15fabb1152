"""Applications of frameworks do here what they do at RabbitMQ, and lose no job."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat.applications.application import Application, applications
from compat.applications.building import built
from compat.applications.playing import Stage, play
from compat.brokers import AmqpBroker
from compat.matrix.installing import InstallError
from compat.matrix.rows import Client
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ


@pytest.mark.verify
@pytest.mark.parametrize("client", applications(), ids=lambda client: client.row.name)
def test_an_application_works_here_as_at_rabbitmq(client: Client, tmp_path: Path) -> None:
    application = client.row
    assert isinstance(application, Application)
    try:
        folder = built(client)
    except InstallError as error:
        pytest.skip(str(error))
    own = AmqpBroker(tmp_path / "own", profile=application.oracle)
    oracle = RabbitMQ(tmp_path / "rabbitmq", oracle=ORACLES[application.oracle])
    with own.running(), oracle.running(), ThreadPoolExecutor(2) as players:
        stages = [Stage(application, folder, broker, broker.folder) for broker in (own, oracle)]
        here, there = players.map(play, stages)
    assert here == there
