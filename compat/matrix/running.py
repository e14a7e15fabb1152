"""Installs clients and plays each as soon as it is ready, several at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from compat.matrix.installing import Installed, install_all
from compat.matrix.playing import play
from compat.matrix.results import RABBITMQ, ClientResults, Kind, Outcome, told
from compat.matrix.rows import Client
from compat.matrix.stage import Scene, Stages

# Clients that play at once: they wait more than they work.
PLAYERS = 3


def run(
    clients: Sequence[Client],
    brokers: Sequence[str],
    scenarios: Sequence[str],
    results: dict[str, ClientResults],
    cache: Path,
    stages: Stages,
) -> None:
    """Install the clients, play the scenarios with each at these brokers, and store the results.

    After an interruption, running programs may finish.
    """
    players = ThreadPoolExecutor(PLAYERS)
    plays: list[Future[None]] = []

    def ready(installed: Installed) -> None:
        known = results[installed.client.row.name]
        known.absent = installed.absent
        report(installed)
        if installed.absent:
            known.outcomes = {}
            return
        plays.append(players.submit(_play_at_each, installed, brokers, scenarios, known, stages))

    try:
        install_all(clients, cache, ready)
        for done in plays:
            done.result()
    finally:
        players.shutdown(cancel_futures=True)


def report(installed: Installed) -> None:
    """Print the time that the build of a client took, or the reason why it is not available."""
    row = installed.client.row
    if installed.absent:
        _say(f"{row.name}: not installed: {installed.absent}")
    else:
        _say(f"{row.name} {row.version}: installed in {installed.took_s:.1f} s")


def _play_at_each(
    installed: Installed, brokers: Sequence[str], scenarios: Sequence[str], known: ClientResults, stages: Stages
) -> None:
    # One broker after the other: the programs may have files in their folder.
    for broker_name in brokers:
        with stages.taken(broker_name) as stage:
            _play(installed, stage, scenarios, known)


def _play(installed: Installed, stage: Scene, scenarios: Sequence[str], known: ClientResults) -> None:
    name, outcomes = installed.client.row.name, known.outcomes.setdefault(stage.name, {})

    def tell(scenario: str, outcome: Outcome) -> None:
        outcomes[scenario] = outcome
        _say(f"{name} at {stage.name}: {scenario} {told(outcome)}")

    newer_only = installed.client.row.newer_only if stage.name == RABBITMQ else {}
    for scenario in filter(newer_only.__contains__, scenarios):
        tell(scenario, Outcome(Kind.UNSUPPORTED, newer_only[scenario]))
    began = time.monotonic()
    played = [scenario for scenario in scenarios if scenario not in newer_only]
    play(installed.client, installed.folder, stage, played, tell)
    _say(f"{name} at {stage.name}: played in {time.monotonic() - began:.1f} s")


def _say(line: str) -> None:
    # In one write, so that lines of several players do not mix.
    print(f"{line}\n", end="", flush=True)
