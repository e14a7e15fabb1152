from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Message
from amqp_broker.broker.durability.chunk import (
    Chunk,
    ChunkCache,
    ChunkHead,
    Filter,
    as_delivered,
    filter_value,
    without_nested_headers,
)
from tests.broker_parts import new_message


def head_of(first: int = 0, messages: int = 1, content_bytes: int = 10, **values: Any) -> ChunkHead:
    given: dict[str, Any] = {"timestamp_ms": 0, "filters": frozenset(), "has_unfiltered": True}
    return ChunkHead(first, messages, content_bytes=content_bytes, **{**given, **values})


def with_offset(message: Message, offset: int) -> Message:
    (delivered,) = as_delivered(Chunk(head_of(offset), [message]))
    return delivered


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delivery_mode": 2, "priority": 7, "correlation_id": "c", "message_id": "m", "timestamp": 5, "app_id": "a"},
        {"content_type": "text/plain"},
        {"content_encoding": "gzip", "delivery_mode": 2},
        {"content_type": "text/plain", "content_encoding": "gzip", "headers": {"a": "b"}, "user_id": "guest"},
        {"headers": {}},
        {"headers": {"a": {"b": [1, "two"]}}},
    ],
)
def test_a_message_gets_its_offset_as_the_last_header_and_keeps_all_others(properties: dict[str, Any]) -> None:
    message = new_message(b"body", **properties)
    delivered = with_offset(message, 1 << 40)
    expected = message.properties()
    expected.headers = {**(expected.headers or {}), "x-stream-offset": fields.Long(1 << 40)}
    assert delivered.property_list == expected.encode()
    assert (delivered.body, delivered.address, delivered.channel) == (b"body", message.address, message.channel)
    assert delivered.is_persistent == message.is_persistent
    assert delivered.content_for(5, 4096) == message.with_properties(expected).content_for(5, 4096)


def test_an_offset_from_the_publisher_is_replaced() -> None:
    delivered = with_offset(new_message(headers={"x-stream-offset": "mine", "z": 1}), 3)
    assert delivered.properties().headers == {"x-stream-offset": 3, "z": 1}


def test_messages_get_their_offsets_however_they_begin() -> None:
    messages = [
        new_message(b"one"),
        new_message(b"two"),
        new_message(b"four"),
        new_message(b"one", delivery_mode=2, message_id="1"),
        new_message(b"two", delivery_mode=2, message_id="2"),
        new_message(b"two", delivery_mode=2, message_id="\x0fx-stream-offset"),
        new_message(b"one", headers={"a": 1}, timestamp=1),
        new_message(b"two", headers={"a": 1}, timestamp=2),
        new_message(b"one", headers={"x-stream-offset": "mine"}),
        new_message(b"two", headers={"a": 1}, timestamp=3),
        new_message(b"one", content_type="text/plain", content_encoding="utf-8"),
        new_message(b"two", content_type="text/plain", content_encoding="utf-8"),
        new_message(b"two", content_type="text/html?", content_encoding="utf-8"),
    ]
    found = as_delivered(Chunk(head_of(5, len(messages)), messages))
    for offset, (message, delivered) in enumerate(zip(messages, found, strict=True), 5):
        expected = message.properties()
        expected.headers = {**(expected.headers or {}), "x-stream-offset": fields.Long(offset)}
        assert delivered.content == message.with_properties(expected).content


def test_a_large_body_stays_in_its_frames() -> None:
    message = new_message(b"x" * 300_000)
    assert with_offset(message, 0).body_pieces() == message.body_pieces()


def test_messages_of_a_chunk_have_consecutive_offsets() -> None:
    chunk = Chunk(head_of(7, 3), [new_message(), new_message(), new_message()])
    assert [offset_of(message) for message in as_delivered(chunk)] == [7, 8, 9]
    assert [offset_of(message) for message in as_delivered(chunk, 2)] == [9]


def offset_of(message: Message) -> int:
    headers = message.properties().headers
    assert headers is not None
    return int(headers["x-stream-offset"])


@pytest.mark.parametrize(
    ("headers", "value"),
    [(None, None), ({}, None), ({"x-stream-filter-value": "a"}, "a"), ({"x-stream-filter-value": 1}, None)],
)
def test_a_filter_value_is_a_string(headers: dict[str, Any] | None, value: str | None) -> None:
    assert filter_value(new_message(headers=headers)) == value


