from __future__ import annotations

import pytest

from amqp_broker.broker.fault_rules import Rule
from amqp_broker.demo.storm import KINDS, PATIENCE_MS, SEED_MAX, storm


@pytest.mark.parametrize("messages", [1, 7, 300, 100_000])
def test_each_kind_comes_once_in_order_and_before_the_end(messages: int) -> None:
    gusts = storm(messages, 1)
    assert len({gust.sentence for gust in gusts}) == len(gusts) == len(KINDS)
    assert [gust.at for gust in gusts] == sorted(gust.at for gust in gusts)
    assert all(1 <= gust.at <= messages for gust in gusts)


def test_the_same_seed_is_the_same_storm_and_another_is_another() -> None:
    assert storm(500, 7) == storm(500, 7)
    assert storm(500, 7) != storm(500, 8)


def test_every_rule_is_one_that_the_broker_takes() -> None:
    for seed in (0, 1, SEED_MAX):
        for gust in storm(500, seed):
            if gust.rule is not None:
                Rule(**gust.rule).check()


def test_one_gust_is_a_restart() -> None:
    assert [gust.times for gust in storm(500, 3) if gust.rule is None] == [1]


def test_late_confirms_come_within_and_beyond_the_patience_of_publishers() -> None:
    delays = [gust.rule["delay_ms"] for gust in storm(500, 1) if gust.rule and "delay_ms" in gust.rule]
    assert len([delay for delay in delays if delay < PATIENCE_MS]) == 1
    assert len([delay for delay in delays if delay > PATIENCE_MS]) == 1
