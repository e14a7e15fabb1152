from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqp_broker.amqp import nested


def test_a_copy_has_converted_keys_and_leaves_in_their_order() -> None:
    value = {"b": [1, {"c": 2}, []], "a": 3, "d": {}}
    copy = nested.mapped(value, str.upper, lambda leaf: -leaf)
    assert copy == {"B": [-1, {"C": -2}, []], "A": -3, "D": {}}
    assert list(copy) == ["B", "A", "D"]
    assert value["b"] is not copy["B"]


def test_a_value_that_is_not_nested_is_a_leaf() -> None:
    assert nested.mapped(1, str.upper, lambda leaf: -leaf) == -1


def test_levels_are_those_around_the_innermost_value() -> None:
    assert nested.levels(1) == 0
    assert nested.levels([]) == 1
    assert nested.levels({"a": [1], "b": 2}) == 2
    assert nested.levels([[], [{"a": []}]]) == 4


def test_texts_are_joined_in_the_order_of_their_parts() -> None:
    def parts(block: list[Any]) -> Iterator[Any]:
        yield "("
        yield from (item if isinstance(item, list) else str(item) for item in block)
        yield ")"

    assert nested.joined([1, [2, []], 3], parts) == "(1(2())3)"


def test_levels_beyond_the_limit_are_cut() -> None:
    value = {"a": [1, {"b": []}], "c": 2}
    assert nested.cut(value, 4, "…") == value
    assert nested.cut(value, 3, "…") == {"a": [1, {"b": "…"}], "c": 2}
    assert nested.cut(value, 1, "…") == {"a": "…", "c": 2}
    assert nested.cut(5, 0, "…") == 5
