"""The results of a run, by chapter, and two transcripts side by side."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple

from amqp_broker.conformance.judging import Judged, Verdict
from amqp_broker.conformance.lab import Scenario

SCENARIO_MODULES = "amqp_broker.conformance.scenarios"


class Row(NamedTuple):
    """Lines of two transcripts beside each other; None where one has no such line."""

    expected: str | None
    seen: str | None

    @property
    def differs(self) -> bool:
        return self.expected != self.seen


@dataclass(frozen=True)
class Chapter:
    """The scenarios of one area, and a sentence on it."""

    title: str
    about: str
    judged: tuple[Judged, ...]

    def count(self, verdict: Verdict) -> int:
        return sum(one.verdict is verdict for one in self.judged)


@dataclass
class Results:
    """The verdicts of a run, and the broker that it was played at."""

    broker: str
    # The versions of RabbitMQ whose answers count, and the reason to choose them.
    compared_with: str
    duration_s: float = 0.0
    judged: list[Judged] = field(default_factory=list)

    def count(self, verdict: Verdict) -> int:
        return sum(one.verdict is verdict for one in self.judged)

    @property
    def has_differences(self) -> bool:
        return self.count(Verdict.DIFFERS) > 0

    def chapters(self) -> list[Chapter]:
        """Return the chapters in the order of their titles, each with its scenarios in theirs."""
        areas: dict[str, list[Judged]] = {}
        for one in sorted(self.judged, key=lambda one: one.scenario.question):
            areas.setdefault(one.scenario.area, []).append(one)
        return [Chapter(title_of(area), _about(area), tuple(judged)) for area, judged in areas.items()]

    def reasons_to_skip(self) -> list[tuple[str, int]]:
        """Return the reasons, each with the number of scenarios, the most frequent first."""
        return Counter(one.reason for one in self.judged if one.verdict is Verdict.SKIPPED).most_common()


def sentence_of(scenario: Scenario) -> str:
    """Return the name of a scenario as a sentence."""
    name = scenario.name.replace("_", " ") if ":" not in scenario.name else scenario.name
    return name[:1].upper() + name[1:]


def side_by_side(expected: Sequence[str], seen: Sequence[str]) -> Iterator[Row]:
    """Yield the lines of two transcripts in rows, equal ones beside each other."""
    for kind, begin, end, other_begin, other_end in SequenceMatcher(None, expected, seen, False).get_opcodes():
        left, right = expected[begin:end], seen[other_begin:other_end]
        if kind == "equal":
            yield from (Row(line, line) for line in left)
            continue
        for index in range(max(len(left), len(right))):
            yield Row(left[index] if index < len(left) else None, right[index] if index < len(right) else None)


def title_of(area: str) -> str:
    """Return the name of a chapter, which is that of the area in words."""
    return area.replace("_", " ").capitalize()


def _about(area: str) -> str:
    """Return the first paragraph of the docstring of an area's module."""
    module = sys.modules.get(f"{SCENARIO_MODULES}.{area}")
    return " ".join((module.__doc__ or "").partition("\n\n")[0].split()) if module else ""
