"""A selection takes messages by names and by chance."""

from __future__ import annotations

import pytest

from amqp_broker.broker.observe.selection import Selection


@pytest.mark.parametrize(
    ("selection", "is_taken"),
    [
        (Selection(), True),
        (Selection(exchanges=frozenset({"x", "y"})), True),
        (Selection(exchanges=frozenset({"y"})), False),
        (Selection(queues=frozenset({"b", "c"})), True),
        (Selection(queues=frozenset({"c"})), False),
        (Selection(exchanges=frozenset({"x"}), queues=frozenset({"c"})), False),
    ],
)
def test_names_select_messages(selection: Selection, is_taken: bool) -> None:
    assert selection.matches("x", ["a", "b"]) is is_taken


@pytest.mark.parametrize("one_in", [1, 2, 10, 100])
def test_a_sample_is_spread_evenly(one_in: int) -> None:
    selection = Selection(one_in=one_in)
    numbers = range(1, 20_001)
    for step in (1, 2, 3):
        taken = [number for number in numbers[::step] if selection.samples(number)]
        assert abs(len(taken) - 20_000 / step / one_in) <= 0.05 * 20_000 / step / one_in + 1


def test_only_a_selection_of_everything_takes_all() -> None:
    assert Selection().takes_all
    assert not Selection(one_in=2).takes_all
    assert not Selection(one_in=2).is_by_name
    assert Selection(queues=frozenset({"q"})).is_by_name
