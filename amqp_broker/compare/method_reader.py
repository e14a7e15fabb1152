"""Octets to frames, and frames to methods with a digest of their content; no socket, no clock."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pamqp import base

from amqp_broker.amqp.errors import AMQPError, Disconnect
from amqp_broker.amqp.frames import FRAME_OVERHEAD, FRAME_SIZE_FUDGE
from amqp_broker.amqp.message import (
    CONTENT,
    FRAME,
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    MalformedProperties,
    Properties,
)
from amqp_broker.amqp.methods import decode_method

FRAME_KINDS: Final = frozenset((FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT))
FRAME_BYTES_MAX: Final = 131072
DIGEST_BYTES: Final = 12


class Unreadable(Exception):
    """The octets are not AMQP 0-9-1; the text says why."""


class Frame(NamedTuple):
    """A frame and its octets as received."""

    kind: int
    channel: int
    payload: bytes
    octets: bytes


class FrameSplitter:
    """Splits a stream of octets into frames."""

    def __init__(self) -> None:
        self.frame_max = FRAME_BYTES_MAX
        self._rest = bytearray()
        self._needed_bytes = FRAME_OVERHEAD

    def take_partial_frame(self) -> bytes:
        """Return and clear the octets that are not split into frames yet."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest

    def cut(self, data: bytes) -> Iterator[Frame]:
        """Yield all whole frames. Raise Unreadable after the valid ones; `take_partial_frame` then returns the rest."""
        rest = self._rest
        rest += data
        if len(rest) < self._needed_bytes:
            return
        # The caller may stop in the middle, so iterate over a copy.
        data, at = bytes(rest), 0
        rest.clear()
        try:
            while len(data) - at >= FRAME_OVERHEAD:
                kind, channel, size = FRAME.unpack_from(data, at)
                stop = at + FRAME.size + size
                if kind not in FRAME_KINDS or size > max(self.frame_max, FRAME_BYTES_MAX) + FRAME_SIZE_FUDGE:
                    raise Unreadable(f"a frame of type {kind} and {size} octets")
                if stop >= len(data):
                    self._needed_bytes = FRAME_OVERHEAD + size
                    return
                if data[stop] != FRAME_END:
                    raise Unreadable(f"a frame of type {kind} that ends with {data[stop]}")
                start, at = at, stop + 1
                yield Frame(kind, channel, data[start + FRAME.size : stop], data[start:at])
            self._needed_bytes = FRAME_OVERHEAD
        finally:
            rest += data[at:]


class Content(NamedTuple):
    """The compared parts of a content: properties (None if unreadable), body size and digest."""

    properties: Properties | None
    body_bytes: int
    digest: bytes


@dataclass(slots=True)
class Received:
    """A method and the content that followed it. `method` is one of pamqp's, decoded by amqp-broker's codec."""

    channel: int
    method: Any
    content: Content | None = None


class ContentReader:
    """Assembles a content; keeps only a digest of the body."""

    __slots__ = ("_bytes_left", "_digest", "_header", "body_bytes")

    def __init__(self) -> None:
        self._header: bytes | None = None
        self._bytes_left = 0
        self.body_bytes = 0
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def add(self, frame: Frame) -> Content | None:
        """Add the next frame; return the content after the last one. Raise Unreadable."""
        if self._header is None:
            if frame.kind != FRAME_HEADER or len(frame.payload) < CONTENT.size:
                raise Unreadable("a method without its content")
            self._header = frame.payload
            self.body_bytes = self._bytes_left = CONTENT.unpack_from(frame.payload)[2]
        else:
            self._bytes_left -= len(frame.payload)
            if frame.kind != FRAME_BODY or self._bytes_left < 0:
                raise Unreadable("a content that does not match its header")
            self._digest.update(frame.payload)
        if self._bytes_left:
            return None
        try:
            properties = Properties.decode(self._header, CONTENT.size)
        except MalformedProperties:
            properties = None
        return Content(properties, self.body_bytes, self._digest.digest())


# Methods with content: publish, return, deliver, get-ok.
WITH_CONTENT: Final = frozenset(60 << 16 | number for number in (40, 50, 60, 71))


def method_of(frame: Frame) -> base.Frame:
    """Decode a method frame. Raise Unreadable."""
    try:
        return decode_method(frame.payload)
    except (AMQPError, Disconnect) as error:
        raise Unreadable(str(error)) from None


class MethodReader:
    """Reads the methods that a broker sends."""

    def __init__(self) -> None:
        self.frames = FrameSplitter()
        self._under_way: dict[int, tuple[base.Frame, ContentReader]] = {}

    def hear(self, data: bytes) -> Iterator[Received]:
        """Yield the complete methods. Raise Unreadable after the valid ones."""
        for frame in self.frames.cut(data):
            if frame.kind == FRAME_HEARTBEAT:
                continue
            if frame.kind == FRAME_METHOD:
                method = method_of(frame)
                if method.index in WITH_CONTENT:
                    self._under_way[frame.channel] = method, ContentReader()
                else:
                    yield Received(frame.channel, method)
                continue
            if frame.channel not in self._under_way:
                raise Unreadable("content without a method")
            method, reader = self._under_way[frame.channel]
            content = reader.add(frame)
            if content is not None:
                del self._under_way[frame.channel]
                yield Received(frame.channel, method, content)
