"""The transcripts of scenarios at one broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from amqp_broker.conformance.lab import Broker, Scenario, run
from amqp_broker.conformance.terms import Terms


class Playing(Mapping[str, list[str]]):
    """Transcripts by `area/name` of the scenario, which is played on lookup.

    Scenarios that mostly wait start at once, in parallel; leaving the context waits for them.
    """

    def __init__(self, broker: Broker, scenarios: Iterable[Scenario], terms: Terms | None = None) -> None:
        self._broker = broker
        self._terms = terms
        self._scenarios = {scenario.question: scenario for scenario in scenarios}
        slow = [scenario for scenario in self._scenarios.values() if scenario.is_slow]
        self._threads = ThreadPoolExecutor(max_workers=100)
        self._begun: dict[str, Future[str]] = {
            scenario.question: self._threads.submit(self._run, scenario) for scenario in slow
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def __getitem__(self, question: str) -> list[str]:
        begun = self._begun.get(question)
        transcript = begun.result() if begun else self._run(self._scenarios[question])
        return transcript.splitlines()

    def _run(self, scenario: Scenario) -> str:
        return run(scenario, self._broker, self._terms)

    def __iter__(self) -> Iterator[str]:
        return iter(self._scenarios)

    def __len__(self) -> int:
        return len(self._scenarios)
