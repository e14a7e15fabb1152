from __future__ import annotations

import json
import struct
from base64 import b64encode
from datetime import UTC, datetime
from decimal import Decimal

import pika.data
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_amqp.content_header import Malformed, decode_table
from pyspark_amqp.typed_headers import FIXED, NESTING_MAX, InvalidHeader, read_table, write_table


def table(*entries: tuple[bytes, bytes]) -> bytes:
    """Return a field table of names and encoded values."""
    octets = b"".join(bytes((len(name),)) + name + value for name, value in entries)
    return struct.pack(">I", len(octets)) + octets


# An encoded value of each type, with its text.
NUMBERS = {
    "boolean": (b"t\x01", "true"),
    "tinyint": (b"b\xff", "-1"),
    "unsigned tinyint": (b"B\xff", "255"),
    "smallint": (b"s\xff\xfe", "-2"),
    "unsigned smallint": (b"u\xff\xfe", "65534"),
    "int": (b"I\xff\xff\xff\xff", "-1"),
    "unsigned int": (b"i\xff\xff\xff\xff", "4294967295"),
    "bigint": (b"l" + struct.pack(">q", -(1 << 62)), str(-(1 << 62))),
    "float": (b"f" + struct.pack(">f", 0.1), repr(struct.unpack(">f", struct.pack(">f", 0.1))[0])),
    "double": (b"d" + struct.pack(">d", 0.1), "0.1"),
    "timestamp": (b"T" + struct.pack(">Q", 1 << 60), str(1 << 60)),
    "decimal": (b"D\x02" + struct.pack(">i", -125), "-1.25"),
    "void": (b"V", None),
    "string": (b"S\x00\x00\x00\x02\xc3\xa4", "ä"),
    "binary": (b"x\x00\x00\x00\x02\xff\x00", "/wA="),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_each_type_is_read_and_written_back(kind: str) -> None:
    octets, text = NUMBERS[kind]
    encoded = table((b"h", octets))
    assert read_table(encoded) == ({"h": {"type": kind, "value": text}}, None)
    assert write_table({"h": {"type": kind, "value": text}}) == encoded


def test_all_types_of_fixed_size_are_tried_above() -> None:
    assert FIXED.keys() <= NUMBERS.keys()


def test_nested_values_keep_their_types() -> None:
    inner = table((b"count", b"l" + struct.pack(">q", 3)), (b"reason", b"S\x00\x00\x00\x07expired"))
    array = b"F" + inner + b"t\x00"
    encoded = table((b"x-death", b"A" + struct.pack(">I", len(array)) + array))
    headers, problem = read_table(encoded)
    assert problem is None
    assert headers["x-death"]["type"] == "array"
    first, second = json.loads(headers["x-death"]["value"])
    assert json.loads(first["value"])["count"] == {"type": "bigint", "value": "3"}
    assert second == {"type": "boolean", "value": "false"}
    assert write_table(headers) == encoded


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.text()
    | st.binary()
    | st.decimals(-10, 10, places=3)
    | st.datetimes(datetime(1970, 1, 2), datetime(9999, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=4))
def test_tables_of_pika_are_written_back_unchanged(headers: dict[str, object]) -> None:
    parts: list[bytes] = []
    pika.data.encode_table(parts, headers)
    encoded = b"".join(parts)
    assert write_table(read_table(encoded)[0]) == encoded


@given(st.binary(max_size=60))
def test_any_octets_are_a_table_or_malformed(octets: bytes) -> None:
    encoded = struct.pack(">I", len(octets)) + octets
    try:
        headers, _ = read_table(encoded)
    except Malformed:
        return
    # The names that are not UTF-8 became longer, and two that were equal became one.
    assert headers.keys() == decode_table(encoded)[0].keys()


def test_octets_that_are_not_utf_8_are_shown_and_reported() -> None:
    headers, problem = read_table(table((b"h", b"S\x00\x00\x00\x01\xff")))
    assert (headers["h"]["value"], problem) == ("\\xff", "header h is not UTF-8")


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("int", "x", "header h: 'x' is no int"),
        ("int", str(1 << 31), f"header h: '{1 << 31}' is no int"),
        ("boolean", "1", "header h: '1' is no boolean"),
        ("decimal", "NaN", "header h: 'NaN' is no decimal"),
        ("decimal", "12345678901", "header h: '12345678901' is no decimal"),
        # Its digits would take hours.
        ("decimal", "1E+99999999999", "header h: '1E.*' is no decimal"),
        ("decimal", "one", "header h: 'one' is no decimal"),
        ("float", "1e99", "header h: '1e99' is no float"),
        ("binary", "?", r"header h: '\?' is no binary"),
        ("encoded", "", "header h: '' is no encoded value"),
        ("encoded", "dAE=dAE=", "header h: 'dAE=dAE=' is no encoded value"),
        ("encoded", b64encode(b"t\x01t\x01").decode(), "header h: .* is no encoded value"),
        ("encoded", b64encode(b"A\x00\x00\x00\x01t\x01").decode(), "header h: .* is no encoded value"),
        ("encoded", b64encode(b"?").decode(), "header h: .* is no encoded value"),
        ("table", "[]", r"header h: '\[\]' is no table"),
        ("table", "{", "header h: '{' is no table"),
        ("array", "[" * 100_000, "header h: .* is no array"),
        ("table", '{"a": 1}', "header h: a table or an array has JSON of values with 'type' and 'value'"),
        ("array", '[{"type": "int", "value": "x"}]', "header h: 'x' is no int"),
        ("long", "1", "header h: there is no type 'long'; there are string, boolean, tinyint"),
        (None, "1", "header h: there is no type 'None'"),
    ],
)
def test_an_invalid_value_is_named(kind: str, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        write_table({"h": {"type": kind, "value": text}})


def nested(levels: int, kind: bytes) -> bytes:
    """Return a text inside this number of arrays or tables."""
    value = NUMBERS["string"][0]
    for _ in range(levels):
        value = (b"\x01k" if kind == b"F" else b"") + value
        value = kind + struct.pack(">I", len(value)) + value
    return value


@pytest.mark.parametrize("kind", [b"A", b"F"])
@pytest.mark.parametrize("levels", [NESTING_MAX, NESTING_MAX + 1, 14, 5000])
def test_deep_values_stay_encoded_because_their_text_would_double_with_each_level(levels: int, kind: bytes) -> None:
    encoded = table((b"h", nested(levels, kind)), (b"other", b"t\x01"))
    headers, problem = read_table(encoded)
    assert problem is None
    assert ("encoded" in headers["h"]["value"]) is (levels > NESTING_MAX)
    assert headers["other"] == {"type": "boolean", "value": "true"}
    assert write_table(headers) == encoded


@given(VALUES)
def test_a_value_in_the_encoding_of_amqp_is_written_as_it_is(value: object) -> None:
    parts: list[bytes] = []
    pika.data.encode_value(parts, value)
    octets = b"".join(parts)
    headers = {"h": {"type": "encoded", "value": b64encode(octets).decode()}}
    assert write_table(headers) == table((b"h", octets))


@given(st.binary(max_size=40))
def test_octets_are_written_as_they_are_only_if_they_are_a_value(octets: bytes) -> None:
    headers = {"h": {"type": "encoded", "value": b64encode(octets).decode()}}
    try:
        written = write_table(headers)
    except InvalidHeader:
        return
    assert decode_table(written)[1] == len(written)


@pytest.mark.parametrize("kind", ["boolean", "int", "decimal", "string", "binary", "table"])
def test_a_nested_value_that_is_no_text_is_named(kind: str) -> None:
    inner = json.dumps([{"type": kind, "value": []}])
    with pytest.raises(ValueError, match=r"header h: the value of a .* is a text, not"):
        write_table({"h": {"type": "array", "value": inner}})


def test_null_is_the_type_without_a_value() -> None:
    assert write_table({"h": None}) == write_table({"h": {"type": "int", "value": None}}) == table((b"h", b"V"))


def test_a_whole_number_may_have_an_exponent() -> None:
    assert write_table({"h": {"type": "decimal", "value": str(Decimal("1E+3"))}}) == table(
        (b"h", b"D\x00" + struct.pack(">i", 1000))
    )
    assert write_table({"h": {"type": "decimal", "value": "0E+99999999999"}}) == table((b"h", b"D" + bytes(5)))
