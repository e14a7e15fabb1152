from __future__ import annotations

from amqp_broker.demo.strategies import STRATEGIES


def test_there_are_four_under_their_names() -> None:
    assert list(STRATEGIES) == ["sync", "window", "async", "naive"]
    assert all(strategy.name == name for name, strategy in STRATEGIES.items())


def test_only_who_publishes_again_promises_that_nothing_is_lost() -> None:
    assert [one.name for one in STRATEGIES.values() if "at least once" in one.promise] == [
        one.name for one in STRATEGIES.values() if one.resends
    ]
