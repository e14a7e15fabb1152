from __future__ import annotations

import gc
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants import matrix
from tests.mutants.matrix import ChangedLine
from tests.mutants.operators import mutants


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Provide an imported module whose functions are frozen, as all are after the collection of tests."""
    file = tmp_path / "core.py"
    file.write_text("def f(a):\n    return a < 1\n", "utf-8")
    monkeypatch.setattr(matrix, "ROOT", tmp_path)
    spec = importlib.util.spec_from_file_location("core", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    gc.freeze()
    yield module
    # The change ends that; all other objects of the tests were frozen, too.
    gc.freeze()


def test_a_change_reaches_functions_that_are_frozen(core: ModuleType, tmp_path: Path) -> None:
    [change] = [one for one in mutants(tmp_path / "core.py", tmp_path) if one.name.endswith("a < 1 → a <= 1")]
    f = core.f
    assert not f(1)
    ChangedLine(change).make()
    assert f(1)


def test_a_change_of_a_module_that_is_not_imported_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "ROOT", tmp_path)
    (tmp_path / "other.py").write_text("def f(a):\n    return a < 1\n", "utf-8")
    with pytest.raises(LookupError, match="no function of"):
        ChangedLine(next(mutants(tmp_path / "other.py", tmp_path))).make()
