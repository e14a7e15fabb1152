"""Clients that play at once, each on a separate stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from compat.matrix.results import AMQP_BROKER, RABBITMQ, ClientResults, Kind, Outcome
from compat.matrix.rows import Client
from compat.matrix.running import run
from compat.matrix.stage import Stages
from tests.matrix.rehearsal import Rehearsal, client

OK = Outcome(Kind.OK)
# Each of two programs waits until the other has reached the same scenario.
MEET = """
met = pathlib.Path(os.environ["meeting"])
(met / os.environ["PREFIX"]).touch()
while len(list(met.iterdir())) < 2:
    time.sleep(0.01)
"""


def played(
    clients: Sequence[Client],
    folder: Path,
    variables: dict[str, str] | None = None,
    brokers: Sequence[str] = (AMQP_BROKER,),
) -> dict[str, ClientResults]:
    results = {client.row.name: ClientResults("Python", "1.0") for client in clients}
    stages = Stages(folder, lambda broker_name, _: Rehearsal(variables or {}, broker_name))
    run(clients, brokers, ["a", "b"], results, folder / "cache", stages)
    return results


def test_each_clients_outcomes_are_kept_for_each_broker(tmp_path: Path) -> None:
    results = played(
        [client(tmp_path / name, name) for name in ("one", "two")], tmp_path, brokers=(AMQP_BROKER, RABBITMQ)
    )
    both = {AMQP_BROKER: {"a": OK, "b": OK}, RABBITMQ: {"a": OK, "b": OK}}
    assert {name: known.outcomes for name, known in results.items()} == {"one": both, "two": both}


def test_a_scenario_that_needs_a_newer_rabbitmq_is_played_at_amqp_broker_alone(tmp_path: Path) -> None:
    one = client(tmp_path / "one", "one", newer_only={"a": "it is old"})
    results = played([one], tmp_path, brokers=(AMQP_BROKER, RABBITMQ))
    its = {"a": Outcome(Kind.UNSUPPORTED, "it is old"), "b": OK}
    assert results["one"].outcomes == {AMQP_BROKER: {"a": OK, "b": OK}, RABBITMQ: its}


def test_clients_play_at_once(tmp_path: Path) -> None:
    (tmp_path / "meeting").mkdir()
    clients = [client(tmp_path / name, name) for name in ("one", "two")]
    results = played(clients, tmp_path, {"b": MEET, "meeting": str(tmp_path / "meeting")})
    assert [known.outcomes[AMQP_BROKER]["b"] for known in results.values()] == [OK, OK]


def test_a_client_that_cannot_be_installed_is_kept_with_the_reason(tmp_path: Path) -> None:
    clients = [client(tmp_path / "one", "one", absent="there is no package"), client(tmp_path / "two", "two")]
    results = played(clients, tmp_path)
    assert results["one"] == ClientResults("Python", "1.0", "there is no package", {})
    assert results["two"].outcomes == {AMQP_BROKER: {"a": OK, "b": OK}}


def test_each_line_begins_with_its_client(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    played([client(tmp_path / name, name) for name in ("one", "two")], tmp_path)
    lines = capfd.readouterr().out.splitlines()
    for name in ("one", "two"):
        installed, *outcomes, end = [line for line in lines if line.startswith(f"{name} ")]
        assert installed.startswith(f"{name} 1.0: installed in ")
        assert outcomes == [f"{name} at {AMQP_BROKER}: a ok", f"{name} at {AMQP_BROKER}: b ok"]
        assert end.startswith(f"{name} at {AMQP_BROKER}: played in ")
    assert len(lines) == 8


def test_a_broker_that_does_not_start_ends_the_run(tmp_path: Path) -> None:
    class Broken(Rehearsal):
        def start(self) -> None:
            raise RuntimeError("amqp-broker did not start")

    one, results = client(tmp_path / "one", "one"), {"one": ClientResults("Python", "1.0")}
    stages = Stages(tmp_path, lambda *_: Broken())
    with pytest.raises(RuntimeError, match="amqp-broker did not start"):
        run([one], [AMQP_BROKER], ["a"], results, tmp_path / "cache", stages)
