"""Turns of days: of a third of `make verify`, as in CI, some parts that take minutes run in one turn only."""

from __future__ import annotations

import time
from typing import Final

TURNS: Final = 9
_DAY_S: Final = 24 * 3600


def turn_of_today() -> int:
    """Return the turn: another one every three days, when all thirds have run."""
    return int(time.time()) // _DAY_S // 3 % TURNS
