"""A campaign: hypothesis draws programs, has them judged, and shrinks those that differ."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.strategies import SearchStrategy

from amqp_broker.conformance.duel.player import Lines
from amqp_broker.conformance.duel.steps import Program
from compat.duel.judge import AGREES, DIFFERS, Judge, Verdict
from compat.duel.programs import programs

DATABASE = Path(".cache/duel")
# Programs of a batch. A search ends with the first difference, and the next search of the batch has another seed.
BATCH = 25
SHRINK_S = 120.0

# The outcome of a program that differs as an earlier one of the campaign did.
REPEATED = "repeated"


class Difference(Exception):
    """A program that differs."""


class Enough(KeyboardInterrupt):
    """The search for a smaller program has lasted long enough; hypothesis lets this pass."""


@dataclass
class Tally:
    """The number of programs by outcome, the shrunk differences, and the programs that agree."""

    outcomes: Counter[str] = field(default_factory=Counter)
    found: list[Verdict] = field(default_factory=list)
    agreed: list[tuple[Program, list[Lines]]] = field(default_factory=list)

    @property
    def programs(self) -> int:
        return self.outcomes.total()


class Search:
    """One run of hypothesis: until the first difference is found and shrunk, or all programs are judged."""

    def __init__(
        self,
        judge: Judge,
        tally: Tally,
        known: MutableMapping[str, int],
        database: Path | None = None,
        shrink_s: float = SHRINK_S,
        drawn: SearchStrategy[Program] | None = None,
    ) -> None:
        self.judge = judge
        self.tally = tally
        # The folder in which hypothesis keeps programs that differ.
        self._database = DirectoryBasedExampleDatabase(database) if database else None
        # How often each kind of difference was met.
        self.known = known
        self._verdicts: dict[str, Verdict] = {}
        self._shrink_s = shrink_s
        self._drawn = programs() if drawn is None else drawn
        self._shrinks_until: float | None = None
        self._smallest: Verdict | None = None
        self._kind = ""

    def run(self, name: str, count: int, phases: tuple[Phase, ...]) -> Verdict | None:
        """Judge the programs of a seed; return the smallest difference."""

        @seed(name)
        @settings(
            max_examples=count,
            deadline=None,
            database=self._database,
            phases=phases,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
        )
        @given(program=self._drawn)
        def play(program: Program) -> None:
            if self._verdict_of(program).outcome == DIFFERS:
                raise Difference

        try:
            play()
        except (Difference, Enough):
            return self._smallest
        return None

    def _verdict_of(self, program: Program) -> Verdict:
        """Return the verdict, which hypothesis wants to be the same each time."""
        key = repr(program)
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = self._judge(program)
        if verdict.outcome == DIFFERS and (self._smallest is None or len(verdict.source) <= len(self._smallest.source)):
            drawn = self._smallest.drawn if self._smallest else program
            self._smallest = replace(verdict, program=program, drawn=drawn)
        return verdict

    def _judge(self, program: Program) -> Verdict:
        if self._shrinks_until is not None:
            if time.monotonic() > self._shrinks_until:
                raise Enough
            verdict = self.judge.differs_at_once(program)
            # Another difference on the way is found another time.
            return verdict if verdict.kind == self._kind else Verdict(REPEATED)
        verdict = self.judge.judge(program)
        if verdict.outcome == DIFFERS:
            is_known = verdict.kind in self.known
            self.known[verdict.kind] = self.known.get(verdict.kind, 0) + 1
            if is_known:
                verdict = Verdict(REPEATED)
            else:
                self._shrinks_until, self._kind = time.monotonic() + self._shrink_s, verdict.kind
        elif verdict.outcome == AGREES and verdict.windows:
            self.tally.agreed.append((program, verdict.windows))
        self.tally.outcomes[verdict.outcome] += 1
        return verdict


def search(
    judge: Judge,
    name: str,
    count: int,
    known: MutableMapping[str, int],
    report: Callable[[Tally], None],
    phases: tuple[Phase, ...],
) -> None:
    """Judge the programs of a batch; report after each search."""
    done, turn = 0, 0
    while done < count:
        tally = Tally()
        found = Search(judge, tally, known, DATABASE).run(f"{name}.{turn}", count - done, phases)
        if found is not None:
            tally.found.append(found)
        turn += 1
        done += max(1, tally.programs)
        report(tally)
