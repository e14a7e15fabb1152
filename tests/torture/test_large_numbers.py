"""Attempts with small numbers; `python -m tests.torture.large_numbers` makes them with large ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.large_numbers import ATTEMPTS, attempt

SCALE = 0.01


@pytest.mark.verify
@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_broker_serves_large_numbers(tmp_path: Path, name: str) -> None:
    assert attempt(name, tmp_path / "broker", SCALE)
