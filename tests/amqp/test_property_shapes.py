from __future__ import annotations

import math
from typing import Any

import pytest

from amqp_broker.amqp import property_shapes
from amqp_broker.amqp.fields import Float32
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.amqp.property_list import UNREADABLE, Traits
from amqp_broker.amqp.property_shapes import LENGTHS_MAX, PropertyShapes


def learn(shapes: PropertyShapes, **properties: Any) -> Traits:
    """Return the traits of a list, learnt if its shape is not known."""
    data = Properties(**properties).encode()
    return shapes.find(data) or shapes.learn(data)


def is_known(shapes: PropertyShapes, **properties: Any) -> bool:
    return shapes.find(Properties(**properties).encode()) is not None


def test_lists_of_one_shape_share_their_traits() -> None:
    shapes = PropertyShapes(sorts=True)
    known = learn(shapes, delivery_mode=2, message_id="id 1", timestamp=1, headers={"b": "x", "a": 1, "c": True})
    assert (
        learn(shapes, delivery_mode=2, message_id="id 2", timestamp=9, headers={"b": "y", "a": 7, "c": False}) is known
    )


@pytest.mark.parametrize(
    "other",
    [
        {"delivery_mode": 1},
        {"message_id": "id", "timestamp": 1},
        {"headers": {"a": "x", "c": 1}},
        {"headers": {"a": b"x", "b": 1}},
        {"headers": {"a": "x", "b": 1, "c": None}},
        {"expiration": "20"},
        {"user_id": "you"},
    ],
)
def test_a_list_that_differs_in_more_than_its_values_has_another_shape(other: dict[str, Any]) -> None:
    first = {"delivery_mode": 2, "message_id": "id 1", "headers": {"a": "x", "b": 1}}
    first |= {name: value for name, value in (("expiration", "10"), ("user_id", "me!")) if name in other}
    shapes = PropertyShapes(sorts=True)
    learn(shapes, **first)
    assert not is_known(shapes, **{**first, **other})


def test_a_string_that_was_of_five_lengths_may_be_of_any() -> None:
    shapes = PropertyShapes(sorts=True)

    def properties(name: str, size: int, kind: str = "t") -> dict[str, Any]:
        return {"content_type": "c", "headers": {"size": size, "name": name, "b": "x"}, "type": kind}

    for length in range(2, 2 + LENGTHS_MAX + 1):
        assert not is_known(shapes, **properties("x" * length, 1))
        learn(shapes, **properties("x" * length, 1))
    for name in ("", "a", "ab" * 200):
        known = learn(shapes, **properties(name, 7))
        assert is_known(shapes, **properties(name, 7))
        message = Message.build(Address("", ""), Properties(**properties(name, 7)), b"body")
        assert known.sorter is not None
        found = Message(message.address, known.sorter.sort(message.content), 1, False)
        assert list((found.properties().headers or {}).items()) == [("b", "x"), ("name", name), ("size", 7)]
        assert (found.properties().type, found.body) == ("t", b"body")
    assert not is_known(shapes, **properties("ab", 1, "tt"))


def test_a_table_of_another_size_than_its_entries_is_not_known() -> None:
    shapes = PropertyShapes(sorts=True)
    for length in range(LENGTHS_MAX + 1):
        learn(shapes, headers={"n": "x" * length}, type="tttt")
    data = bytearray(Properties(headers={"n": "x" * 20}, type="tttt").encode())
    assert shapes.find(bytes(data)) is not None
    data[5] += 1
    assert shapes.find(bytes(data)) is None


def test_a_direct_reply_to_is_not_taken_for_another_reply_to_of_its_length() -> None:
    shapes = PropertyShapes(sorts=True)
    assert learn(shapes, reply_to="x" * 21).is_plain
    assert not learn(shapes, reply_to="amq.rabbitmq.reply-to").is_plain
    assert learn(shapes, reply_to="y" * 21).is_plain


