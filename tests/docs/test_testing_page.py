"""The examples of docs/testing.md work."""

from __future__ import annotations

import pytest

from tests.docs.blocks import texts_of
from tests.testing.user_suites import ROOT, Suite

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "testing.md"


def test_the_recipes_of_the_page_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = Suite(pytester, monkeypatch)
    recipes = texts_of(PAGE, "python")
    for number, recipe in enumerate(recipes):
        pytester.makepyfile(**{f"test_recipe_{number}": recipe})
    # The first recipe is five lines long and leaves its connection open; a snapshot is taken three times.
    suite.run().assert_outcomes(passed=len(recipes) + 2, warnings=1)
