from __future__ import annotations

import ast
from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.fields import Decimal, Long, Timestamp
from amqp_broker.management.documents.python_source import source, with_arguments


@pytest.mark.parametrize(
    "value",
    [None, True, 7, 1.5, "a'b\"c\\\n\r\u202e\u2066 \u05d0", b"\x00\xff'", {"k": [1, {"l": "m"}]}, [], {}],
    ids=repr,
)
def test_a_value_is_one_line_that_means_the_same(value: Any) -> None:
    assert ast.literal_eval(source(value)) == value
    assert not set(source(value)) & set("\n\r\u202e\u2066")


def test_integers_of_the_wire_are_plain() -> None:
    assert source(Long(5)) == "5"
    assert with_arguments({"times": Long(1)}) == ", times=1"


@pytest.mark.parametrize("value", [Timestamp(1), Decimal(1, 2), "\udcff", {1, 2}], ids=repr)
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidParameter):
        source([value])
