from __future__ import annotations

from typing import Any

import pytest
from pamqp import body, commands, frame, header

from amqp_broker.amqp.fields import Short
from amqp_broker.amqp.message import (
    CONTENT,
    EXPIRATION_MAX_MS,
    Address,
    MalformedProperties,
    Message,
    Properties,
    SpecialMessage,
    content_frames,
    parse_expiration,
    routing_keys,
    shortstr,
)

# One value for each property, in the order of the flags.
ALL: dict[str, Any] = {
    "content_type": "text/plain",
    "content_encoding": "gzip",
    "headers": {"a": "1", "b": Short(1000)},
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "60000",
    "message_id": "m",
    "timestamp": 1_700_000_000,
    "type": "t",
    "user_id": "guest",
    "app_id": "app",
    "cluster_id": "cluster",
}


def frames_of(content: bytes) -> list[tuple[int, Any]]:
    """Channel and value of each frame, as pamqp reads them."""
    found = []
    while content:
        size, channel, value = frame.unmarshal(content)
        found.append((channel, value))
        content = content[size:]
    return found


def received(text: bytes, channel: int = 1, piece: int = 100_000, **properties: Any) -> Message:
    """A message as a publisher's frames make it."""
    content = frame.marshal(header.ContentHeader(0, len(text), commands.Basic.Properties(**properties)), channel)
    for start in range(0, len(text), piece):
        content += frame.marshal(body.ContentBody(text[start : start + piece]), channel)
    return Message(Address("amq.direct", "key"), content, channel, False)


# Properties


@pytest.mark.parametrize("name", ALL)
def test_each_property_stands_alone(name: str) -> None:
    properties = Properties(**{name: ALL[name]})
    decoded = Properties.decode(properties.encode())
    assert decoded.as_dict() == {name: ALL[name]}


def test_all_properties_stand_in_the_order_of_their_flags() -> None:
    decoded = Properties.decode(Properties(**ALL).encode())
    assert decoded.as_dict() == ALL
    assert list(decoded.as_dict()) == list(ALL)


def test_no_properties_are_two_octets_of_flags() -> None:
    assert Properties().encode() == b"\0\0"
    assert Properties.decode(b"\0\0").as_dict() == {}


def test_absent_properties_are_none() -> None:
    properties = Properties.decode(b"\0\0")
    assert all(getattr(properties, name) is None for name in ALL)


def test_empty_properties_are_not_absent() -> None:
    properties = Properties.decode(Properties(content_type="", headers={}, priority=0).encode())
    assert properties.as_dict() == {"content_type": "", "headers": {}, "priority": 0}


def test_the_types_of_header_values_are_kept() -> None:
    headers = Properties.decode(Properties(headers={"n": Short(7)}).encode()).headers
    assert headers is not None
    assert type(headers["n"]) is Short


def test_octets_that_are_not_utf_8_survive_in_properties() -> None:
    data = b"\x80\x00\x02\xff\xfe"
    assert Properties.decode(data).encode() == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"\x80\x00",
        b"\x80\x00\x05abc",
        b"\x10\x00",
        b"\x00\x40\0\0\0\0\0\0\0",
        b"\x20\x00\0\0\0\x05",
        b"\x20\x00\0\0\0\x03\x01kZ",
    ],
)
def test_a_truncated_property_list_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedProperties):
        Properties.decode(data)


@pytest.mark.parametrize("flags", [b"\x80\x01", b"\x80\x02", b"\x80\x03"])
def test_flags_that_the_class_does_not_have_are_passed_over(flags: bytes) -> None:
    assert Properties.decode(flags + b"\x01t").as_dict() == {"content_type": "t"}


def test_octets_behind_the_property_list_are_malformed() -> None:
    with pytest.raises(MalformedProperties, match="left behind"):
        Properties.decode(b"\x00\x00\x00")


# Expirations


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("0", 0), ("-0", 0), ("+5", 5), ("60000", 60_000), (str(EXPIRATION_MAX_MS), EXPIRATION_MAX_MS)],
)
def test_an_expiration_is_a_number_of_milliseconds(text: str, milliseconds: int) -> None:
    assert parse_expiration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "x", "1.5", "1 ", "+-1", "-1", "1_0", "²", str(EXPIRATION_MAX_MS + 1), None])
def test_an_invalid_expiration_is_none(text: str | None) -> None:
    assert parse_expiration(text) is None


# Messages


def test_a_built_message_reads_back() -> None:
    message = Message.build(Address("x", "key"), Properties(**ALL), b"hello")
    assert (message.exchange, message.routing_key) == ("x", "key")
    assert message.properties().as_dict() == ALL
    assert (message.body, message.body_bytes) == (b"hello", 5)
    assert message.is_persistent


def test_a_built_message_equals_a_published_one() -> None:
    [(_, content_header), (_, content_body)] = frames_of(Message.build(Address("", ""), Properties(), b"hello").content)
    assert content_header.body_size == 5
    assert content_body.value == b"hello"


