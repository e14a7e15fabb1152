"""The transcripts of scenarios at one broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from compat.differential.lab import Address, Scenario, run


class Playing(Mapping[str, list[str]]):
    """Transcripts by `area/name` of the scenario, which is played on lookup.

    Scenarios that mostly wait start at once, in parallel.
    """

    def __init__(self, address: Address, scenarios: Iterable[Scenario]) -> None:
        self.address = address
        self._scenarios = {scenario.question: scenario for scenario in scenarios}
        slow = [scenario for scenario in self._scenarios.values() if scenario.is_slow]
        with_threads = ThreadPoolExecutor(max_workers=100)
        self._begun: dict[str, Future[str]] = {
            scenario.question: with_threads.submit(run, scenario, address) for scenario in slow
        }
        with_threads.shutdown(wait=False)

    def __getitem__(self, question: str) -> list[str]:
        begun = self._begun.get(question)
        transcript = begun.result() if begun else run(self._scenarios[question], self.address)
        return transcript.splitlines()

    def __iter__(self) -> Iterator[str]:
        return iter(self._scenarios)

    def __len__(self) -> int:
        return len(self._scenarios)