def test_a_list_that_ends_before_a_string_of_any_length_is_not_known() -> None:
    shapes = PropertyShapes(sorts=True)
    for length in range(1, LENGTHS_MAX + 2):
        learn(shapes, type="x" * length)
    assert is_known(shapes, type="")
    assert shapes.find(Properties(type="").encode()[:-1]) is None
    assert shapes.find(b"") is None


def test_a_boolean_that_rabbitmq_would_change_is_not_known() -> None:
    shapes = PropertyShapes(sorts=True)
    learn(shapes, headers={"b": True, "a": 1})
    data = Properties(headers={"b": False, "a": 1}).encode()
    assert shapes.find(data) is not None
    assert shapes.find(data.replace(b"bt\0", b"bt\2")) is None


def test_shapes_stay_bounded() -> None:
    shapes = PropertyShapes(sorts=True)
    for number in range(500):
        properties = {"headers": {f"{number} {'x' * number}"[:250]: 1, "size": number}}
        learn(shapes, **properties)
        # One that is met again shows that shapes are worth learning.
        assert is_known(shapes, **properties)
        assert shapes.size_bytes <= property_shapes.SHAPES_BYTES_MAX
    for mode in range(20):
        learn(shapes, delivery_mode=mode)
    assert is_known(shapes, delivery_mode=19)
    assert not is_known(shapes, delivery_mode=0)


def test_a_large_list_is_not_kept() -> None:
    shapes = PropertyShapes(sorts=True)
    learn(shapes, headers={"a": "x" * property_shapes.SHAPE_BYTES_MAX})
    assert shapes.size_bytes == 0


def test_few_of_ever_new_shapes_are_learnt_until_one_is_met_again() -> None:
    shapes = PropertyShapes(sorts=True)
    for number in range(64):
        shapes.learn(Properties(headers={f"{number:02}": 1}).encode())
    # Of the first 32 the newest are kept, and one of the next 32.
    assert [number for number in range(64) if is_known(shapes, headers={f"{number:02}": 1})] == [*range(17, 32), 63]
    shapes.learn(Properties(headers={"new": 1}).encode())
    assert is_known(shapes, headers={"new": 1})


@pytest.mark.parametrize("value", [math.nan, -math.inf, Float32(math.inf)])
def test_a_list_with_a_number_that_erlang_does_not_have_is_unreadable(value: float) -> None:
    for headers in ({"a": value}, {"a": [1, {"b": value}]}):
        shapes = PropertyShapes(sorts=True)
        assert learn(shapes, headers=headers) is UNREADABLE
        assert not is_known(shapes, headers=headers)


@pytest.mark.parametrize("kind", [float, Float32])
def test_a_finite_number_makes_no_other_number_of_its_place_finite(kind: type[float]) -> None:
    shapes = PropertyShapes(sorts=False)
    known = learn(shapes, headers={"a": kind(1.5), "b": "x"})
    assert learn(shapes, headers={"a": kind(-3e38), "b": "y"}) is known
    assert learn(shapes, headers={"a": kind("nan"), "b": "x"}) is UNREADABLE
    assert learn(shapes, headers={"a": kind(0.0), "b": "x"}) is known


def test_a_number_is_looked_at_behind_strings_of_any_length() -> None:
    shapes = PropertyShapes(sorts=False)

    def headers(length: int, *numbers: float) -> dict[str, Any]:
        return {"a": numbers[0], "b": "x" * length, "c": numbers[1], "d": {"e": "x" * 3, "f": Float32(numbers[2])}}

    for length in range(2 * LENGTHS_MAX):
        assert learn(shapes, headers=headers(length, 1.5, 2.5, 3.5)).is_plain
    assert is_known(shapes, headers=headers(200, -1e308, 0.0, 5e-324))
    for place in range(3):
        numbers = [1.5, 2.5, 3.5]
        numbers[place] = math.inf
        assert learn(shapes, headers=headers(201, *numbers)) is UNREADABLE
