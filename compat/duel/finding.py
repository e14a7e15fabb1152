"""The programs that find bugs: `python -m compat.duel.finding` writes `found.json`.

A bug is a function that makes the broker's code wrong: the simulation's (`tests/simulation/bugs_in_*.py`), and former
faults (`unmended.py`). The broker with the bug is compared with the broker without it, which stands for RabbitMQ.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from hypothesis import Phase

from amqp_broker.conformance.duel.program_records import from_json, to_json
from amqp_broker.conformance.duel.steps import Program
from amqp_broker.settings.profiles import DEFAULT
from compat.brokers import AmqpBroker
from compat.duel.campaign import Search, Tally
from compat.duel.judge import DIFFERS, OWN, Corner, Judge
from compat.duel.planted import PlantedBroker, bugs
from compat.duel.unmended import UNMENDED

# The profile in which most bugs show, and that of the former faults.
PROFILE, PROFILE_OF_UNMENDED = DEFAULT, "4.3"
VHOST = "finding"
FOUND = Path(__file__).with_name("found.json")
SEED = "1"
PROGRAMS_MAX = 300
WORKERS = 16
# The bugs of these modules are in what a program does not do, or in what is not compared.
NEVER = {
    "bugs_in_faults": "RabbitMQ has no fault rules",
    "bugs_in_remembering": "no program restarts the broker, or makes its disk fail",
    "bugs_in_counting": "the statistics of messages are not compared",
}


@dataclass(frozen=True)
class Found:
    """A program that finds a bug with a profile, and the number of random programs until one did."""

    profile: str
    played: int
    program: Program


def load_found() -> dict[str, Found | None]:
    """Return what finds each bug; None if nothing has found it."""
    return {name: one and _read(one) for name, one in json.loads(FOUND.read_text("utf-8")).items()}


def _read(value: Any) -> Found:
    return Found(value["profile"], value["played"], tuple(from_json(step) for step in value["program"]))


def _written(found: Found) -> Any:
    return {"profile": found.profile, "played": found.played, "program": [to_json(step) for step in found.program]}


def _write(found: dict[str, Any]) -> None:
    """Write a line for each bug."""
    lines = [f"{json.dumps(bug)}: {json.dumps(one, ensure_ascii=False)}" for bug, one in sorted(found.items())]
    FOUND.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def sought() -> list[str]:
    """Return the names of the bugs that programs may find."""
    return [name for name, module in bugs().items() if module not in NEVER]


def finds(found: Found, bug: str, folder: Path) -> bool:
    """Return whether a program shows a bug."""
    with _judge(bug, found.profile, folder) as judge:
        return judge.differs_at_once(found.program).outcome == DIFFERS


def search(bug: str, profile: str, folder: Path) -> Found | None:
    """Play random programs until one shows the bug; return a smaller one."""
    with _judge(bug, profile, folder) as judge:
        tally = Tally()
        one = Search(judge, tally, {})
        if one.run(SEED, PROGRAMS_MAX, (Phase.generate, Phase.shrink)) is None:
            return None
        return Found(profile, tally.programs, one.smallest_program)


@contextmanager
def _judge(bug: str, profile: str, folder: Path) -> Iterator[Judge]:
    planted, sound = PlantedBroker(folder / "planted", bug, profile), AmqpBroker(folder / "sound", profile=profile)
    with planted.running(), sound.running():
        corners = [Corner(broker, VHOST, OWN, profile) for broker in (planted, sound)]
        for corner in corners:
            corner.prepare()
        yield Judge(corners[0], corners[1:], 0)
        for corner in corners:
            corner.observer.close()


def _search(bug: str) -> tuple[str, Found | None]:
    with tempfile.TemporaryDirectory() as folder:
        return bug, search(bug, PROFILE_OF_UNMENDED if bug in UNMENDED else PROFILE, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m compat.duel.finding", description=__doc__)
    parser.add_argument("bugs", nargs="*", help="look for these only, and keep the programs of others")
    chosen = parser.parse_args().bugs or sought()
    found = json.loads(FOUND.read_text("utf-8")) if FOUND.exists() else {}
    with get_context("spawn").Pool(WORKERS, maxtasksperchild=1) as pool:
        for bug, one in pool.imap_unordered(_search, chosen):
            found[bug] = one and _written(one)
            print(one.played if one else None, bug, flush=True)
            _write(found)


if __name__ == "__main__":
    main()
