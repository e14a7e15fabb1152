from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.fields import (
    Byte,
    Decimal,
    Float32,
    Long,
    MalformedTable,
    Short,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedShort,
    decode_table,
    encode_table,
)

# (letter, octets behind it, value, RabbitMQ's name of the type)
VALUES: list[tuple[bytes, bytes, Any, str]] = [
    (b"t", b"\x01", True, "bool"),
    (b"t", b"\x00", False, "bool"),
    (b"b", b"\xff", Byte(-1), "byte"),
    (b"B", b"\xff", UnsignedByte(255), "unsignedbyte"),
    (b"s", b"\xff\xfe", Short(-2), "short"),
    (b"u", b"\xff\xfe", UnsignedShort(65534), "unsignedshort"),
    (b"I", b"\xff\xff\xff\xfe", -2, "signedint"),
    (b"i", b"\xff\xff\xff\xfe", UnsignedInt(4294967294), "unsignedint"),
    (b"l", b"\xff" * 7 + b"\xfe", Long(-2), "long"),
    (b"f", struct.pack(">f", 1.5), Float32(1.5), "float"),
    (b"d", struct.pack(">d", 0.1), 0.1, "double"),
    (b"D", b"\x02\x00\x00\x01\x3a", Decimal(2, 314), "decimal"),
    (b"T", b"\xff" * 8, Timestamp(2**64 - 1), "timestamp"),
    (b"S", b"\x00\x00\x00\x02\xc3\xa9", "é", "longstr"),
    (b"x", b"\x00\x00\x00\x02\xc3\xa9", b"\xc3\xa9", "binary"),
    (b"V", b"", None, "void"),
    (b"A", b"\x00\x00\x00\x03Vt\x01", [None, True], "array"),
    (b"F", b"\x00\x00\x00\x03\x01aV", {"a": None}, "table"),
]


def table_of(entries: bytes) -> bytes:
    return len(entries).to_bytes(4, "big") + entries


def nested(depth: int, letter: bytes, key: bytes) -> bytes:
    """A table in which a value of this type stands in another, that many times."""
    entries = b""
    for _ in range(depth):
        entries = key + letter + table_of(entries)
    return table_of(b"\x01a" + entries.removeprefix(key) if key == b"" else entries)


@pytest.mark.parametrize(("letter", "octets", "value", "name"), VALUES)
def test_each_type_is_decoded_to_its_own_python_type(letter: bytes, octets: bytes, value: Any, name: str) -> None:
    data = table_of(b"\x01k" + letter + octets)
    table, end = decode_table(data)
    assert table == {"k": value}
    assert type(table["k"]) is type(value)
    assert end == len(data)


@pytest.mark.parametrize(("letter", "octets", "value", "name"), VALUES)
def test_each_type_is_encoded_with_its_letter(letter: bytes, octets: bytes, value: Any, name: str) -> None:
    assert encode_table({"k": value}) == table_of(b"\x01k" + letter + octets)


@pytest.mark.parametrize(("letter", "octets", "value", "name"), VALUES)
def test_each_type_has_rabbitmqs_name(letter: bytes, octets: bytes, value: Any, name: str) -> None:
    assert fields.type_name(value) == name


def test_the_letter_capital_l_is_a_signed_long() -> None:
    table, _ = decode_table(table_of(b"\x01kL" + b"\xff" * 8))
    assert table == {"k": -1}
    assert encode_table(table) == table_of(b"\x01kl" + b"\xff" * 8)


def test_any_octet_but_zero_is_true() -> None:
    assert decode_table(table_of(b"\x01kt\x02"))[0] == {"k": True}


def test_a_plain_int_beyond_32_bits_becomes_a_long() -> None:
    assert encode_table({"k": 2**31 - 1}) == table_of(b"\x01kI\x7f\xff\xff\xff")
    assert encode_table({"k": 2**31}) == table_of(b"\x01kl" + (2**31).to_bytes(8, "big"))
    assert encode_table({"k": -(2**31) - 1}) == table_of(b"\x01kl" + (-(2**31) - 1).to_bytes(8, "big", signed=True))


def test_an_empty_table_is_its_length() -> None:
    assert encode_table({}) == b"\0\0\0\0"
    assert decode_table(b"\0\0\0\0") == ({}, 4)


def test_a_table_is_decoded_where_it_starts_and_up_to_its_end() -> None:
    assert decode_table(b"before" + table_of(b"\x01kV") + b"behind", 6) == ({"k": None}, 13)


def test_the_order_of_the_entries_is_kept() -> None:
    table = {"z": 1, "a": 2, "m": 3}
    assert list(decode_table(encode_table(table))[0]) == ["z", "a", "m"]


def test_of_a_key_that_occurs_twice_the_first_value_counts() -> None:
    assert decode_table(table_of(b"\x01kt\x01" + b"\x01kt\x00"))[0] == {"k": True}


def test_octets_that_are_not_utf_8_survive_in_keys_and_strings() -> None:
    data = table_of(b"\x02\xff\xfeS\x00\x00\x00\x02\xfd\xfc")
    assert encode_table(decode_table(data)[0]) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\x01",
        b"\xff\xff\xff\xff",
        table_of(b"\x05k"),
        table_of(b"\x01k"),
        table_of(b"\x01kI\0\0\0"),
        table_of(b"\x01kS\0\0\0\x05abc"),
        table_of(b"\x01kS\0\0"),
        table_of(b"\x01kx\0\0\0\x05abc"),
        table_of(b"\x01kD\0\0\0\0"),
        table_of(b"\x01kF\0\0\0\x05"),
        table_of(b"\x01kA\0\0\0\x05"),
    ],
)
def test_a_truncated_table_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedTable):
        decode_table(data)


