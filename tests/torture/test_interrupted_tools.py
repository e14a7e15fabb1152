"""A few kills of each tool of the store; `make torture ARGS="--rounds 0 --tool-rounds 50"` does more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.interrupted_tools import TOOLS, interrupt

ROUNDS = 4
SEED = 1


@pytest.mark.verify
@pytest.mark.parametrize("tool", TOOLS)
def test_a_killed_tool_loses_nothing_and_can_run_again(tmp_path: Path, tool: str) -> None:
    result = interrupt(tool, tmp_path / tool, ROUNDS, SEED)
    assert result.errors == []
    # Otherwise nothing was interrupted.
    assert result.kills > 0
