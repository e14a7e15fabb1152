"""The examples of docs/testing.md work."""

from __future__ import annotations

import re

import pytest

from tests.testing.suites import ROOT, Suite

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "testing.md"


def test_the_recipes_of_the_page_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = Suite(pytester, monkeypatch)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for number, block in enumerate(blocks):
        pytester.makepyfile(**{f"test_recipe_{number}": block})
    # The first recipe is five lines long and leaves its connection open; a snapshot is taken three times.
    suite.run().assert_outcomes(passed=len(blocks) + 2, warnings=1)