def test_a_filter_value_elsewhere_in_the_properties_does_not_count() -> None:
    assert filter_value(new_message(headers={"a": 1}, message_id="x-stream-filter-value")) is None


def test_a_filter_matches_its_values_and_optionally_messages_without_one() -> None:
    a, b = (new_message(headers={"x-stream-filter-value": value}) for value in "ab")
    plain = new_message()
    assert [Filter({"a"}, False).matches(message) for message in (a, b, plain)] == [True, False, False]
    assert [Filter({"a"}, True).matches(message) for message in (a, b, plain)] == [True, False, True]


@pytest.mark.parametrize(
    ("filters", "has_unfiltered", "expected", "expected_with_unfiltered"),
    [
        (frozenset("ab"), False, True, True),
        (frozenset("b"), False, False, False),
        (frozenset("b"), True, False, True),
        (None, False, True, True),
    ],
)
def test_a_chunk_is_skipped_if_none_of_its_messages_can_match(
    filters: frozenset[str] | None, has_unfiltered: bool, expected: bool, expected_with_unfiltered: bool
) -> None:
    head = head_of(filters=filters, has_unfiltered=has_unfiltered)
    assert Filter({"a"}, False).may_match(head) == expected
    assert Filter({"a"}, True).may_match(head) == expected_with_unfiltered


def test_the_cache_drops_the_least_recently_read_chunk() -> None:
    cache = ChunkCache(bytes_max=700)
    chunks = [[new_message()], [new_message()], [new_message()]]
    cache.put(1, head_of(0), chunks[0])
    cache.put(1, head_of(1), chunks[1])
    assert cache.get(1, 0) is chunks[0]
    cache.put(2, head_of(1), chunks[2])
    assert (cache.get(1, 0), cache.get(1, 1), cache.get(2, 1)) == (chunks[0], None, chunks[2])
    assert cache.bytes <= 700


def test_the_cache_keeps_no_chunk_of_a_deleted_stream() -> None:
    cache, kept = ChunkCache(), [new_message()]
    cache.put(1, head_of(0), [new_message()])
    cache.put(2, head_of(0), kept)
    cache.forget(1)
    assert (cache.get(1, 0), cache.get(2, 0)) == (None, kept)
    assert cache.bytes == 10 + 256


def test_a_chunk_that_is_taken_from_the_cache_is_gone() -> None:
    cache, chunk = ChunkCache(), [new_message()]
    cache.put(1, head_of(0), chunk)
    assert (cache.take(1, 0), cache.take(1, 0), cache.bytes) == (chunk, None, 0)


def test_a_chunk_that_is_added_twice_counts_once() -> None:
    cache = ChunkCache()
    for _ in range(2):
        cache.put(1, head_of(0), [new_message()])
    assert cache.bytes == 10 + 256


def test_headers_that_are_tables_or_arrays_are_left_out() -> None:
    headers = {"t": {"x": 1}, "a": [1], "n": None, "F": "A", "x-t": {"x": 1}, "CC": ["q"]}
    kept = without_nested_headers(new_message(b"body", headers=headers, delivery_mode=2))
    assert kept.properties().headers == {"n": None, "F": "A", "x-t": {"x": 1}, "CC": ["q"]}
    assert (kept.body, kept.is_persistent) == (b"body", True)


def test_a_message_without_header_tables_stays_as_it_is() -> None:
    message = new_message(b"body", headers={"F": "A", "l": 1 << 40})
    assert without_nested_headers(message) is message


@pytest.mark.parametrize(
    "nested", [{}, [], {"x": 1}, ["y"], {"x": "y" * 70_000}, ["y" * 70_000]], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("other", [{}, {"F\0": "A\0F\0"}, {"t": fields.Timestamp(0x4600_4100)}], ids=len)
def test_a_nested_header_is_found_at_any_size(nested: Any, other: dict[str, Any]) -> None:
    kept = without_nested_headers(new_message(b"F\0", headers={**other, "n": nested}, message_id="F\0A\0"))
    assert kept.properties().headers == (other or {})
