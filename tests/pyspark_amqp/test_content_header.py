from __future__ import annotations

import datetime
import json
import struct
from decimal import Decimal
from typing import Any

import pika
import pika.data
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_amqp.content_header import (
    NAMES,
    TIMESTAMP_S_MAX,
    Malformed,
    Nested,
    as_text,
    decode,
    decode_table,
    encode,
    encode_texts,
)

TEXT = st.text(max_size=60).filter(lambda text: len(text.encode()) < 256)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        **{name: TEXT for name in NAMES if name not in ("headers", "delivery_mode", "priority", "timestamp")},
        "delivery_mode": st.integers(1, 2),
        "priority": st.integers(0, 255),
        "timestamp": st.integers(0, TIMESTAMP_S_MAX),
        "headers": st.dictionaries(TEXT, st.none() | st.text(), max_size=4),
    },
)


def frame(properties: pika.BasicProperties) -> bytes:
    """Return pika's payload of a content header."""
    marshalled: bytes = pika.frame.Header(1, 5, properties).marshal()
    return marshalled[7:-1]


@given(PROPERTIES)
def test_properties_are_written_as_pika_writes_them(values: dict[str, Any]) -> None:
    encoded = {**values, "headers": encode_texts(values["headers"])} if "headers" in values else values
    assert encode(encoded, 5) == frame(pika.BasicProperties(**values))


@given(PROPERTIES)
def test_properties_are_read_as_pika_wrote_them(values: dict[str, Any]) -> None:
    decoded, problem = decode(frame(pika.BasicProperties(**values)))
    found = dict(zip(NAMES, decoded, strict=True))
    if found["headers"] is not None:
        found["headers"] = decode_table(found["headers"])[0]
    if found["timestamp"] is not None:
        found["timestamp"] //= 1000
    assert {name: value for name, value in found.items() if value is not None} == values
    assert problem is None


def test_tables_are_read_as_pika_wrote_them() -> None:
    moment = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    table = {"s": "ä", "x": b"\xff", "t": True, "i": 7, "l": 1 << 40, "d": Decimal("1.25"), "n": None}
    table |= {"F": {"in": {"deeper": [1, "b", {"x": 1}]}}, "T": moment}
    parts: list[bytes] = []
    pika.data.encode_table(parts, table)
    assert decode_table(b"".join(parts))[0] == {**table, "T": int(moment.timestamp())}


def test_numbers_of_all_kinds_are_read() -> None:
    entries = b"".join(
        bytes((1, name)) + octets
        for name, octets in zip(
            b"abcdefg",
            [
                b"d" + struct.pack(">d", 1.5),
                b"f" + struct.pack(">f", 0.25),
                b"b" + b"\xff",
                b"B" + b"\xff",
                b"s" + b"\xff\xfe",
                b"u" + b"\xff\xfe",
                b"i" + b"\xff\xff\xff\xff",
            ],
            strict=True,
        )
    )
    assert decode_table(struct.pack(">I", len(entries)) + entries)[0] == {
        "a": 1.5,
        "b": 0.25,
        "c": -1,
        "d": 255,
        "e": -2,
        "f": 65534,
        "g": 4294967295,
    }


@given(st.binary(max_size=80))
def test_only_octets_that_are_not_a_table_are_refused(octets: bytes) -> None:
    try:
        decode_table(octets)
    except Malformed:
        pass
    else:
        assert decode_table(octets)[1] <= len(octets)


@given(st.binary(max_size=80))
def test_invalid_properties_are_an_error(octets: bytes) -> None:
    decode(struct.pack(">HHQ", 60, 0, 0) + octets)


@pytest.mark.parametrize("kind", [b"A", b"F"])
def test_an_entry_that_is_nested_too_deep_stays_encoded(kind: bytes) -> None:
    value = b"t\x01"
    for _ in range(5000):
        value = (b"\x01x" if kind == b"F" else b"") + value
        value = kind + struct.pack(">I", len(value)) + value
    entries = b"\x01h" + value + b"\x05othert\x01"
    table, end = decode_table(struct.pack(">I", len(entries)) + entries)
    assert (table, end) == ({"h": value, "other": True}, len(entries) + 4)
    assert isinstance(table["h"], Nested)


def test_truncated_properties_keep_the_values_before() -> None:
    values, problem = decode(frame(pika.BasicProperties(content_type="a", message_id="id", app_id="x"))[:-2])
    assert values[NAMES.index("message_id")] == "id"
    assert problem is not None


def test_invalid_utf_8_is_reported() -> None:
    values, problem = decode(frame(pika.BasicProperties(message_id=b"\xffa")))
    assert (values[NAMES.index("message_id")], problem) == ("\\xffa", "message_id is not UTF-8")


def test_a_timestamp_after_the_year_9999_is_reported() -> None:
    values, problem = decode(frame(pika.BasicProperties(timestamp=1_700_000_000_000_000)))
    assert values[NAMES.index("timestamp")] is None
    assert problem == "timestamp 1700000000000000 is after the year 9999"


def test_values_other_than_strings_are_json() -> None:
    assert as_text("plain") == "plain"
    assert json.loads(as_text({"a": [1, None, True, 1.5]})) == {"a": [1, None, True, 1.5]}
    assert as_text([Decimal("1.50"), b"\xff"]) == '["1.50", "\\\\xff"]'
    assert as_text(7) == "7"
    assert as_text(Decimal("1.50")) == "1.50"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"message_id": "x" * 256}, "message_id has 256 octets; AMQP allows 255"),
        ({"priority": 256}, "priority must be from 0 to 255, not 256"),
        ({"timestamp": -1}, "timestamp is before 1970, which AMQP cannot represent"),
    ],
)
def test_values_outside_amqp_are_refused(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        encode(values, 0)


def test_a_header_with_a_long_name_is_refused() -> None:
    with pytest.raises(ValueError, match="the name of a header has 256 octets; AMQP allows 255"):
        encode_texts({"x" * 256: ""})
