"""Test suites of Go projects, built once and run against a broker at the address in their source."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from compat.applications.building import building
from compat.applications.own_network import run_beside
from compat.brokers import AmqpBroker, BrokerProcess
from compat.matrix.rows import Client
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ

TIMEOUT_S = 120.0
# The profile of amqp-broker for a version that has none of its own.
PROFILES = {"3.10": "3.13"}


@dataclass(frozen=True)
class Program:
    """A program that `go test -c` has built, and the tests that run."""

    path: Path
    # Patterns as `go test` has them for -run and -skip.
    tests: str = "."
    skipped: str = "^$"
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Results:
    """The result of each test by its full name (pass, fail or skip), and what the programs printed."""

    by_test: dict[str, str] = field(default_factory=dict)
    output: str = ""

    def named(self, result: str) -> list[str]:
        """Return the tests with this result."""
        return [test for test, its_result in self.by_test.items() if its_result == result]


def build(client: Client, programs: Sequence[str]) -> Path:
    """Return the folder with the programs, built unless they are newer than the sources. Raise InstallError."""
    sources = [path for path in client.folder.iterdir() if path.suffix in (".go", ".mod", ".sum")]
    changed = max(path.stat().st_mtime for path in sources)
    with building(client) as copy:
        built = [copy.folder / program for program in programs]
        if all(path.exists() and path.stat().st_mtime > changed for path in built):
            return copy.folder
        return copy.install(client)


def play_at_both(
    folder: Path, version: str, settings: tuple[str, ...], programs: Sequence[Program]
) -> tuple[Results, Results]:
    """Run programs at amqp-broker and at this version of RabbitMQ, both with these lines of rabbitmq.conf."""
    config = folder / "settings.conf"
    config.write_text("".join(f"{line}\n" for line in settings), "utf-8")
    options = ("--strict-config", "--config", str(config))
    own = AmqpBroker(folder / "own", options=options, profile=PROFILES.get(version, version))
    oracle = RabbitMQ(folder / "rabbitmq", settings=settings, oracle=ORACLES[version])
    with own.running(), oracle.running(), ThreadPoolExecutor(2 * len(programs)) as players:
        plays = [[players.submit(_play, broker, each) for each in programs] for broker in (own, oracle)]
        here, there = (_together([play.result() for play in at_one]) for at_one in plays)
    return here, there


def _play(broker: BrokerProcess, program: Program) -> Results:
    command = [
        *("go", "tool", "test2json", str(program.path), "-test.v=test2json", f"-test.timeout={TIMEOUT_S:.0f}s"),
        *(f"-test.run={program.tests}", f"-test.skip={program.skipped}"),
    ]
    printed, results = run_beside(broker, command, program.path.parent, program.variables, TIMEOUT_S * 2), Results()
    for line in printed.splitlines():
        assert line.startswith("{"), printed
        event = json.loads(line)
        results.output += event.get("Output", "")
        if "Test" in event and event["Action"] in ("pass", "fail", "skip"):
            results.by_test[event["Test"]] = event["Action"]
    return results


def _together(results: Sequence[Results]) -> Results:
    assert len({test for each in results for test in each.by_test}) == sum(len(each.by_test) for each in results)
    return Results(
        {test: result for each in results for test, result in each.by_test.items()},
        "".join(each.output for each in results),
    )
