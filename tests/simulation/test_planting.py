"""Each planted bug has a place in the code as it is now; the slow tests show that each is caught."""

from __future__ import annotations

import inspect
from typing import cast

import pytest

from tests.simulation.planting import PLANTS
from tests.simulation.test_planted_bugs import MODULES

# Compiled code calls the functions that it was compiled with.
pytestmark = pytest.mark.interpreted


def test_bugs_are_planted_everywhere() -> None:
    assert {plant.__module__ for plant in PLANTS.values()} == {module.__name__ for module in MODULES}


class CheckedPatch:
    """A monkeypatch that refuses a function that cannot be called as the one it replaces."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def setattr(self, owner: object, name: str, value: object, raising: bool = True) -> None:
        replaced = getattr(owner, name, None)
        if inspect.isfunction(replaced) and inspect.isfunction(value):
            of_value, parameters = inspect.signature(value), inspect.signature(replaced).parameters.values()
            positional = [None for one in parameters if one.kind == one.POSITIONAL_OR_KEYWORD]
            of_value.bind(*positional, **{one.name: None for one in parameters if one.kind == one.KEYWORD_ONLY})
        self._patch.setattr(owner, name, value, raising)


@pytest.mark.parametrize("name", PLANTS)
def test_a_bug_is_called_as_the_code_that_it_replaces(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A TypeError would be caught at once, and show nothing."""
    PLANTS[name](cast(pytest.MonkeyPatch, CheckedPatch(monkeypatch)))


@pytest.mark.parametrize("name", PLANTS)
def test_a_bug_can_be_planted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    PLANTS[name](monkeypatch)
