from __future__ import annotations

from amqp_broker.demo.strategies import STRATEGIES


def test_strategies_are_found_by_name() -> None:
    assert list(STRATEGIES) == ["sync", "window", "async", "naive"]
    assert all(strategy.name == name for name, strategy in STRATEGIES.items())


def test_only_resending_strategies_promise_at_least_once() -> None:
    assert [one.name for one in STRATEGIES.values() if "at least once" in one.promise] == [
        one.name for one in STRATEGIES.values() if one.resends
    ]
