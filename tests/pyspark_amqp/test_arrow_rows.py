from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pika
import pika.frame
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_amqp.arrow_rows import (
    BATCH_BYTES_MAX,
    BATCH_ROWS_MAX,
    COLUMNS,
    TEXT_HEADERS,
    Rows,
    check_schema,
    default_schema,
    stream_offset,
)
from pyspark_amqp.content_header import NESTING_MAX
from pyspark_amqp.delivery_run import Run
from pyspark_amqp.errors import OptionError
from pyspark_amqp.typed_headers import KIND as TYPED_HEADERS

SCHEMA = (
    StructType()
    .add("offset", LongType())
    .add("body", BinaryType())
    .add("queue", StringType())
    .add("message_id", StringType())
    .add("timestamp", TimestampType())
    .add("headers", MapType(StringType(), StringType()))
    .add("error", StringType())
)

EVERYTHING = (
    StructType([*SCHEMA.fields])
    .add("routing_key", StringType())
    .add("redelivered", BooleanType())
    .add("delivery_count", IntegerType())
    .add("content_type", StringType())
)


def delivery(body: bytes = b"body", **properties: object) -> Run:
    header = pika.frame.Header(1, len(body), pika.BasicProperties(**properties)).marshal()[7:-1]
    return Run(1, False, b"exchange", b"key", header, [body])


def row(message: Run, schema: StructType = SCHEMA, offset: int | None = None) -> dict[str, object]:
    rows = Rows(schema, "q")
    rows.add(message, offset)
    found: list[dict[str, object]] = rows.take().to_pylist()
    (only,) = found
    return only


def test_a_row_has_the_requested_columns() -> None:
    found = row(delivery(message_id="id", timestamp=1_700_000_000, headers={"a": "b", "n": 1}), offset=7)
    assert list(found) == SCHEMA.fieldNames()
    assert (found["offset"], found["body"], found["queue"], found["message_id"]) == (7, b"body", "q", "id")
    assert str(found["timestamp"]) == "2023-11-14 22:13:20+00:00"
    assert (found["headers"], found["error"]) == ([("a", "b"), ("n", "1")], None)


PROPERTIES = st.sampled_from(
    [
        {},
        {"headers": {"x-stream-offset": pika.compat.long(1)}},
        {"headers": {"x-stream-offset": pika.compat.long(2)}},
        {"headers": {"x-stream-offset": pika.compat.long(3), "a": "b"}},
        {"headers": {"a": "b"}, "message_id": "id"},
        {"content_type": "text/plain", "headers": {"x-stream-offset": pika.compat.long(4)}, "message_id": "id"},
        {"timestamp": 1_700_000_000},
    ]
)


@given(st.lists(st.tuples(PROPERTIES, st.lists(st.sampled_from([b"a", b"bc"]), min_size=1, max_size=3), st.booleans())))
def test_a_row_is_the_same_alone_and_among_others(runs: list[tuple[dict[str, Any], list[bytes], bool]]) -> None:
    rows = Rows(EVERYTHING, "q")
    alone = []
    for properties, bodies, redelivered in runs:
        run = replace(delivery(**properties), bodies=bodies, redelivered=redelivered, routing_key=bodies[0])
        alone += [row(replace(run, bodies=[body]), EVERYTHING, rows.count + at) for at, body in enumerate(bodies)]
        rows.add(run, rows.count)
    assert rows.count == len(alone)
    assert rows.take().to_pylist() == alone
    assert (rows.count, rows.size) == (0, 0)


def test_a_row_among_alike_ones_keeps_its_routing_key() -> None:
    # As after a parse of alike deliveries: the first and the last share a header, the second has an equal one.
    alike = delivery()
    rows = Rows(EVERYTHING, "q")
    for run in (alike, replace(delivery(), routing_key=b"other"), alike):
        rows.add(run)
    assert [found["routing_key"] for found in rows.take().to_pylist()] == ["key", "other", "key"]


def test_missing_properties_are_null() -> None:
    found = row(delivery())
    assert [found[name] for name in ("offset", "message_id", "timestamp", "headers", "error")] == [None] * 5


def test_the_columns_are_those_of_the_default_schema() -> None:
    for headers in (TEXT_HEADERS, TYPED_HEADERS):
        schema = default_schema(True, headers).replace("timestamp_ltz", "timestamp")
        columns = dict(text.split(" ", 1) for text in schema.split(", "))
        assert columns.keys() == COLUMNS.keys()
        assert all(kind in COLUMNS[name] for name, kind in columns.items())
    assert "message_id" not in default_schema(False, None)
    assert default_schema(False, None).endswith("error string")


def test_an_unknown_column_or_another_type_is_refused() -> None:
    with pytest.raises(OptionError, match="no column 'bodi'"):
        check_schema(StructType().add("bodi", BinaryType()))
    with pytest.raises(OptionError, match="column 'body' is binary, not string"):
        check_schema(StructType().add("body", StringType()))
    check_schema(SCHEMA)


TYPED = StructType().add("type", StringType()).add("value", StringType())


def test_headers_keep_their_types_if_the_column_has_types() -> None:
    schema = StructType().add("headers", MapType(StringType(), TYPED)).add("delivery_count", IntegerType())
    check_schema(schema)
    found = row(delivery(headers={"x-delay": 5000, "a": "b", "x-delivery-count": 2}), schema)
    assert found["headers"] == [
        ("x-delay", {"type": "int", "value": "5000"}),
        ("a", {"type": "string", "value": "b"}),
        ("x-delivery-count", {"type": "int", "value": "2"}),
    ]
    assert found["delivery_count"] == 2


