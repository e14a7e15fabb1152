from __future__ import annotations

import pytest

from tests.simulation.planting import with_small_windows


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    with_small_windows(monkeypatch)
