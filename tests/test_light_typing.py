from __future__ import annotations

import pickle

import pytest

from amqp_broker.light_typing import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str = "p"

    @property
    def sum(self) -> int:
        return self.x + self.y


def test_a_named_tuple_has_fields_defaults_and_methods() -> None:
    point = Point(1, name="q")
    assert point == (1, 2, "q")
    assert (point.x, point.sum, point.name) == (1, 3, "q")
    assert point._replace(x=5) == Point(5, 2, "q")
    assert isinstance(point._replace(x=5), Point)
    assert repr(point) == "Point(x=1, y=2, name='q')"
    assert Point.__doc__ == "A place."
    assert Point._fields == ("x", "y", "name")


def test_a_named_tuple_needs_the_fields_without_defaults_and_has_no_others() -> None:
    with pytest.raises(TypeError, match="x"):
        Point(y=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Point(1).z = 1  # type: ignore[attr-defined]


def test_a_named_tuple_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
