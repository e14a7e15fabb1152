"""Scenarios played against one or both brokers."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from compat.differential.lab import Address, Scenario, run

RABBITMQ, OURS = "rabbitmq", "ours"


@dataclass
class Stage:
    """The brokers by name. Scenarios that mostly wait are begun beforehand, all at once, and asked for later."""

    brokers: dict[str, Address]
    our_log: Path | None = None
    _begun: dict[tuple[str, str], Future[str]] = field(default_factory=dict)

    def begin(self, scenarios: Iterable[Scenario]) -> None:
        """Begin to play the slow ones among these."""
        pool = ThreadPoolExecutor(max_workers=100)
        for scenario in scenarios:
            for name, address in self.brokers.items() if scenario.is_slow else ():
                self._begun[scenario.name, name] = pool.submit(run, scenario, address)
        pool.shutdown(wait=False)

    def play(self, scenario: Scenario) -> dict[str, str]:
        """The transcript of each broker."""
        return {name: self._transcript(scenario, name) for name in self.brokers}

    def warnings(self) -> list[str]:
        """What our broker has warned of lately: a slow disk, an alarm."""
        lines = self.our_log.read_text().splitlines() if self.our_log else []
        return [line for line in lines if "[warning]" in line or "[error]" in line][-10:]

    def _transcript(self, scenario: Scenario, name: str) -> str:
        begun = self._begun.pop((scenario.name, name), None)
        return begun.result() if begun else run(scenario, self.brokers[name])
