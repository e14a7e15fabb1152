"""The recorded program that finds each bug: `python -m compat.duel.finding` writes `found.json`.

A bug is a function that makes the broker's code wrong: the simulation's (`tests/simulation/bugs_in_*.py`), and former
faults (`unmended.py`). It is found by the first recorded program that differs from RabbitMQ's answers three times.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from amqp_broker.conformance.duel.program_records import Recorded, load
from compat.brokers import AmqpBroker
from compat.duel.judge import OWN, Corner
from compat.duel.planted import PlantedBroker, bugs
from compat.duel.recording import VHOST, agrees

ORACLE = "4.3"
FOUND = Path(__file__).with_name("found.json")
PLAYS = 3
WORKERS = 3
# The bugs of these modules are in what a program does not do, or in what is not compared.
NEVER = {
    "bugs_in_faults": "RabbitMQ has no fault rules",
    "bugs_in_remembering": "no program restarts the broker, or makes its disk fail",
    "bugs_in_counting": "the statistics of messages are not compared",
}


def sought() -> list[str]:
    """Return the names of the bugs that programs may find."""
    return [name for name, module in bugs().items() if module not in NEVER]


def differs(corner: Corner, one: Recorded, number: int) -> bool:
    """Return whether a broker answers a program differently each time."""
    return all(not agrees(corner, one, number * PLAYS + play, 1) for play in range(PLAYS))


def first_found(name: str, numbers: Iterable[int], folder: Path) -> int | None:
    """Return the first of these programs that finds a bug. The broker without it answers as recorded."""
    recorded = load()
    with _cornered(PlantedBroker(folder / "planted", name, ORACLE)) as corner:
        for number in numbers:
            if differs(corner, recorded[number - 1], number) and is_answered(recorded[number - 1], number, folder):
                return number
    return None


def is_answered(one: Recorded, number: int, folder: Path) -> bool:
    """Return whether the broker answers a program as recorded, once of several times."""
    with _cornered(AmqpBroker(folder / "sound", profile=ORACLE)) as corner:
        return not differs(corner, one, number)


@contextmanager
def _cornered(broker: AmqpBroker) -> Iterator[Corner]:
    with broker.running():
        corner = Corner(broker, VHOST, OWN, ORACLE)
        corner.prepare()
        yield corner
        corner.observer.close()


def _search(task: tuple[str, list[int]]) -> tuple[str, int | None]:
    name, numbers = task
    with tempfile.TemporaryDirectory() as folder:
        return name, first_found(name, numbers, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m compat.duel.finding", description=__doc__)
    parser.add_argument("bugs", nargs="*", help="look for these only, and keep the numbers of others")
    chosen = parser.parse_args().bugs or sought()
    found = json.loads(FOUND.read_text("utf-8")) if FOUND.exists() else {}
    numbers = [number for number, one in enumerate(load(), 1) if ORACLE in one.oracles]
    # A program that has found a bug most probably finds it again.
    tasks = [(name, sorted(numbers, key=lambda number: number != found.get(name))) for name in chosen]
    with get_context("spawn").Pool(WORKERS) as pool:
        for name, number in pool.imap_unordered(_search, tasks):
            found[name] = number
            print(number, name, flush=True)
            FOUND.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
