"""`python -m compat.matrix [CLIENT ...]`: play the scenarios, write the table, tell where we differ from RabbitMQ."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compat.matrix import results as kept
from compat.matrix import table
from compat.matrix.playing import InstallError, install, play
from compat.matrix.results import OURS, RABBITMQ, ClientResults, Outcome
from compat.matrix.rows import COMPAT, Client, chosen, clients, of_the_day
from compat.matrix.scenarios import SCENARIOS
from compat.matrix.stage import Stage

CACHE = COMPAT.parent / ".cache" / "matrix"
RESULTS = COMPAT / "matrix" / "results.json"
PAGE = COMPAT / "README.md"

BROKERS = {"ours": (OURS,), "rabbitmq": (RABBITMQ,), "both": (OURS, RABBITMQ)}


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    known = clients()
    try:
        players = chosen(known, options.client)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.today:
        others = [client for client in players if not client.is_tested]
        players = of_the_day(others, datetime.date.today().toordinal(), options.today)
        left = len(others) - len(players)
        print(f"today's clients: {', '.join(client.row.name for client in players)}; {left} others on other days")
    scenarios = [scenario for scenario in SCENARIOS if not options.only or scenario in options.only]
    results = kept.load(RESULTS)
    # What is no longer declared is no longer told.
    results = {client.row.name: _known(results, client) for client in known if client.row.name in results}
    ready = {client.row.name: folder for client in players if (folder := _install(client, results))}
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        for broker_name in BROKERS[options.broker]:
            stage = Stage(broker_name, Path(folder) / broker_name)
            stage.broker.start()
            try:
                for client in players:
                    if client.row.name in ready:
                        _play(client, ready[client.row.name], stage, scenarios, results[client.row.name])
            finally:
                stage.broker.kill()
    kept.save(RESULTS, results)
    table.write(PAGE, results, SCENARIOS)
    return _judge({client.row.name: results[client.row.name] for client in players}, scenarios)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.matrix", description=__doc__)
    parser.add_argument("client", nargs="*", help="a client's name, language or folder; all if none is given")
    parser.add_argument("--broker", choices=BROKERS, default=os.environ.get("BROKER") or "ours")
    parser.add_argument("--today", type=int, metavar="COUNT", help="only so many that the tests do not play, by date")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="play this scenario alone")
    return parser.parse_args(arguments)


def _known(results: dict[str, ClientResults], client: Client) -> ClientResults:
    """What is known of this version of the client; of another one nothing is."""
    row = client.row
    found = results.get(row.name)
    if found is None or found.version != row.version:
        return ClientResults(row.language, row.version)
    found.language = row.language
    return found


def _install(client: Client, results: dict[str, ClientResults]) -> Path | None:
    """The folder in which the client is ready to play, or None if it cannot be had, as the results then say."""
    known = results[client.row.name] = _known(results, client)
    began = time.monotonic()
    try:
        folder = install(client, CACHE)
    except InstallError as error:
        known.absent, known.outcomes = str(error), {}
        print(f"{client.row.name}: not installed: {error}", flush=True)
        return None
    known.absent = ""
    print(f"{client.row.name} {client.row.version}: installed in {time.monotonic() - began:.1f} s", flush=True)
    return folder


def _play(client: Client, folder: Path, stage: Stage, scenarios: Sequence[str], known: ClientResults) -> None:
    outcomes = known.outcomes.setdefault(stage.name, {})

    def tell(scenario: str, outcome: Outcome) -> None:
        outcomes[scenario] = outcome
        print(f"{client.row.name} at {stage.name}: {scenario} {kept.told(outcome)}", flush=True)

    began = time.monotonic()
    play(client, folder, stage, scenarios, tell)
    print(f"{client.row.name} at {stage.name}: played in {time.monotonic() - began:.1f} s", flush=True)


def _judge(played: dict[str, ClientResults], scenarios: list[str]) -> int:
    """Tell where we differ from RabbitMQ; the exit code. In CI a client that cannot be installed is a failure, too."""
    absent = [name for name, client in played.items() if client.absent]
    differing = kept.differences(played, scenarios)
    for line in differing:
        print(f"differs: {line}")
    print(f"{len(played) - len(absent)} clients played, {len(absent)} not installed, {len(differing)} differences")
    return 1 if differing or (absent and os.environ.get("CI")) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
