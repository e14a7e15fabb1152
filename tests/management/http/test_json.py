from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from amqp_broker.amqp import fields
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.documents.values import json_of
from amqp_broker.management.http import json
from amqp_broker.management.http.answers import Refusal


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("text", "text"),
        (b"octets", "octets"),
        (b"\xff\x00", "\ufffd\x00"),
        ("\udcff", "\ufffd"),
        (True, True),
        (None, None),
        (5, 5),
        (fields.Byte(-5), -5),
        (fields.UnsignedByte(5), 5),
        (fields.Short(-5), -5),
        (fields.UnsignedShort(5), 5),
        (fields.UnsignedInt(5), 5),
        (fields.Long(-(2**63)), -(2**63)),
        (fields.Timestamp(2**64 - 1), 2**64 - 1),
        (1.5, 1.5),
        (fields.Float32(0.5), 0.5),
        (math.inf, None),
        (fields.Decimal(2, 314), 3.14),
        (fields.Decimal(255, 1), 1e-255),
        ([fields.Long(1), {"a": b"x"}], [1, {"a": "x"}]),
        ({"\udcff": [None]}, {"\ufffd": [None]}),
    ],
)
def test_a_field_of_each_type_has_its_json(value: fields.Value, told: Any) -> None:
    assert msgspec.json.decode(json.encode(json_of({"k": value}))) == {"k": told}


def test_every_type_of_field_is_json() -> None:
    for kind in fields._TYPE_NAMES:
        value: Any = kind(1, 1) if kind is fields.Decimal else None if kind is type(None) else kind()
        json.encode(json_of(value))


@pytest.mark.parametrize(
    ("value", "table"),
    [
        ({}, {}),
        (None, {}),
        ([], {}),
        ({"n": 1}, {"n": fields.Long(1)}),
        ({"f": 1.5, "b": False, "s": "x"}, {"f": 1.5, "b": False, "s": "x"}),
        ({"l": [1, {"a": 2}]}, {"l": [fields.Long(1), {"a": fields.Long(2)}]}),
    ],
)
def test_an_object_becomes_a_field_table(value: Any, table: fields.Table) -> None:
    made = json.to_table(value)
    assert made == table
    assert fields.encode_table(made) == fields.encode_table(table)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    ["x", 1, [1], {"a": None}, {"a": [None]}, {"a": 2**64}, {"a": -(2**63) - 1}, {"k" * 256: 1}, {"é" * 128: 1}],
)
def test_an_invalid_field_table_is_refused(value: Any) -> None:
    with pytest.raises(Refusal) as caught:
        json.to_table(value)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"a": [1, {"b": "\udcff"}]},
        list(range(1000)),
        [{"name": str(number), "of": {"\udcff": [number]}} for number in range(65)],
        {"first": 1, "rows": [[number] for number in range(200)], "last": {}},
        {"queues": [{"name": "a", "messages": list(range(100))}, {"messages": []}, {"messages": list(range(70))}]},
        {str(number): number for number in range(100)},
        [[list(range(100))] * 70, 5],
    ],
)
def test_json_in_steps_is_the_same_as_at_once(value: Any) -> None:
    assert b"".join(finished(json.encoded(value))) == json.encode(value)


def test_a_long_list_inside_of_objects_is_encoded_in_steps() -> None:
    value = {"queues": [{"messages": list(range(10 * json.ITEMS_MAX))}]}
    assert sum(1 for _ in json.encoded(value)) >= 10


def test_a_table_deeper_than_pythons_stack_is_accepted() -> None:
    octets = fields.encode_table(json.to_table(nested(10_000)))
    assert octets.count(b"\x01aF") == 9_999


@pytest.mark.parametrize("leaf", [1, "text", "\udcff"])
def test_json_deeper_than_pythons_stack_is_written(leaf: Any) -> None:
    value: Any = leaf
    for _ in range(2000):
        value = {"a\udcff": [value, None, True]}
    shown = "1" if leaf == 1 else '"text"' if leaf == "text" else '"\ufffd"'
    assert json.encode(value).decode() == '{"a\ufffd":[' * 2000 + shown + ",null,true]}" * 2000


def test_the_rows_of_a_disposable_list_are_freed_in_the_steps_that_encode_them() -> None:
    rows = [{"name": str(number)} for number in range(4 * json.ITEMS_MAX)]
    value = {"rows": Disposable(rows)}
    assert [len(value["rows"]) // json.ITEMS_MAX for _ in json.encoded(value)] == [3, 2, 1, 0]
    assert b"".join(finished(json.encoded({"rows": Disposable(rows)}))) == json.encode({"rows": rows})
