"""A few rounds of `make torture`: kill -9 while real clients work, without losing a promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.settings.settings import FULL, OS
from tests.torture.torture import CONSUMED, torture

ROUNDS = 5
SEED = 4


@pytest.mark.parametrize("store_sync", [FULL, OS])
def test_no_promise_is_lost_when_the_broker_is_killed(tmp_path: Path, store_sync: str) -> None:
    result = torture(tmp_path, ROUNDS, SEED, store_sync)
    assert result.errors == []
    # Otherwise there was nothing to lose.
    assert result.confirmed > 100
    assert all(result.delivered[queue] > 20 for queue in (*CONSUMED, "rejecting"))
    assert all(result.left[queue] > 20 for queue in ("kept", "dead", "rejecting"))
    assert result.kills_while_starting > 0
