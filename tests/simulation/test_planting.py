"""Each planted bug has a place in the code as it is now; the slow tests show that each is caught."""

from __future__ import annotations

import pytest

from tests.simulation.planting import PLANTS
from tests.simulation.test_planted_bugs import MODULES

# Compiled code calls the functions that it was compiled with.
pytestmark = pytest.mark.interpreted


def test_bugs_are_planted_everywhere() -> None:
    assert {plant.__module__ for plant in PLANTS.values()} == {module.__name__ for module in MODULES}


@pytest.mark.parametrize("name", PLANTS)
def test_a_bug_can_be_planted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    PLANTS[name](monkeypatch)
