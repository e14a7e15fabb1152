"""`python -m compat.matrix [CLIENT ...]`: play the scenarios, write the table, report differences from RabbitMQ.

With `--install`, it only installs the clients.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat.matrix import results as kept
from compat.matrix import table
from compat.matrix.installing import install_all
from compat.matrix.results import AMQP_BROKER, RABBITMQ, ClientResults
from compat.matrix.rows import COMPAT, Client, chosen, clients, of_day
from compat.matrix.running import report, run
from compat.matrix.scenarios import SCENARIOS
from compat.matrix.stage import Stages

CACHE = COMPAT.parent / ".cache" / "matrix"
RESULTS = COMPAT / "matrix" / "results.json"
PAGE = COMPAT / "README.md"

BROKERS = {"amqp-broker": (AMQP_BROKER,), "rabbitmq": (RABBITMQ,), "both": (AMQP_BROKER, RABBITMQ)}


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    known = clients()
    try:
        players = chosen(known, options.client)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.day is not None:
        players = of_day(players, options.day)
    here = _played_here(players)
    if options.install:
        install_all(here, CACHE, report)
        return 0
    scenarios = [scenario for scenario in SCENARIOS if not options.only or scenario in options.only]
    results = kept.load(RESULTS)
    # Rows that are no longer declared are dropped.
    results = {client.row.name: _known(results, client) for client in known if client.row.name in results}
    results |= {client.row.name: _known(results, client) for client in players}
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        stages = Stages(Path(folder))
        try:
            run(here, BROKERS[options.broker], scenarios, results, CACHE, stages)
        finally:
            stages.end()
    kept.save(RESULTS, results)
    table.write(PAGE, results, SCENARIOS)
    return _judge({client.row.name: results[client.row.name] for client in here}, scenarios)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.matrix", description=__doc__)
    parser.add_argument("client", nargs="*", help="a client's name, language or folder; all if none is given")
    parser.add_argument("--broker", choices=BROKERS, default=os.environ.get("BROKER") or "amqp-broker")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="play this scenario alone")
    parser.add_argument("--install", action="store_true", help="only install the clients")
    parser.add_argument("--day", type=int, metavar="N", help="play a third of these clients, another each day")
    return parser.parse_args(arguments)


def _played_here(players: Sequence[Client]) -> list[Client]:
    """Return the clients that this machine can play, and print the reasons for the others."""
    for client in players:
        if client.unplayed:
            print(f"{client.row.name}: not played here: {client.unplayed}")
    return [client for client in players if not client.unplayed]


def _known(results: dict[str, ClientResults], client: Client) -> ClientResults:
    """Return the stored results of this version of the client; none for another version."""
    row = client.row
    found = results.get(row.name)
    if found is None or found.version != row.version:
        found = ClientResults(row.language, row.version)
    found.language = row.language
    if client.unplayed:
        # Another machine may have played it.
        found.absent = "" if found.outcomes else client.unplayed
    return found


def _judge(played: dict[str, ClientResults], scenarios: list[str]) -> int:
    """Report differences from RabbitMQ and return the exit code.

    In CI, a client that cannot be installed is a failure.
    """
    absent = [name for name, client in played.items() if client.absent]
    differing = kept.differences(played, scenarios)
    for line in differing:
        print(f"differs: {line}")
    print(f"{len(played) - len(absent)} clients played, {len(absent)} not installed, {len(differing)} differences")
    return 1 if differing or (absent and os.environ.get("CI")) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
