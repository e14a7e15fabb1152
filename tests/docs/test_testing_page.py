"""The examples of docs/testing.md, and the first test of README.md, work."""

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
    # A snapshot is taken three times; asyncio and unittest have two tests each.
    suite.run("", "-W", "error").assert_outcomes(passed=len(recipes) + 4)


def test_the_tests_of_the_readme_are_clean(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = Suite(pytester, monkeypatch)
    first, misfortunes = texts_of(ROOT / "README.md", "python")
    assert texts_of(PAGE, "python")[0] == first
    pytester.makepyfile(test_orders=first)
    strict = ("-W", "error", "--amqp-broker-leaks=fail", "--amqp-fail-on-advice=all", "-rP")
    result = suite.run("", *strict)
    result.assert_outcomes(passed=1)
    assert "WARNING" not in result.stdout.str()
    pytester.makepyfile(test_misfortunes=misfortunes)
    # pika warns of a nack.
    suite.run("", *strict, "test_misfortunes.py").assert_outcomes(passed=3)
