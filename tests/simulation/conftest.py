from __future__ import annotations

import pytest

from tests.simulation.planting import with_small_buffers


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    with_small_buffers(monkeypatch)
