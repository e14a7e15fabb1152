"""The report: bugs that no test catches, and tests that catch what no other test does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from tests.mutants.coverage_of_tests import Measured
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.matrix import Outcome


def survivors(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the mutants that no test catches and that are not known to be equivalent."""
    return [outcome for outcome in outcomes if not outcome.catchers and outcome.name not in EQUIVALENT]


def alone(outcomes: Sequence[Outcome]) -> Counter[str]:
    """Return the number of mutants that only this test catches, for each test."""
    return Counter(outcome.catchers[0] for outcome in outcomes if len(outcome.catchers) == 1)


def needed(outcomes: Sequence[Outcome], durations_s: Mapping[str, float]) -> dict[str, int]:
    """Return few quick tests that together catch all caught mutants, each with the number that it adds."""
    catches: dict[str, set[str]] = defaultdict(set)
    for outcome in outcomes:
        for test in outcome.catchers:
            catches[test].add(outcome.name)
    chosen: dict[str, int] = {}
    while catches:
        best = max(catches, key=lambda test: (len(catches[test]), -durations_s.get(test, 0.0), test))
        found = catches[best]
        chosen[best] = len(found)
        catches = {test: rest for test, names in catches.items() if (rest := names - found)}
    return chosen


def print_report(outcomes: Sequence[Outcome], measured: Measured) -> None:
    durations_s = dict(zip(measured.tests, measured.durations_s, strict=True))
    left = survivors(outcomes)
    equivalent = sum(not outcome.catchers for outcome in outcomes) - len(left)
    print(f"{len(outcomes)} mutants: {len(outcomes) - len(left) - equivalent} caught, ", end="")
    print(f"{equivalent} known to change nothing that can be seen, {len(left)} left")
    for outcome in sorted(left, key=lambda outcome: outcome.place):
        print(f"  {outcome.place} ({outcome.count} tests) {outcome.name.partition(':')[2]}")
    singles, chosen = alone(outcomes), needed(outcomes, durations_s)
    useful = {test for outcome in outcomes for test in outcome.catchers}
    print("\nTests and CPU time of each file; how many caught any mutant, are needed for all, caught one alone")
    for file in sorted({file_of(test) for test in durations_s}):
        tests = [test for test in durations_s if file_of(test) == file]
        figures = "".join(f"{len(found.intersection(tests)):5}" for found in (useful, set(chosen), set(singles)))
        print(f"{len(tests):6}{sum(durations_s[test] for test in tests):8.2f} s{figures}  {file}")


def file_of(test: str) -> str:
    return test.partition("::")[0]
