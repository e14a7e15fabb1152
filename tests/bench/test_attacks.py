from __future__ import annotations

from pathlib import Path

import pytest

from bench.attacks import ATTACKS, Attack, measure
from bench.subjects import amqp_broker


@pytest.mark.parametrize(
    "attack", [one for one in ATTACKS if one.name in ("patterns", "acks")], ids=lambda one: one.name
)
def test_an_innocent_client_is_served_until_the_attack_is_over(tmp_path: Path, attack: Attack) -> None:
    waits = measure(attack, amqp_broker(), tmp_path)
    assert waits is not None
    assert waits.is_over
    assert 0 < waits.p99_ms <= waits.longest_ms
