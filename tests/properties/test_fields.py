"""Field tables against pamqp's, against themselves, and against anything that might arrive."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pamqp import decode, encode

from amqp_broker.amqp.fields import Decimal, MalformedTable, decode_table, encode_table
from tests.properties.generators import KEYS, PAMQP_TABLES, TABLES, VALUES, damaged, examples, shape, to_pamqp


def raw_value(letter: str, size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size).map(letter.encode().__add__)


def sized(letter: bytes, content: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return content.map(lambda data: letter + len(data).to_bytes(4, "big") + data)


@st.composite
def raw_entries(draw: st.DrawFn, values: st.SearchStrategy[bytes]) -> bytes:
    """Entries of a table with keys of any octets, each once."""
    keys = draw(st.lists(st.binary(max_size=10), unique=True, max_size=4))
    return b"".join(bytes([len(key)]) + key + draw(values) for key in keys)


# Octets of values that have one spelling only: not L (it is l), not a bool of 2, not a float that is no number.
RAW_VALUES = st.recursive(
    st.one_of(
        raw_value("b", 1),
        raw_value("B", 1),
        raw_value("s", 2),
        raw_value("u", 2),
        raw_value("I", 4),
        raw_value("i", 4),
        raw_value("l", 8),
        raw_value("T", 8),
        raw_value("D", 5),
        st.sampled_from([b"V", b"t\0", b"t\1", b"f\x3f\x80\0\0", b"d\x3f\xf0" + bytes(6)]),
        sized(b"S", st.binary(max_size=20)),
        sized(b"x", st.binary(max_size=20)),
    ),
    lambda inner: sized(b"A", st.lists(inner, max_size=4).map(b"".join)) | sized(b"F", raw_entries(inner)),
    max_leaves=8,
)
RAW_TABLES = sized(b"", raw_entries(RAW_VALUES))


@given(TABLES)
def test_an_encoded_table_is_decoded_with_its_types(table: dict[str, Any]) -> None:
    data = encode_table(table)
    decoded, end = decode_table(data)
    assert shape(decoded) == shape(table)
    assert end == len(data)


@given(TABLES, st.lists(st.sampled_from(["a", "", None]), min_size=1, max_size=10))
def test_a_table_deeper_than_pythons_stack_is_decoded_and_encoded(
    table: dict[str, Any], blocks: list[str | None]
) -> None:
    path = blocks * (sys.getrecursionlimit() // len(blocks) + 1)
    data = b"F" + encode_table(table)
    for key in path:
        # In an array, or in a table under this key.
        content = data + b"V" if key is None else bytes([len(key)]) + key.encode() + data
        data = (b"A" if key is None else b"F") + len(content).to_bytes(4, "big") + content
    content = b"\x04deep" + data
    data = len(content).to_bytes(4, "big") + content
    decoded, end = decode_table(data)
    assert end == len(data)
    assert encode_table(decoded) == data
    value: Any = decoded["deep"]
    for key in reversed(path):
        value = value[0 if key is None else key]
    assert shape(value) == shape(table)


@given(RAW_TABLES)
def test_a_decoded_table_is_encoded_to_the_same_bytes(data: bytes) -> None:
    assert encode_table(decode_table(data)[0]) == data


@given(PAMQP_TABLES)
def test_tables_are_encoded_as_pamqp_encodes_them(table: dict[str, Any]) -> None:
    assert encode_table(table) == encode.field_table(to_pamqp(table))


def without_decimals(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return all(map(without_decimals, value if isinstance(value, list) else value.values()))
    return not isinstance(value, Decimal)


# pamqp divides decimals, and so rounds them.
@given(PAMQP_TABLES.filter(without_decimals))
def test_pamqp_decodes_what_we_encode(table: dict[str, Any]) -> None:
    assert decode.field_table(encode_table(table))[1] == to_pamqp(table)


@given(st.binary(max_size=8), TABLES, st.binary(max_size=8))
def test_a_table_is_read_at_its_place_and_no_further(before: bytes, table: dict[str, Any], behind: bytes) -> None:
    data = encode_table(table)
    decoded, end = decode_table(before + data + behind, len(before))
    assert shape(decoded) == shape(table)
    assert end == len(before) + len(data)


@given(TABLES, st.data())
def test_a_table_that_was_cut_is_malformed(table: dict[str, Any], data: st.DataObject) -> None:
    whole = encode_table(table)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        decode_table(cut)
    except MalformedTable:
        return
    raise AssertionError("decoded what was not there")


@given(KEYS, VALUES, VALUES)
def test_of_equal_keys_the_first_counts(key: str, first: Any, second: Any) -> None:
    entries = encode_table({key: first})[4:] + encode_table({key: second})[4:]
    decoded, _ = decode_table(len(entries).to_bytes(4, "big") + entries)
    assert shape(decoded) == shape({key: first})


@settings(max_examples=examples(4))
@given(st.one_of(st.binary(max_size=60), damaged(RAW_TABLES), damaged(TABLES.map(encode_table))))
@example(b"\0\0\0\5\xffS\0\0\0")
@example(b"\0\0\0\1\0")
@example((b"\0\0\xff\xff" + b"\1aF") * 1000)
@example(b"\0\1\0\0\1a" + b"A\0\0\xff\xff" * 20_000)
def test_any_octets_are_a_table_or_malformed(data: bytes) -> None:
    try:
        table, end = decode_table(data)
    except MalformedTable:
        return
    assert 4 <= end <= len(data)
    # A table that was decoded once can be decoded again.
    assert shape(decode_table(encode_table(table))[0]) == shape(table)
