from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mutants.operators import Mutant, mutants, sample


def mutants_of(folder: Path, body: str) -> list[Mutant]:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (folder / "core.py").write_text(f"def f(a, b):\n{lines}", "utf-8")
    return list(mutants(folder / "core.py", folder))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a < 1", ["return a < 1 → return None", "a < 1 → a <= 1", "a < 1 → a >= 1", "1 → 2"]),
        ("a = b and not f", ["b and (not f) → b or not f", "b and (not f) → not f", "b and (not f) → b", "not f → f"]),
        ("if a: b = 0", ["if a → if a and False", "if a → if a or True", "0 → 1"]),
        ("a += min(a, b)", ["a += min(a, b) → a -= min(a, b)", "min → max"]),
        ("a.clear()\na.b = a", ["a.clear() → nothing", "a.b = a → nothing"]),
        ("a = [b for b in a if b]", ["[b for b in a if b] → [b for b in a]"]),
        ("a = 1\nb = 1", ["1 → 2", "1 → 2 (2)"]),
    ],
)
def test_each_small_change_is_a_mutant(tmp_path: Path, body: str, expected: list[str]) -> None:
    assert [mutant.name for mutant in mutants_of(tmp_path, body)] == [f"core:f: {change}" for change in expected]


@pytest.mark.parametrize(
    "body",
    [
        "'''Not 1.'''",
        "a: Literal[1]",
        "raise ValueError(f'{a + 1}')",
        "a = f'{b + 1}'",
        "a = b + ' and more'",
        "logger.info(a + 1)",
        "assert a > 1",
    ],
)
def test_texts_and_types_have_no_mutants(tmp_path: Path, body: str) -> None:
    assert mutants_of(tmp_path, body) == []


def test_a_mutant_differs_in_one_place(tmp_path: Path) -> None:
    results = []
    for mutant in mutants_of(tmp_path, "return a + b if a > b else 7"):
        namespace: dict[str, Any] = {}
        exec(mutant.compiled(), namespace)
        results.append([namespace["f"](a, b) for a, b in ((1, 2), (2, 2), (3, 2))])
    right = [7, 7, 5]
    assert len(results) == 7
    assert all(result != right for result in results)


def test_a_sample_does_not_change_when_mutants_are_added(tmp_path: Path) -> None:
    mutants_of(tmp_path, "return a < 1")
    before = {mutant.name for mutant in sample([tmp_path], tmp_path, 2, seed=1)}
    mutants_of(tmp_path, "b()\nreturn a < 1")
    after = {mutant.name for mutant in sample([tmp_path], tmp_path, 3, seed=1)}
    assert before < after
