"""amqp-broker with a bug, of the simulation or of `unmended.py`, or with a quirk of `quirks.py`.

python -m compat.duel.planted NAME serve …
"""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from pathlib import Path

import pytest

from compat.brokers import AmqpBroker
from compat.duel.quirks import QUIRKS
from compat.duel.unmended import UNMENDED, Plant

SIMULATION = "tests.simulation"


class PlantedBroker(AmqpBroker):
    """A broker with a planted bug or quirk."""

    def __init__(self, folder: Path, bug: str, profile: str) -> None:
        super().__init__(folder, profile=profile)
        self.bug = bug

    def command(self) -> list[str]:
        interpreter, _, _, *arguments = super().command()
        return [interpreter, "-m", "compat.duel.planted", self.bug, *arguments]


def bugs() -> dict[str, str]:
    """Return all bugs by name, each with the module that plants it."""
    return {name: function.__module__.rpartition(".")[2] for name, function in _plants().items()}


def _plants() -> dict[str, Plant]:
    for file in sorted(Path("tests/simulation").glob("bugs_in_*.py")):
        import_module(f"{SIMULATION}.{file.stem}")
    return {**import_module(f"{SIMULATION}.planting").PLANTS, **UNMENDED}


def main() -> None:
    name = sys.argv.pop(1)
    {**_plants(), **{quirk.__name__: quirk for quirk in QUIRKS}}[name](pytest.MonkeyPatch())
    runpy.run_module("amqp_broker", run_name="__main__")


if __name__ == "__main__":
    main()