@pytest.mark.parametrize("headers", [None, {}, {"x-stream-offset": pika.compat.long(12)}])
@pytest.mark.parametrize("value", [StringType(), TYPED])
def test_no_headers_are_null(headers: dict[str, object] | None, value: StringType | StructType) -> None:
    schema = StructType().add("headers", MapType(StringType(), value))
    assert row(delivery(headers=headers), schema) == {"headers": None}


def test_a_publishers_value_that_is_no_count_leaves_the_count_null() -> None:
    schema = StructType().add("delivery_count", IntegerType())
    for value in (True, -1, "2"):
        assert row(delivery(headers={"x-delivery-count": value}), schema) == {"delivery_count": None}


def test_a_timestamp_may_be_in_milliseconds() -> None:
    schema = StructType().add("timestamp", TimestampType()).add("error", StringType())
    rows = Rows(schema, "q", allows_ms=True)
    for timestamp in (1_700_000_000, 1_700_000_000_123, 1_700_000_000_123_456):
        rows.add(delivery(timestamp=timestamp))
    found = rows.take().to_pylist()
    assert [str(row["timestamp"]) for row in found] == [
        "2023-11-14 22:13:20+00:00",
        "2023-11-14 22:13:20.123000+00:00",
        "None",
    ]
    assert [row["error"] is None for row in found] == [True, True, False]


def test_a_publishers_header_of_that_name_is_omitted() -> None:
    assert row(delivery(headers={"x-stream-offset": "first", "a": "b"}))["headers"] == [("a", "b")]


def test_the_offset_of_a_stream_is_not_among_the_headers() -> None:
    message = delivery(headers={"x-stream-offset": pika.compat.long(12), "a": "b"})
    assert stream_offset(message.header) == 12
    assert row(message)["headers"] == [("a", "b")]


@pytest.mark.parametrize("properties", [{}, {"content_type": "x"}, {"content_encoding": "y", "message_id": "z"}])
@pytest.mark.parametrize("before", [{}, {"a": "x"}, {"a": "\x0fx-stream-offsetl"}])
def test_the_offset_is_found_at_any_position(before: dict[str, str], properties: dict[str, Any]) -> None:
    message = delivery(headers={**before, "x-stream-offset": pika.compat.long(1 << 40)}, **properties)
    assert stream_offset(message.header) == 1 << 40


def test_an_offset_in_another_header_is_ignored() -> None:
    assert stream_offset(delivery(headers={"a": "\x0fx-stream-offsetl12345678"}).header) is None
    assert stream_offset(delivery().header) is None


def test_unreadable_headers_keep_the_body_and_give_a_reason() -> None:
    broken = struct.pack(">I", 9) + b"\x05abcde?\x00\x00"
    header = struct.pack(">HHQH", 60, 0, 4, 1 << 13) + broken
    found = row(Run(1, False, b"", b"k", header, [b"body"]))
    assert found["body"] == b"body"
    assert found["headers"] is None
    assert str(found["error"]).startswith("headers: ")


def test_header_octets_that_are_not_utf_8_are_shown_and_reported() -> None:
    message = delivery(headers={"h": "abc"})
    found = row(replace(message, header=message.header.replace(b"abc", b"a\xffc")))
    assert (found["headers"], found["error"]) == ([("h", "a\\xffc")], "header h is not UTF-8")


def test_a_binary_header_is_no_error() -> None:
    found = row(delivery(headers={"ä": b"\xff\x00", "text": b"abc", "in": {"octets": b"\xff"}}))
    assert found["headers"] == [("ä", "\\xff\x00"), ("text", "abc"), ("in", '{"octets": "\\\\xff"}')]
    assert found["error"] is None


def test_a_header_with_too_many_levels_is_named_and_the_others_stay() -> None:
    deep: object = 1
    for _ in range(NESTING_MAX + 2):
        deep = [deep]
    found = row(delivery(headers={"a": "b", "deep": deep, "c": "d"}))
    headers = found["headers"]
    assert isinstance(headers, list)
    assert [name for name, _ in headers] == ["a", "deep", "c"]
    assert (headers[0], headers[2]) == (("a", "b"), ("c", "d"))
    assert found["error"] == "header deep has more than 100 levels of tables"


def test_a_column_without_a_time_zone_has_the_time_in_utc() -> None:
    schema = StructType().add("timestamp", TimestampNTZType())
    check_schema(schema)
    assert str(row(delivery(timestamp=1_700_000_000), schema)["timestamp"]) == "2023-11-14 22:13:20"


def test_a_routing_key_that_is_not_utf_8_is_shown_and_reported() -> None:
    schema = StructType().add("routing_key", StringType()).add("error", StringType())
    found = row(replace(delivery(), routing_key=b"a\xff"), schema)
    assert found == {"routing_key": "a\\xff", "error": "the exchange or the routing key is not UTF-8"}


def test_a_batch_is_limited_by_rows_and_octets() -> None:
    rows = Rows(SCHEMA, "q")
    for _ in range(BATCH_ROWS_MAX - 1):
        rows.add(delivery())
    assert not rows.is_full
    rows.add(delivery())
    assert rows.is_full
    assert rows.take().num_rows == BATCH_ROWS_MAX
    assert not rows.is_full
    rows.add(delivery(b"x" * BATCH_BYTES_MAX))
    assert rows.is_full


def test_without_rows_the_batch_is_empty_with_the_same_schema() -> None:
    batch = Rows(SCHEMA, "q").take()
    assert (batch.num_rows, batch.schema.field("timestamp").type) == (0, pa.timestamp("us", tz="UTC"))
