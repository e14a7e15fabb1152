from __future__ import annotations

import pytest

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.demo.fault_plan import KINDS, PATIENCE_MS, SEED_MAX, fault_plan


@pytest.mark.parametrize("messages", [1, 7, 300, 100_000])
def test_a_plan_has_each_kind_once_before_the_end(messages: int) -> None:
    events = fault_plan(messages, 1)
    assert len({event.sentence for event in events}) == len(events) == len(KINDS)
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert all(1 <= event.at <= messages for event in events)


def test_the_seed_decides_the_plan() -> None:
    assert fault_plan(500, 7) == fault_plan(500, 7)
    assert fault_plan(500, 7) != fault_plan(500, 8)


def test_every_rule_is_valid() -> None:
    for seed in (0, 1, SEED_MAX):
        for event in fault_plan(500, seed):
            if event.rule is not None:
                Rule(**event.rule).check()


def test_one_event_is_a_restart() -> None:
    assert [event.times for event in fault_plan(500, 3) if event.rule is None] == [1]


def test_late_confirms_come_before_and_after_the_timeout() -> None:
    delays = [event.rule["delay_ms"] for event in fault_plan(500, 1) if event.rule and "delay_ms" in event.rule]
    assert len([delay for delay in delays if delay < PATIENCE_MS]) == 1
    assert len([delay for delay in delays if delay > PATIENCE_MS]) == 1
