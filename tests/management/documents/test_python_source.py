from __future__ import annotations

import ast
import decimal
from datetime import UTC, datetime
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


def test_times_and_decimals_are_values_of_the_client() -> None:
    names = {"datetime": datetime, "UTC": UTC, "Decimal": decimal.Decimal}
    given = {"time": Timestamp(1_795_477_888), "price": Decimal(2, -150), "last": Timestamp(253_402_300_799)}
    assert eval(source(given), names) == {
        "time": datetime(2026, 11, 23, 23, 51, 28, tzinfo=UTC),
        "price": decimal.Decimal("-1.50"),
        "last": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    }


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinity_is_an_expression_without_imports(value: float) -> None:
    assert eval(source({"h": value}), {}) == {"h": value}


@pytest.mark.parametrize("value", [Timestamp(2**63), "\udcff", {1, 2}, float("nan")], ids=repr)
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidParameter):
        source([value])
