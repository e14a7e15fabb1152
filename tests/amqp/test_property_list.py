from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.message import Address, MalformedProperties, Message, Properties
from amqp_broker.amqp.property_list import Traits, scan, traits_of


def traits(*, sorts: bool = True, **properties: Any) -> Traits:
    return traits_of(scan(Properties(**properties).encode()), sorts)


@pytest.mark.parametrize(("delivery_mode", "expected"), [(None, False), (1, False), (2, True), (3, False)])
def test_only_delivery_mode_2_is_persistent(delivery_mode: int | None, expected: bool) -> None:
    assert traits(delivery_mode=delivery_mode).is_persistent is expected


@pytest.mark.parametrize(
    ("properties", "is_plain"),
    [
        ({}, True),
        ({"priority": 5, "message_id": "m", "timestamp": 1}, True),
        ({"headers": {"a": 1}}, True),
        ({"headers": {"CC": ["a"]}}, False),
        ({"headers": {"BCC": 1}}, False),
        ({"headers": {"nested": {"CC": ["a"]}}}, True),
        ({"headers": {}, "reply_to": "q"}, True),
        ({"reply_to": "amq.rabbitmq.reply-to"}, False),
        ({"reply_to": "amq.rabbitmq.reply-tp"}, True),
        ({"user_id": "guest"}, False),
        ({"expiration": "0"}, True),
        ({"expiration": "+5"}, False),
        ({"expiration": "soon"}, False),
    ],
)
def test_a_plain_property_list_says_nothing_about_publishing(properties: dict[str, Any], is_plain: bool) -> None:
    assert traits(**properties).is_plain is is_plain


def test_a_valid_expiration_is_read() -> None:
    assert traits(expiration="60000").expiration_ms == 60_000
    assert traits(expiration="+5", sorts=False).expiration_ms == 5
    assert traits(expiration="+5", sorts=False).is_plain


@pytest.mark.parametrize(
    ("headers", "is_sorted"),
    [
        ({"a": 1, "b": 2}, True),
        ({"b": 1, "a": 2}, False),
        ({}, True),
        ({"B": 1, "a": 2}, True),
        ({"a": 1, "B": 2}, False),
    ],
)
def test_headers_in_another_order_have_a_sorter(headers: dict[str, Any], is_sorted: bool) -> None:
    found = traits(headers=headers)
    assert (found.sorter is None, found.is_plain) == (is_sorted, True)
    assert traits(headers=headers, sorts=False).sorter is None


def test_a_sorter_moves_headers_and_nothing_else() -> None:
    headers = {"z": "last", "m": {"y": [1, "x"], "n": None}, "a": True, "b": b"first"}
    message = Message.build(Address("", ""), Properties(headers=headers, type="t"), b"body" * 40_000)
    sorter = traits(headers=headers, type="t").sorter
    assert sorter is not None
    found = Message(message.address, sorter.sort(message.content), 1, False)
    assert list((found.properties().headers or {}).items()) == sorted(headers.items())
    assert (found.properties().type, found.body, len(found.content)) == ("t", message.body, len(message.content))


@pytest.mark.parametrize(
    "table",
    [
        b"\1bt\1\1at\2",  # a boolean of 2
        b"\1bt\1\1aL" + bytes(8),  # an old letter of a long
        b"\1bt\1\1at\1\1at\0",  # a key twice
        b"\1bt\1\1aF\0\0\0\10\1ct\0\1ct\1",  # a key twice in a nested table
        b"\1bt\1\1aF\0\0\0\4\1ct\2",
        b"\1bt\1\1aA\0\0\0\11L" + bytes(8),
        b"\1bt\1\1\xfft\0",  # a key that is not ASCII
    ],
)
def test_a_list_that_would_change_by_more_than_the_order_of_its_headers_is_not_plain(table: bytes) -> None:
    data = b"\x20\0" + len(table).to_bytes(4, "big") + table
    assert not traits_of(scan(data), sorts=True).is_plain
    assert traits_of(scan(data), sorts=False).is_plain


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "malformed property list"),
        (b"\x80\0\5abc", "a string reaches beyond"),
        (b"\0\0\0", "octets are left behind"),
        (b"\x20\0\0\0\0\3\1aV\0", "octets are left behind"),
        (b"\x20\0\0\0\0\3\1a?", "malformed property list"),
        (b"\x00\x40\0\0", "malformed property list"),
    ],
)
def test_a_malformed_list_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedProperties, match=reason):
        scan(data)


def test_a_flag_of_no_property_stays_unless_the_headers_are_sorted() -> None:
    listed = bytearray(Properties(headers={"b": 1, "a": 2}).encode())
    listed[1] |= 2
    assert traits_of(scan(bytes(listed)), False).is_plain
    assert not traits_of(scan(bytes(listed)), True).is_plain
