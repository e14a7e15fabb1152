"""A few power cuts of a broker; `python -m tests.torture.power_cuts` makes hundreds."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from amqp_broker.settings.settings import FULL, OS
from tests.torture.interrupted_tools import TOOLS
from tests.torture.power_cuts import Result, cut, cut_tool

SEED = 3

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="the disk needs Linux and a C compiler"
)


@pytest.mark.parametrize("store_sync", [FULL, OS])
def test_no_promise_is_lost_when_the_power_is_cut(tmp_path: Path, store_sync: str) -> None:
    result = Result()
    cut(tmp_path / "cuts", 12, SEED, store_sync, result)
    assert result.errors == []
    # Otherwise there was nothing to lose.
    assert result.confirmed > 100


def test_a_disk_that_flushes_nothing_loses_promises(tmp_path: Path) -> None:
    result = Result()
    # About one image in four holds by chance all that was promised.
    cut(tmp_path / "cuts", 30, SEED, FULL, result, is_lying=True)
    assert result.errors != []


@pytest.mark.parametrize("tool", TOOLS)
def test_no_tool_loses_a_store_when_the_power_is_cut(tmp_path: Path, tool: str) -> None:
    assert cut_tool(tool, tmp_path / tool, 5, SEED).errors == []
