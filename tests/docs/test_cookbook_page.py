"""The recipes of the cookbook work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat.go.toolchain import find_go, race_options, run_go
from tests.cli.program import TIMEOUT_S, environment
from tests.docs.blocks import texts_of
from tests.testing.user_suites import ROOT, Suite

pytest_plugins = ["pytester"]

PAGES = sorted((ROOT / "docs").glob("cookbook*.md"))
RECIPES = [recipe for page in PAGES for recipe in texts_of(page, "python")]
GO = find_go()


def test_each_recipe_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = Suite(pytester, monkeypatch)
    assert len(RECIPES) >= 20
    for number, recipe in enumerate(RECIPES):
        pytester.makepyfile(**{f"test_recipe_{number:02}": recipe})
    # One recipe has two rows in the table.
    suite.run("", "-W", "ignore::amqp_broker.testing.LeakWarning").assert_outcomes(passed=len(RECIPES) + 1)


def test_a_recipe_is_short() -> None:
    for recipe in RECIPES:
        assert len([line for line in recipe.splitlines() if line.strip()]) <= 28, recipe


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_recipe_states_its_purpose_in_bold(page: Path) -> None:
    text = page.read_text("utf-8")
    assert len(re.findall(r"^\*\*", text, re.MULTILINE)) == len(texts_of(page, "python")) + len(texts_of(page, "go"))


# With an empty cache, Go compiles its standard library first.
@pytest.mark.timeout(10 * TIMEOUT_S)
@pytest.mark.skipif(GO is None, reason="Go is not installed")
def test_the_recipe_in_go_passes(tmp_path: Path) -> None:
    assert GO is not None
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "compat" / "go" / name, tmp_path)
    [recipe] = texts_of(ROOT / "docs" / "cookbook.md", "go")
    (tmp_path / "recipe_test.go").write_text(recipe, "utf-8")
    run_go("test", *race_options(), "-c", "-o", os.devnull, folder=tmp_path)
    command = [sys.executable, "-m", "amqp_broker", "run", "--", GO, "test", *race_options(), "-count=1", "./..."]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        encoding="utf-8",
        timeout=10 * TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
