"""Frames that the hot path reads and writes by hand, and RabbitMQ's texts for invalid frames.

Property tests hold every function here to pamqp's codec. Source: AMQP 0-9-1 specification, 2.3.5 "Frame Details".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from amqp_broker.amqp.errors import FrameError, UnexpectedFrame, UnreadableFrame
from amqp_broker.amqp.fields import erlang_term
from amqp_broker.amqp.message import FRAME, FRAME_END, FRAME_END_BYTE, FRAME_METHOD, Address, shortstr

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"
# AMQP 0-9 in the form of some old clients; RabbitMQ serves it as 0-9-1.
PROTOCOL_HEADER_0_9: Final = b"AMQP\x01\x01\x00\x09"

# Number of octets of a frame beside its payload, and before it.
FRAME_OVERHEAD: Final = 8
FRAME_START_BYTES: Final = 7
# RabbitMQ accepts payloads that are longer by this: "off-by 1 or 8 are typical" mistakes of clients.
FRAME_SIZE_FUDGE: Final = 8
BODY_BYTES_LIMIT: Final = 536_870_912

PUBLISH: Final = 60 << 16 | 40
ACK: Final = 60 << 16 | 80
REJECT: Final = 60 << 16 | 90
NACK: Final = 60 << 16 | 120

METHOD_ID: Final = struct.Struct(">I")
# A settling method's payload: its id, the delivery tag, one octet of bits
SETTLE: Final = struct.Struct(">IQB")
SETTLE_BYTES: Final = 13
TAG: Final = struct.Struct(">Q")
# class, weight and body size within a whole header frame that starts at the same offset as FRAME
HEADER_FRAME: Final = struct.Struct(">BHIHHQ")

HEARTBEAT_FRAME: Final[bytes] = b"\x08\x00\x00\x00\x00\x00\x00\xce"

_METHOD_FRAME: Final = struct.Struct(">BHII")
_ACK_FRAME: Final = struct.Struct(">BHIIQBB")
# The part in which two acks of a channel differ: delivery tag and multiple, and the frame's end.
ACK_REST: Final = struct.Struct(">QBB")
ACK_FRAME_BYTES: Final = 21
ACK_HEAD_BYTES: Final = 11

# The same as the methods of the structures. Their types let the compiled build work with plain integers.
unpack_frame: Final[Callable[[bytes, int], tuple[int, int, int]]] = FRAME.unpack_from
unpack_header_frame: Final[Callable[[bytes, int], tuple[int, int, int, int, int, int]]] = HEADER_FRAME.unpack_from
unpack_settle: Final[Callable[[bytes], tuple[int, int, int]]] = SETTLE.unpack
unpack_ack_rest: Final[Callable[[bytes, int], tuple[int, int, int]]] = ACK_REST.unpack_from
pack_tag: Final[Callable[[int], bytes]] = TAG.pack


def method_frame(channel: int, payload: bytes) -> bytes:
    """Return a method frame with this payload."""
    return FRAME.pack(FRAME_METHOD, channel, len(payload)) + payload + FRAME_END_BYTE


def deliver_prefix(channel: int, consumer_tag: str, suffix_bytes: int) -> bytes:
    """Return a basic.deliver frame up to its delivery tag. An address's suffix of this size follows the tag."""
    tag = shortstr(consumer_tag)
    size = METHOD_ID.size + len(tag) + TAG.size + suffix_bytes - 1
    return _METHOD_FRAME.pack(FRAME_METHOD, channel, size, 60 << 16 | 60) + tag


def get_ok_frame(channel: int, tag: int, address: Address, redelivered: bool, message_count: int) -> bytes:
    suffix = address.suffix_redelivered if redelivered else address.suffix
    payload = METHOD_ID.pack(60 << 16 | 71) + TAG.pack(tag) + suffix[:-1] + METHOD_ID.pack(message_count)
    return method_frame(channel, payload)


def return_frame(channel: int, code: int, text: str, address: Address) -> bytes:
    payload = METHOD_ID.pack(60 << 16 | 50) + code.to_bytes(2, "big") + shortstr(text) + address.suffix[1:-1]
    return method_frame(channel, payload)


def ack_frame(channel: int, tag: int, multiple: bool) -> bytes:
    return _ACK_FRAME.pack(FRAME_METHOD, channel, 13, ACK, tag, multiple, FRAME_END)


def nack_frame(channel: int, tag: int, multiple: bool) -> bytes:
    # RabbitMQ leaves the requeue bit of a publisher's nack at its default, which is 1.
    return _ACK_FRAME.pack(FRAME_METHOD, channel, 13, NACK, tag, multiple | 2, FRAME_END)


def frame_too_large(kind: int, size: int, frame_max: int) -> UnreadableFrame:
    reason = f"{{frame_too_large,{size},{frame_max - FRAME_OVERHEAD}}}"
    return UnreadableFrame(f"type {kind}, {_snippet(b'')}: {reason}", method_id=0)


def bad_frame_end(kind: int, payload: bytes, octet: int) -> UnreadableFrame:
    return UnreadableFrame(f"type {kind}, {_snippet(payload)}: {{invalid_frame_end_marker,{octet}}}", method_id=0)


def unknown_frame(kind: int, payload: bytes) -> FrameError:
    return FrameError(f"type {kind}, {_snippet(payload)}: unknown_frame", method_id=0)


def unexpected_frame(kind: int, payload: bytes) -> UnexpectedFrame:
    return UnexpectedFrame(f"type {kind}, {_snippet(payload)}", method_id=0)


def unexpected_content() -> UnexpectedFrame:
    """Return the error for a header or body frame in place of a method."""
    return UnexpectedFrame("expected method frame, got non method frame instead", method_id=0)


def _snippet(payload: bytes) -> str:
    which = "all" if len(payload) <= 16 else "first 16"
    return f"{which} octets = {erlang_term(payload[:16])}"
