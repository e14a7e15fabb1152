from __future__ import annotations

import json
import math
from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.management.documents.values import json_of, table_of, text_of


def test_json_becomes_a_table_of_rabbitmqs_types() -> None:
    table = table_of({"a": 1, "b": 2.0, "c": True, "d": "é", "e": [1, {"f": -1}], "g": {"h": {}}, "i": None})
    octets = fields.encode_table(table)
    assert [(key, type(value)) for key, value in fields.decode_table(octets)[0].items()] == [
        ("a", fields.Long),
        ("b", float),
        ("c", bool),
        ("d", str),
        ("e", list),
        ("g", dict),
        ("i", type(None)),
    ]
    assert type(table["e"][0]) is type(table["e"][1]["f"]) is fields.Long


@pytest.mark.parametrize("value", [None, [], {}])
def test_no_arguments_have_three_forms(value: Any) -> None:
    assert table_of(value) == {}


def deep(levels: int) -> Any:
    return {"a": deep(levels - 1)} if levels else 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", 'arguments should be a dictionary, actually was <<"a">>'),
        ([1], "arguments should be a dictionary, actually was [1]"),
        (0, "arguments should be a dictionary, actually was 0"),
        (False, "arguments should be a dictionary, actually was false"),
        ({"a": [1 << 64]}, "argument 'a' is 18446744073709551616, which 64 bits do not hold"),
        ({"é" * 128: 1}, f"argument '{'é' * 20}…' has a name longer than 255 octets"),
        ({"a": [{"b" * 256: 1}]}, f"argument '{'b' * 20}…' has a name longer than 255 octets"),
    ],
)
def test_an_invalid_table_is_refused(value: Any, text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        table_of(value)
    assert str(caught.value) == text


def test_a_table_at_the_limits_is_accepted() -> None:
    table = table_of({"a": deep(63), "b" * 255: (1 << 63) - 1, "c": -(1 << 63), "d": (1 << 64) - 1})
    assert fields.decode_table(fields.encode_table(table))[0] == table


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (fields.Byte(5), "5"),
        (fields.Timestamp(5), "5"),
        (fields.Float32(0.5), "0.5"),
        (fields.Decimal(2, 314), "3.14"),
        (True, "true"),
        (math.inf, "null"),
        (math.nan, "null"),
        (None, "null"),
        (b"a\xff", '"a\ufffd"'),
        ("a\udcff", '"a\ufffd"'),
        ([fields.Long(1), {"a\udcff": b"b"}], '[1, {"a\ufffd": "b"}]'),
    ],
)
def test_every_type_of_field_has_a_value_in_json(value: Any, told: str) -> None:
    assert json.dumps(json_of(value), ensure_ascii=False, allow_nan=False) == told


def test_a_valid_text_is_unchanged() -> None:
    assert text_of("aé\u20ac\U0001f600") == "aé\u20ac\U0001f600"
