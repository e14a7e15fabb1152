"""The records of programs: which oracles answer so. `python -m compat.duel.recording --oracle 4.0` asks one again.

It plays each recorded program at a live RabbitMQ, and notes whether all windows are the recorded ones, twice.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from amqp_broker.conformance.duel.player import Lines, Pace
from amqp_broker.conformance.duel.program_records import RECORDED, Recorded, load, save
from amqp_broker.conformance.duel.steps import Program
from amqp_broker.conformance.records import ORACLES as NAMES
from compat.duel.judge import Corner
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import EXCHANGE_PLUGINS, RabbitMQ

PLUGINS = ("rabbitmq_management", *EXCHANGE_PLUGINS)
VHOST = "duel0"
PLAYS = 2
WORKERS = 4


def agrees(corner: Corner, one: Recorded, number: int, plays: int) -> bool:
    """Return whether a broker answers as recorded, each time. A play may end before the record does."""
    for play in range(plays):
        windows = corner.play(one.program, f"{number:06x}{play:02}.", one.windows).windows
        if windows != one.windows[: len(windows)]:
            return False
    return True


def add(agreed: Iterable[tuple[Program, list[Lines]]], oracle: str) -> None:
    """Add programs that agree with an oracle to the records, unless they are there."""
    recorded = load() if RECORDED.exists() else []
    known = {repr(one.program) for one in recorded}
    new = {repr(program): Recorded(program, windows, (oracle,)) for program, windows in agreed}
    save([*recorded, *(one for program, one in new.items() if program not in known)])


def ask_again(oracle: str) -> list[int]:
    """Note the answers of an oracle to all programs. Return the numbers of those that agreed before and differ now."""
    recorded, lost = load(), []
    with tempfile.TemporaryDirectory() as folder:
        broker = RabbitMQ(Path(folder), plugins=PLUGINS, oracle=ORACLES[oracle])
        with broker.running(), ThreadPoolExecutor(WORKERS) as threads:
            shares = [recorded[worker::WORKERS] for worker in range(WORKERS)]
            verdicts = [*threads.map(partial(_ask, broker), range(WORKERS), shares)]
    for index, one in enumerate(recorded):
        names = set(one.oracles) - {oracle}
        if verdicts[index % WORKERS][index // WORKERS]:
            names.add(oracle)
        elif oracle in one.oracles:
            lost.append(index + 1)
        recorded[index] = replace(one, oracles=tuple(name for name in NAMES if name in names))
    # Those without any oracle stay, so that the numbers of others do not change.
    save(recorded)
    return lost


def _ask(broker: RabbitMQ, worker: int, recorded: list[Recorded]) -> list[bool]:
    """Return for each program whether the oracle agrees, asked in a vhost of this worker."""
    corner = Corner(broker, f"duel{worker}", Pace())
    corner.prepare()
    return [agrees(corner, one, index, PLAYS) for index, one in enumerate(recorded)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m compat.duel.recording", description=__doc__)
    parser.add_argument("--oracle", choices=ORACLES, required=True, help="the version to ask")
    oracle = parser.parse_args().oracle
    lost = ask_again(oracle)
    print(f"{sum(oracle in one.oracles for one in load())} programs agree at {oracle}; no more so: {lost or 'none'}")


if __name__ == "__main__":
    main()
