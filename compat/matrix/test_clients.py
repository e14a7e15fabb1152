"""The rows of the client matrix whose languages the tests need anyway; `make compat` plays the others, too."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from compat.matrix.__main__ import CACHE, RESULTS
from compat.matrix.playing import InstallError, install, play
from compat.matrix.results import OURS, RABBITMQ, ClientResults, differences, load
from compat.matrix.rows import Client, clients
from compat.matrix.scenarios import SCENARIOS
from compat.matrix.stage import Stage

PLAYERS = [client for client in clients() if client.is_tested]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    name = RABBITMQ if os.environ.get("BROKER") == "rabbitmq" else OURS
    stage = Stage(name, tmp_path_factory.mktemp("stage"))
    stage.broker.start()
    yield stage
    stage.broker.kill()


@pytest.mark.timeout(900)  # the first time it is installed, too
@pytest.mark.parametrize("client", PLAYERS, ids=lambda client: client.row.name)
def test_a_client_plays_its_scenarios_as_with_rabbitmq(client: Client, stage: Stage) -> None:
    try:
        folder = install(client, CACHE)
    except InstallError as error:
        pytest.skip(str(error))
    name, row = client.row.name, client.row
    known = load(RESULTS).get(name, ClientResults(row.language, row.version))
    outcomes = known.outcomes[stage.name] = {}
    play(client, folder, stage, list(SCENARIOS), outcomes.__setitem__)
    assert list(outcomes) == list(SCENARIOS)
    assert differences({name: known}, list(SCENARIOS)) == []
