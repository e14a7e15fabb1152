"""The duel over HTTP: random requests, headers and imports of definitions.

`python -m compat.duel.http_duel --oracle 4.3 --programs 300 --seed 1` plays programs at this broker and at a live
RabbitMQ, each in a vhost of its own. It compares statuses, the values that are read, and all objects at the end.
hypothesis draws the programs, and shrinks each kind of difference once. They are printed, and the exit code is 1.
`http_allowed.py` lists what may differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from compat.brokers import AmqpBroker
from compat.duel.documents import IMPORTS
from compat.duel.http_judge import Finding, HttpJudge
from compat.duel.http_requests import HEADERS, REQUESTS
from compat.duel.http_steps import Step
from compat.management.http_asking import Api
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ

PROFILES: Final = {"3.10": "3.13", "4.0": "4.0", "4.3": "4.3"}
SURFACES: Final[dict[str, st.SearchStrategy[list[Step]]]] = {
    "requests": REQUESTS,
    "headers": HEADERS,
    "definitions": IMPORTS,
}


class Differs(Exception):
    """A program that differs in a kind that is new."""


def search(judge: HttpJudge, programs: st.SearchStrategy[list[Step]], name: str, count: int) -> Iterator[Finding]:
    """Play programs of a seed; yield the smallest of each kind of difference."""
    turn, last = 0, judge.counts["programs"] + count
    known: set[str] = set()
    while judge.counts["programs"] < last:
        left = last - judge.counts["programs"]
        found = _first(judge, programs, f"{name}.{turn}", left, known)
        turn += 1
        if found is None:
            return
        known.add(found.kind)
        yield found


def _first(
    judge: HttpJudge, programs: st.SearchStrategy[list[Step]], name: str, count: int, known: set[str]
) -> Finding | None:
    """Return the smallest difference of the first kind that is not known."""
    found: list[Finding] = []

    @seed(name)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(programs)
    def play(program: list[Step]) -> None:
        finding = judge.judge(program)
        # Another difference on the way to the smallest program is found another time.
        if finding is not None and finding.kind not in known and (not found or finding.kind == found[0].kind):
            found.append(finding)
            raise Differs

    try:
        play()
    except Differs:
        return found[-1]
    return None


@contextmanager
def brokers(folder: Path, oracle: str) -> Iterator[HttpJudge]:
    """Start an oracle and this broker in its profile."""
    theirs = RabbitMQ(folder / "oracle", plugins=("rabbitmq_management",), oracle=ORACLES[oracle])
    ours = AmqpBroker(folder / "ours", profile=PROFILES[oracle])
    with theirs.running(), ours.running():
        yield HttpJudge(Api(theirs), Api(ours), PROFILES[oracle])


def main() -> int:
    """Play, print, and return the exit code: 1 after a difference."""
    parser = argparse.ArgumentParser(prog="python -m compat.duel.http_duel", description=__doc__)
    parser.add_argument("--oracle", choices=sorted(PROFILES), default="4.3", help="the version to play at")
    parser.add_argument("--programs", type=int, default=300, help="the number of programs of each surface")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same programs")
    parser.add_argument("--today", action="store_true", help="the seed is that of this day")
    parser.add_argument("--only", choices=sorted(SURFACES), help="play one of the surfaces")
    chosen = parser.parse_args()
    number, has_found = date.today().toordinal() if chosen.today else chosen.seed, False
    with tempfile.TemporaryDirectory() as folder, brokers(Path(folder), chosen.oracle) as judge:
        for surface in [chosen.only] if chosen.only else SURFACES:
            for finding in search(judge, SURFACES[surface], str(number), chosen.programs):
                print(f"{surface}, seed {number}:\n{finding}", flush=True)
                has_found = True
    print(", ".join(f"{count} {name}" for name, count in judge.counts.items()))
    return 1 if has_found else 0


if __name__ == "__main__":
    sys.exit(main())
