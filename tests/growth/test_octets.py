from __future__ import annotations

import pytest

from tests.growth.table import Row, played
from tests.growth.test_growth import ROWS
from tests.growth.world import small_scale

# Octets by which two turns of the same length may differ.
SLACK_BYTES = 64 * 1024


@pytest.mark.parametrize(
    "name",
    [
        "publishes_to_classic",
        "publishes_to_twenty_queues",
        "publishes_to_many_queues",
        "messages_to_many_consumers_of_classic",
        "basic_consume_classic_of_all",
        "connections_come_and_go",
        "delayed_messages_are_due",
    ],
)
def test_the_memory_of_a_turn_does_not_grow(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    with small_scale():
        octets_max(row, row.n)
        twice, four_times = octets_max(row, row.n * 2), octets_max(row, row.n * 4)
    assert four_times < 1.3 * twice + SLACK_BYTES, (twice, four_times)


def octets_max(row: Row, n: int) -> int:
    """The most octets that a turn has allocated at once."""
    return max(turn.octets for turn in played(row, n, counts_octets=True).turns)
