"""Nothing that anybody sends stops the others: work grows no faster than N log N, and no turn grows.

`tests/growth/table.py` says how rows are written and judged, `world.py` what a turn is, `counted.py` what is counted
and what is not, `known.py` what grows all the same. `python -m tests.growth [-v] [PART OF A NAME]` shows the figures.
"""

from __future__ import annotations

import pytest

from tests.growth import dead_letters, many_consumers, many_keys, messages, requests, timers, verbs
from tests.growth.known import KNOWN
from tests.growth.table import Row, faults, still_grows

# Counting needs Python's tracing, which compiled code does not call.
pytestmark = pytest.mark.interpreted

ROWS = (
    *verbs.ROWS,
    *messages.ROWS,
    *dead_letters.ROWS,
    *many_keys.ROWS,
    *many_consumers.ROWS,
    *timers.ROWS,
    *requests.ROWS,
)


@pytest.mark.parametrize("row", [row for row in ROWS if row.name not in KNOWN], ids=lambda row: row.name)
def test_work_is_bounded(row: Row) -> None:
    assert faults(row) == []


@pytest.mark.verify
@pytest.mark.parametrize("row", [row for row in ROWS if row.name in KNOWN], ids=lambda row: row.name)
def test_a_known_row_still_grows(row: Row) -> None:
    assert still_grows(row), f"mended, so it has to leave tests/growth/known.py: {KNOWN[row.name]}"


def test_known_rows_exist() -> None:
    assert KNOWN.keys() <= {row.name for row in ROWS}
    assert len({row.name for row in ROWS}) == len(ROWS)