def test_a_message_without_a_body_is_a_header_frame_only() -> None:
    message = Message.build(Address("", ""), Properties(), b"")
    assert len(frames_of(message.content)) == 1
    assert (message.body, message.body_pieces()) == (b"", [])


def test_a_received_message_reads_like_a_built_one() -> None:
    message = received(b"hello", channel=7, content_type="text/plain", headers={"a": "b"})
    assert message.properties().as_dict() == {"content_type": "text/plain", "headers": {"a": "b"}}
    assert message.body == b"hello"


def test_a_message_in_several_frames_has_one_body() -> None:
    message = received(b"abcdefgh", piece=3)
    assert message.body_pieces() == [b"abc", b"def", b"gh"]
    assert (message.body, message.body_bytes) == (b"abcdefgh", 8)


@pytest.mark.parametrize("name", [*ALL, "none"])
def test_a_timestamp_is_found_among_any_other_properties(name: str) -> None:
    others = {key: value for key, value in ALL.items() if key in (name, "message_id") and key != "timestamp"}
    address = Address("", "q")
    assert Message.build(address, Properties(**others), b"hello").timestamp is None
    stamped = Message.build(address, Properties(**others, timestamp=ALL["timestamp"]), b"hello")
    assert stamped.timestamp == ALL["timestamp"]


def test_changing_decoded_properties_does_not_change_the_message() -> None:
    message = received(b"", headers={"a": "b"})
    headers = message.properties().headers
    assert headers is not None
    headers["a"] = "changed"
    assert message.properties().headers == {"a": "b"}


def test_a_header_is_the_payload_of_the_header_frame() -> None:
    assert received(b"hello").header == CONTENT.pack(60, 0, 5) + b"\0\0"


# For a consumer


def test_content_for_the_same_channel_is_not_even_copied() -> None:
    message = received(b"hello", channel=7)
    assert message.content_for(7, 131072) is message.content


def test_content_for_another_channel_differs_in_the_channel_only() -> None:
    message = received(b"abcdefgh", channel=7, piece=3, content_type="text/plain")
    expected = received(b"abcdefgh", channel=65535, piece=3, content_type="text/plain")
    assert message.content_for(65535, 131072) == expected.content


def test_content_is_cut_anew_for_a_consumer_with_smaller_frames() -> None:
    message = received(b"x" * 100)
    frames = frames_of(message.content_for(2, 50))
    assert [len(value.value) for _, value in frames[1:]] == [42, 42, 16]
    assert {channel for channel, _ in frames} == {2}
    assert b"".join(value.value for _, value in frames[1:]) == b"x" * 100


def test_content_that_just_fits_is_not_cut() -> None:
    message = received(b"x" * 100)
    assert message.content_for(1, 108) is message.content
    assert len(frames_of(message.content_for(1, 107))) == 3


def test_small_frames_are_not_joined_for_a_consumer_with_larger_ones() -> None:
    message = received(b"abcdefgh", piece=3)
    assert message.content_for(1, 131072) is message.content


def test_frames_of_content_hold_at_most_frame_max_with_their_envelope() -> None:
    content = content_frames(3, CONTENT.pack(60, 0, 20) + b"\0\0", b"y" * 20, 18)
    assert [len(value.value) for _, value in frames_of(content)[1:]] == [10, 10]


# Addresses


def test_an_address_has_the_bytes_behind_the_tag_of_a_delivery() -> None:
    address = Address("x", "key")
    assert address.suffix == b"\x00\x01x\x03key\xce"
    assert address.suffix_redelivered == b"\x01\x01x\x03key\xce"


def test_a_short_string_is_its_length_in_octets_and_utf_8() -> None:
    assert shortstr("é") == b"\x02\xc3\xa9"
    assert shortstr("") == b"\x00"
    assert shortstr("x" * 255)[0] == 255


def test_a_routing_key_of_any_octets_is_spelled_as_it_came() -> None:
    assert shortstr(b"\xff".decode("utf-8", "surrogateescape")) == b"\x01\xff"


def test_routing_keys_are_those_of_the_message_and_its_copies() -> None:
    message = SpecialMessage.of(Message.build(Address("x", "k"), Properties(headers={"CC": ["a", 1]}), b""))
    message.blind_keys = ["b"]
    assert routing_keys(message, message.properties()) == ["k", "a", "b"]


def test_a_cc_header_that_is_no_list_has_no_routing_keys() -> None:
    message = Message.build(Address("x", "k"), Properties(headers={"CC": "a"}), b"")
    assert routing_keys(message, message.properties()) == ["k"]


def test_a_message_that_gets_a_delivery_mode_keeps_its_number_in_the_trace() -> None:
    special = SpecialMessage.of(Message.build(Address("", "q"), Properties(), b"x"))
    special.number = 7
    named = special.with_delivery_mode()
    assert isinstance(named, SpecialMessage)
    assert (named.number, named.properties().delivery_mode, named.body) == (7, 1, b"x")
