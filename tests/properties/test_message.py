"""Properties and content: what one side writes the other reads, however it is cut."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pamqp import body, commands, frame, header

from amqp_broker.amqp.content import ContentAssembly
from amqp_broker.amqp.errors import FrameError, UnexpectedFrame
from amqp_broker.amqp.message import (
    CONTENT,
    FRAME_BODY,
    FRAME_HEADER,
    Address,
    MalformedProperties,
    Message,
    Properties,
)
from tests.properties.generators import PAMQP_TABLES, PROPERTIES, SHORT_TEXT, damaged, examples, shape, to_pamqp

# Properties as pamqp takes them: it leaves out what is empty, and refuses a cluster id.
PAMQPS = st.fixed_dictionaries(
    {},
    optional={
        "content_type": SHORT_TEXT.filter(bool),
        "headers": PAMQP_TABLES,
        "delivery_mode": st.sampled_from([1, 2]),
        "priority": st.integers(0, 255),
        "reply_to": SHORT_TEXT.filter(bool),
        "message_id": SHORT_TEXT.filter(bool),
        "app_id": SHORT_TEXT.filter(bool),
    },
)


@given(PROPERTIES)
def test_encoded_properties_are_decoded(values: dict[str, Any]) -> None:
    properties = Properties(**values)
    data = properties.encode()
    decoded = Properties.decode(data)
    assert shape(decoded.as_dict()) == shape(properties.as_dict())
    assert decoded.encode() == data


@given(PAMQPS)
def test_properties_are_encoded_as_pamqp_encodes_them(values: dict[str, Any]) -> None:
    theirs = commands.Basic.Properties(**{name: to_pamqp(value) for name, value in values.items()})
    assert Properties(**values).encode() == theirs.marshal()


@settings(max_examples=examples(4))
@given(st.binary(max_size=40) | damaged(PROPERTIES.map(lambda values: Properties(**values).encode())))
@example(b"\x20\x00" + b"\0\0\xff\xff\1aF" * 5000)
def test_any_octets_are_properties_or_malformed(data: bytes) -> None:
    try:
        properties = Properties.decode(data)
    except MalformedProperties:
        return
    assert Properties.decode(properties.encode()).encode() == properties.encode()


@given(PROPERTIES)
def test_the_priority_is_found_between_all_others(values: dict[str, Any]) -> None:
    assert Message.build(Address("", ""), Properties(**values), b"").priority == values.get("priority")


@given(PROPERTIES, PROPERTIES, st.binary(max_size=300))
def test_other_properties_leave_the_body_as_it_is(old: dict[str, Any], new: dict[str, Any], text: bytes) -> None:
    message = Message.build(Address("", ""), Properties(**old), text, 100).with_properties(Properties(**new))
    assert message.body == text
    assert message.properties().encode() == Properties(**new).encode()
    assert message.is_persistent == (new.get("delivery_mode") == 2)


@given(st.binary(max_size=300), st.integers(9, 400), st.integers(9, 400), st.integers(1, 65535), PAMQPS)
def test_content_is_the_same_for_every_channel_and_frame_size(
    text: bytes, sent_max: int, received_max: int, channel: int, values: dict[str, Any]
) -> None:
    message = Message.build(Address("x", "key"), Properties(**values), text, sent_max)
    content = message.content_for(channel, received_max)
    frames: list[tuple[int, Any]] = []
    while content:
        size, number, value = frame.unmarshal(content)
        assert number == channel
        frames.append((size, value))
        content = content[size:]
    (_, first), bodies = frames[0], frames[1:]
    assert isinstance(first, header.ContentHeader)
    assert first.body_size == len(text)
    assert all(isinstance(value, body.ContentBody) and size <= received_max for size, value in bodies)
    assert b"".join(value.value for _, value in bodies) == text
    assert shape(message.properties().as_dict()) == shape({key: values[key] for key in Properties(**values).as_dict()})


@given(st.lists(st.binary(max_size=20), max_size=8), PROPERTIES)
def test_content_is_put_together_however_it_arrives(pieces: list[bytes], values: dict[str, Any]) -> None:
    text = b"".join(pieces)
    property_list = Properties(**values).encode()
    assembly = ContentAssembly(b"")
    is_whole = assembly.add(FRAME_HEADER, CONTENT.pack(60, 0, len(text)) + property_list, 1000)
    for piece in pieces:
        assert is_whole == (assembly.body_bytes == 0 or assembly._bytes_left == 0)
        is_whole = assembly.add(FRAME_BODY, piece, 1000)
    assert is_whole
    message = Message(Address("", ""), assembly.content(5, 131072), 5, False)
    assert message.body == text
    assert message.properties().encode() == property_list


@settings(max_examples=examples(3))
@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=24)), max_size=6), st.integers(0, 40))
def test_any_frames_are_content_or_refused(frames: list[tuple[int, bytes]], announced: int) -> None:
    assembly = ContentAssembly(b"")
    try:
        if not assembly.add(FRAME_HEADER, CONTENT.pack(60, 0, announced) + b"\0\0", 30):
            for kind, payload in frames:
                if assembly.add(kind, payload, 30):
                    break
    except (FrameError, UnexpectedFrame):
        return
    assert assembly.body_bytes == announced