def test_a_value_that_reaches_beyond_its_table_is_malformed() -> None:
    with pytest.raises(MalformedTable, match="entries do not fill"):
        decode_table(b"\0\0\0\x05\x01kI\0\0\0\x01 and octets of others")


def test_a_value_that_reaches_beyond_its_array_is_malformed() -> None:
    with pytest.raises(MalformedTable, match="values do not fill"):
        decode_table(table_of(b"\x01kA\0\0\0\x02I\0\0\0\x01"))


@pytest.mark.parametrize("letter", [b"Z", b"\0", b"a"])
def test_a_letter_without_a_type_is_malformed(letter: bytes) -> None:
    with pytest.raises(MalformedTable, match="unknown field type"):
        decode_table(table_of(b"\x01k" + letter + b"\0" * 8))


@pytest.mark.parametrize(("letter", "key"), [(b"F", b"\x01a"), (b"A", b"")])
@pytest.mark.parametrize("depth", [64, 65, 1000, 10_000])
def test_nesting_beyond_pythons_stack_is_decoded_and_encoded(letter: bytes, key: bytes, depth: int) -> None:
    deep = nested(depth, letter, key)
    assert encode_table(decode_table(deep)[0]) == deep


@pytest.mark.parametrize(("letter", "key"), [(b"F", b"\x01a"), (b"A", b"")])
def test_a_deep_table_that_is_cut_is_malformed(letter: bytes, key: bytes) -> None:
    deep = nested(10_000, letter, key)
    for end in (len(deep) - 1, len(deep) // 2, 5):
        with pytest.raises(MalformedTable):
            decode_table(deep[:end])


def test_a_block_that_reaches_beyond_the_one_around_it_is_malformed() -> None:
    inner = b"\x01kF" + table_of(b"\x01aV")
    with pytest.raises(MalformedTable, match="entries do not fill"):
        decode_table((len(inner) - 1).to_bytes(4, "big") + inner)


def test_of_a_key_that_occurs_twice_the_first_block_counts() -> None:
    first, second = b"\x01kF" + table_of(b"\x01aV"), b"\x01kA" + table_of(b"V")
    decoded, _ = decode_table(table_of(first + second))
    assert decoded == {"k": {"a": None}}
    assert isinstance(decoded, fields.RepeatedKeys)
    assert decoded.last == {"k": [None]}
    assert decode_table(table_of(b"\x01iF" + table_of(first + second)))[0] == {"i": {"k": {"a": None}}}


def test_a_deep_value_is_shown_as_erlang_prints_it() -> None:
    deep, _ = decode_table(nested(10_000, b"F", b"\x01a"))
    assert fields.erlang_term(deep) == '[{<<"a">>,table,' * 10_000 + "[]" + "}]" * 10_000
    assert fields.json_term(deep) == '#{<<"a">> => ' * 10_000 + "#{}" + "}" * 10_000


@pytest.mark.parametrize("value", [Byte(1), UnsignedByte(1), Short(1), UnsignedShort(1), 1, UnsignedInt(1), Long(1)])
def test_the_integer_types_are_integers(value: Any) -> None:
    assert fields.is_integer(value)


@pytest.mark.parametrize("value", [True, Timestamp(1), 1.0, Float32(1), "1", None, Decimal(0, 1)])
def test_nothing_else_is_an_integer(value: Any) -> None:
    assert not fields.is_integer(value)


@pytest.mark.parametrize(
    ("value", "term"),
    [
        ("text", '<<"text">>'),
        (b"text", '<<"text">>'),
        ('say "a\\b"', r'<<"say \"a\\b\"">>'),
        ("two\nlines\t", r'<<"two\nlines\t">>'),
        ("é", "<<195,169>>"),
        (b"\x00ab", "<<0,97,98>>"),
        ("", "<<>>"),
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        (None, "undefined"),
        (Decimal(1, 50), "{1,50}"),
        ([1, "a", None], '[{signedint,1},{longstr,<<"a">>},{void,undefined}]'),
        ({"a": Byte(1), "b": {}}, '[{<<"a">>,byte,1},{<<"b">>,table,[]}]'),
    ],
)
def test_values_are_shown_as_erlang_prints_them(value: Any, term: str) -> None:
    assert fields.erlang_term(value) == term


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ("x", '<<"x">>'),
        ([1, "x"], '[1,<<"x">>]'),
        ({"a": 1}, '#{<<"a">> => 1}'),
    ],
)
def test_values_of_json_are_shown_as_erlang_prints_them(value: Any, term: str) -> None:
    assert fields.json_term(value) == term


@pytest.mark.parametrize("values", [[], ["text"], [{"a": 1, "b": [Long(2), {}]}, {}], [Timestamp(1), None, [[1]]]])
@pytest.mark.parametrize("first", [{"queue": "q", "count": Long(1)}, "text", []])
def test_a_list_that_knows_its_encoding_is_encoded_as_any_other(values: list[Any], first: Any) -> None:
    known = fields.EncodedList.of(values)
    assert known == values
    assert fields.encode_table({"a": 1, "b": known, "c": ""}) == fields.encode_table({"a": 1, "b": values, "c": ""})
    longer = [first, *values]
    assert known.after(first) == longer
    assert fields.encode_table({"a": [known.after(first)]}) == fields.encode_table({"a": [longer]})


def test_a_table_is_finite_unless_a_number_anywhere_in_it_is_not() -> None:
    assert fields.is_finite({"a": 1e308, "b": [{"c": -0.0}, "inf", 2**63], "d": None})
    for value in (math.nan, Float32(math.inf)):
        assert not fields.is_finite({"a": value})
        assert not fields.is_finite({"a": [1, {"b": [value]}]})
        assert not fields.is_finite(fields.RepeatedKeys({"a": 1}, {"a": value}))
