from __future__ import annotations

import pytest

from amqp_broker.amqp.content import ContentAssembly
from amqp_broker.amqp.errors import ConnectionError_, FrameError, UnexpectedFrame
from amqp_broker.amqp.frames import BODY_BYTES_LIMIT, PUBLISH
from amqp_broker.amqp.message import CONTENT, FRAME_BODY, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD, Address, Message

BODY_BYTES_MAX = 1000
NO_PROPERTIES = b"\x00\x00"


def header(body_bytes: int, class_id: int = 60, weight: int = 0, properties: bytes = NO_PROPERTIES) -> bytes:
    return CONTENT.pack(class_id, weight, body_bytes) + properties


def fed(*frames: tuple[int, bytes]) -> ContentAssembly:
    """An assembly that has taken these frames and misses at least one more."""
    assembly = ContentAssembly(b"method")
    for kind, payload in frames:
        assert not assembly.add(kind, payload, BODY_BYTES_MAX)
    return assembly


def refusal(assembly: ContentAssembly, kind: int, payload: bytes) -> ConnectionError_:
    with pytest.raises((FrameError, UnexpectedFrame)) as caught:
        assembly.add(kind, payload, BODY_BYTES_MAX)
    assert caught.value.method_id == PUBLISH
    return caught.value


def test_a_header_and_its_bodies_make_a_message() -> None:
    assembly = fed((FRAME_HEADER, header(5)), (FRAME_BODY, b"he"))
    assert assembly.add(FRAME_BODY, b"llo", BODY_BYTES_MAX)
    message = Message(Address("", ""), assembly.content(7, 131072), 7, False)
    assert (message.body, message.channel) == (b"hello", 7)


def test_the_pieces_are_joined_to_frames_of_the_largest_size() -> None:
    assembly = fed((FRAME_HEADER, header(5)), (FRAME_BODY, b"he"))
    assembly.add(FRAME_BODY, b"llo", BODY_BYTES_MAX)
    assert Message(Address("", ""), assembly.content(7, 131072), 7, False).body_pieces() == [b"hello"]
    assert Message(Address("", ""), assembly.content(7, 12), 7, False).body_pieces() == [b"hell", b"o"]


def test_a_message_without_a_body_is_whole_with_its_header() -> None:
    assembly = ContentAssembly(b"method")
    assert assembly.add(FRAME_HEADER, header(0), BODY_BYTES_MAX)
    assert Message(Address("", ""), assembly.content(7, 131072), 7, False).body == b""


def test_a_body_frame_without_octets_changes_nothing() -> None:
    assembly = fed((FRAME_HEADER, header(5)), (FRAME_BODY, b""), (FRAME_BODY, b""))
    assert assembly.add(FRAME_BODY, b"hello", BODY_BYTES_MAX)


def test_the_property_list_follows_the_size() -> None:
    assert fed((FRAME_HEADER, header(5, properties=b"\x80\x00\x01t"))).property_list == b"\x80\x00\x01t"


def test_a_body_above_the_limit_is_read_to_its_end_but_not_kept() -> None:
    assembly = fed((FRAME_HEADER, header(BODY_BYTES_MAX + 1)), (FRAME_BODY, b"x" * BODY_BYTES_MAX))
    assert assembly.add(FRAME_BODY, b"x", BODY_BYTES_MAX)
    assert assembly.body_bytes == BODY_BYTES_MAX + 1
    assert len(assembly.content(1, 131072)) < 50


def test_a_body_of_the_limit_is_kept() -> None:
    assembly = fed((FRAME_HEADER, header(BODY_BYTES_MAX)))
    assert assembly.add(FRAME_BODY, b"x" * BODY_BYTES_MAX, BODY_BYTES_MAX)
    assert len(assembly.content(1, 131072)) > BODY_BYTES_MAX


@pytest.mark.parametrize("kind", [FRAME_METHOD, FRAME_BODY, FRAME_HEARTBEAT])
def test_something_else_in_place_of_the_header_is_unexpected(kind: int) -> None:
    error = refusal(ContentAssembly(b"method"), kind, header(0))
    assert str(error) == "expected content header for class 60, got non content header frame instead"


@pytest.mark.parametrize("payload", [b"", header(0)[:-1], header(0, weight=1)])
def test_an_invalid_header_is_unexpected(payload: bytes) -> None:
    error = refusal(ContentAssembly(b"method"), FRAME_HEADER, payload)
    assert str(error) == "expected content header for class 60, got non content header frame instead"


def test_a_header_of_another_class_is_unexpected() -> None:
    error = refusal(ContentAssembly(b"method"), FRAME_HEADER, header(0, class_id=10))
    assert error.reply_text == ("UNEXPECTED_FRAME - expected content header for class 60, got one for class 10 instead")


@pytest.mark.parametrize("kind", [FRAME_METHOD, FRAME_HEADER, FRAME_HEARTBEAT])
def test_something_else_in_place_of_a_body_is_unexpected(kind: int) -> None:
    error = refusal(fed((FRAME_HEADER, header(5))), kind, header(5))
    assert error.reply_text == "UNEXPECTED_FRAME - expected content body, got non content body frame instead"


def test_more_body_than_announced_is_a_frame_error() -> None:
    error = refusal(fed((FRAME_HEADER, header(5)), (FRAME_BODY, b"hell")), FRAME_BODY, b"o!")
    assert error.reply_text == "FRAME_ERROR - content body frame exceeds remaining content size"


def test_a_body_beyond_every_limit_is_a_frame_error() -> None:
    assert not ContentAssembly(b"method").add(FRAME_HEADER, header(BODY_BYTES_LIMIT), BODY_BYTES_MAX)
    error = refusal(ContentAssembly(b"method"), FRAME_HEADER, header(BODY_BYTES_LIMIT + 1))
    assert error.reply_text == ("FRAME_ERROR - content body size 536870913 exceeds maximum allowed size 536870912")
