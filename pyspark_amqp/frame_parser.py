"""A parser of frames: deliveries are decoded here, other methods by pika.

A pika consumer takes many times as long, and fails on content that it cannot decode; here the row reports it.
Successive messages often differ only in delivery tag, stream offset and body: then the other octets are compared, not
decoded.
"""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import Any, Final

import pika.exceptions
import pika.frame
import pika.spec

from pyspark_amqp.content_header import PROPERTIES_AT, offset_at
from pyspark_amqp.delivery_run import Run
from pyspark_amqp.errors import BrokerError

FRAME: Final = Struct(">BHI")
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
KINDS: Final = (METHOD, HEADER, BODY, HEARTBEAT)
FRAME_END: Final = 0xCE
FRAME_END_OCTET: Final = bytes((FRAME_END,))
HEARTBEAT_FRAME: Final = FRAME.pack(HEARTBEAT, 0, 0) + FRAME_END_OCTET
DELIVER: Final = b"\x00\x3c\x00\x3c"
_SIZE: Final = Struct(">Q")
# The start of a header frame, and of a body frame with the end of the frame before.
_HEADER_START: Final = Struct(">BHI4xQ")
_BODY_START: Final = Struct(">BBHI")
# Instead of the position of a body: the content is not a header and one frame, or its end has not arrived.
NOT_WHOLE, CUT_OFF = 0, -1


class Pattern:
    """The octets before the body of a delivery, and where the numbers are that may differ in the next one."""

    def __init__(self, run: Run, channel: int, octets: bytes, tag_at: int, header_at: int) -> None:
        """Take the frames of the method and of the header, and the start of the body's frame.

        `tag_at` is the position of the delivery tag, `header_at` that of the header frame's payload.
        """
        self.run = run
        self.channel = channel
        size_at, length_at = header_at + 4, len(octets) - 4
        offset = offset_at(run.header)
        self.has_offset = offset > 0
        offset_start = header_at + offset if offset else length_at
        offset_end = offset_start + 8 if offset else length_at
        # Between the numbers: the tag, the size of the body, the offset, and the size of the body's frame.
        self.parts = (
            octets[:tag_at],
            octets[tag_at + 8 : size_at],
            octets[size_at + 8 : offset_start],
            octets[offset_end:length_at],
        )
        sizes = [len(part) for part in self.parts]
        self._numbers = Struct(">{}xQ{}xQ{}x{}{}xI".format(*sizes[:3], "Q" if offset else "0s", sizes[3]))

    def take(self, data: bytes, at: int, runs: list[Run]) -> int:
        """Append a run of the deliveries with this pattern from `at` on, and return its end."""
        numbers = self._numbers
        start, middle, properties, rest = self.parts
        middle_at = len(start) + 8
        properties_at = middle_at + len(middle) + 8
        rest_at = numbers.size - 4 - len(rest)
        has_offset = self.has_offset
        size_max, last = len(data), len(data) - numbers.size
        bodies: list[bytes] = []
        first_tag = first_offset = next_tag = next_offset = 0
        while (
            at < last
            and data.startswith(start, at)
            and data.startswith(middle, at + middle_at)
            and data.startswith(properties, at + properties_at)
            and data.startswith(rest, at + rest_at)
        ):
            tag, size, offset, length = numbers.unpack_from(data, at)
            body_at = at + numbers.size
            end = body_at + size
            if length != size or end >= size_max or data[end] != FRAME_END:
                break
            if not bodies:
                first_tag, first_offset = next_tag, next_offset = tag, offset
            elif tag != next_tag or (has_offset and offset != next_offset):
                break
            bodies.append(data[body_at:end])
            next_tag += 1
            if has_offset:
                next_offset += 1
            at = end + 1
        if bodies:
            offset = first_offset if has_offset else None
            runs.append(replace(self.run, tag=first_tag, bodies=bodies, offset=offset))
        return at


class Frames:
    """Splits octets into the deliveries of one channel and the methods of all channels."""

    def __init__(self) -> None:
        self.channel = 1
        self.methods: list[tuple[int, Any]] = []
        self._rest = b""
        self._pattern: Pattern | None = None
        # The frame of the last delivery's method without the tag, and what it says.
        self._last_method: tuple[bytes, bytes, tuple[bool, bytes, bytes]] = (b"", b"", (False, b"", b""))
        # The position of the offset in the last header, or 0, and the octets from the flags on without the offset.
        self._last_header: tuple[int, bytes, bytes] = (0, b"", b"")
        # The incomplete content: its delivery, its header, and its body so far.
        self._method: Any = None
        self._header = b""
        self._parts: list[bytes] = []
        self._lacking = 0

    def feed(self, octets: bytes) -> list[Run]:
        """Return the deliveries that these octets complete; add other methods to `methods`. Raise BrokerError."""
        data = self._rest + octets if self._rest else octets
        runs: list[Run] = []
        at, size_max = self._alike(data, 0, runs), len(data)
        unpack = FRAME.unpack_from
        while size_max - at >= 8:
            kind, channel, size = unpack(data, at)
            start = at + 7
            end = start + size
            if end >= size_max:
                break
            if data[end] != FRAME_END:
                raise BrokerError("the broker sent an invalid AMQP frame")
            at = end + 1
            if kind == BODY:
                self._lacking -= size
                self._parts.append(data[start:end])
            elif kind == HEADER:
                self._header = data[start:end]
                (self._lacking,) = _SIZE.unpack_from(data, start + 4)
            elif kind == METHOD:
                if data.startswith(DELIVER, start):
                    body_at = _body_at(data, at, channel) if channel == self.channel else NOT_WHOLE
                    if body_at == CUT_OFF:
                        # The next read has it as a whole, and it may be like those before.
                        at = start - FRAME.size
                        break
                    if body_at == NOT_WHOLE:
                        self._method = (channel, data[start:end])
                    else:
                        at = self._whole(data, start, at, body_at, runs)
                    continue
                self._keep(channel, data[start - 7 : at])
                continue
            else:
                continue
            if self._lacking <= 0:
                self._end(runs)
        self._rest = data[at:]
        if self._rest and self._rest[0] not in KINDS:
            raise BrokerError(f"instead of an AMQP frame came {self._rest[:8]!r}")
        return runs

    def _alike(self, data: bytes, at: int, runs: list[Run]) -> int:
        """Append deliveries that are like those before, and return their end."""
        pattern = self._pattern
        return pattern.take(data, at, runs) if pattern is not None and pattern.channel == self.channel else at

    def _whole(self, data: bytes, method_at: int, at: int, body_at: int, runs: list[Run]) -> int:
        """Append a delivery whose body is in one frame, and those after it that are like it; return their end.

        `at` is the end of its method's frame.
        """
        start = method_at - FRAME.size
        before, after, addressed = self._last_method
        tag_at = start + len(before)
        has_last = (
            tag_at + 8 + len(after) == at and data.startswith(before, start) and data.startswith(after, tag_at + 8)
        )
        if not has_last:
            tag_at = method_at + 5 + data[method_at + 4]
            addressed = _addressed(data, tag_at + 8, at - 1)
            self._last_method = data[start:tag_at], data[tag_at + 8 : at], addressed
        redelivered, exchange, routing_key = addressed
        (tag,) = _SIZE.unpack_from(data, tag_at)
        (size,) = _SIZE.unpack_from(data, at + 11)
        end: int = body_at + size + 1
        header = data[at + 7 : body_at - 8]
        place, first, rest = self._last_header
        if place and header.startswith(first, PROPERTIES_AT):
            is_alike = has_last and len(header) == place + 8 + len(rest) and header.endswith(rest)
        else:
            is_alike = has_last and not place and header.endswith(first) and len(header) == PROPERTIES_AT + len(first)
            place = 0 if is_alike else offset_at(header)
        offset = int.from_bytes(header[place : place + 8]) if place else None
        run = Run(tag, redelivered, exchange, routing_key, header, [data[body_at : end - 1]], offset)
        if is_alike:
            # The pattern takes this delivery, too.
            self._pattern = Pattern(run, self.channel, data[start:body_at], tag_at - start, at + 7 - start)
            return self._pattern.take(data, start, runs)
        runs.append(run)
        if place:
            self._last_header = place, header[PROPERTIES_AT:place], header[place + 8 :]
        else:
            self._last_header = 0, header[PROPERTIES_AT:], b""
        return end

    def _end(self, runs: list[Run]) -> None:
        parts = self._parts
        if len(parts) == 1:
            body = parts[0]
        else:
            body = b"".join(parts)
        self._parts = []
        channel, method = self._method
        if not isinstance(method, bytes):
            self.methods.append((channel, method))
        elif channel == self.channel:
            runs.append(_single(method, self._header, body))

    def _keep(self, channel: int, frame: bytes) -> None:
        try:
            method = pika.frame.decode_frame(frame)[1].method
        except (pika.exceptions.AMQPError, KeyError, ValueError, IndexError) as error:
            raise BrokerError(f"the broker sent an invalid method: {error!r}") from None
        if isinstance(method, pika.spec.Basic.Return):
            self._method = (channel, method)
        else:
            self.methods.append((channel, method))


def _body_at(data: bytes, at: int, channel: int) -> int:
    """Return the position of the body if the next two frames are the whole content, NOT_WHOLE or CUT_OFF."""
    size_max = len(data)
    if size_max - at < _HEADER_START.size:
        return CUT_OFF
    kind, header_channel, header_size, size = _HEADER_START.unpack_from(data, at)
    if kind != HEADER or header_channel != channel or not size:
        return NOT_WHOLE
    header_end = at + FRAME.size + header_size
    body_at = header_end + _BODY_START.size
    if body_at > size_max:
        return CUT_OFF
    if _BODY_START.unpack_from(data, header_end) != (FRAME_END, BODY, channel, size):
        return NOT_WHOLE
    body_end: int = body_at + size
    if body_end >= size_max:
        return CUT_OFF
    return int(body_at) if data[body_end] == FRAME_END else NOT_WHOLE


def _addressed(data: bytes, at: int, end: int) -> tuple[bool, bytes, bytes]:
    """Return whether a delivery is redelivered, its exchange and its routing key; they follow its tag."""
    key_at = at + 3 + data[at + 1]
    return data[at] == 1, data[at + 2 : key_at - 1], data[key_at:end]


def _single(method: bytes, header: bytes, body: bytes) -> Run:
    # After the two numbers of the method and the consumer tag.
    tag_at = 5 + method[4]
    (tag,) = _SIZE.unpack_from(method, tag_at)
    place = offset_at(header)
    offset = int.from_bytes(header[place : place + 8]) if place else None
    return Run(tag, *_addressed(method, tag_at + 8, len(method)), header, [body], offset)
