"""A parser of frames: deliveries are decoded here, other methods by pika.

A pika consumer takes five times as long, and fails on content that it cannot decode; here the row reports it.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple

import pika.exceptions
import pika.frame
import pika.spec

from pyspark_amqp.errors import BrokerError

FRAME: Final = Struct(">BHI")
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
KINDS: Final = (METHOD, HEADER, BODY, HEARTBEAT)
FRAME_END: Final = 0xCE
FRAME_END_OCTET: Final = bytes((FRAME_END,))
HEARTBEAT_FRAME: Final = FRAME.pack(HEARTBEAT, 0, 0) + FRAME_END_OCTET
DELIVER: Final = b"\x00\x3c\x00\x3c"
# The delivery tag, whether it is redelivered, and the length of the exchange's name.
_TAG: Final = Struct(">QBB")
_SIZE: Final = Struct(">Q")
# The start of a header frame, and of a body frame with the end of the frame before.
_HEADER_START: Final = Struct(">BHI4xQ")
_BODY_START: Final = Struct(">BBHI")


class Delivery(NamedTuple):
    """A message as received: `header` is the payload of the content header frame."""

    tag: int
    redelivered: bool
    exchange: bytes
    routing_key: bytes
    header: bytes
    body: bytes


class Frames:
    """Splits octets into the deliveries of one channel and the methods of all channels."""

    def __init__(self) -> None:
        self.channel = 1
        self.methods: list[tuple[int, Any]] = []
        self._rest = b""
        # The incomplete content: its delivery, its header, and its body so far.
        self._method: Any = None
        self._header = b""
        self._parts: list[bytes] = []
        self._lacking = 0

    def feed(self, octets: bytes) -> list[Delivery]:
        """Return the deliveries that these octets complete; add methods to `methods`. Raise BrokerError."""
        data = self._rest + octets if self._rest else octets
        deliveries: list[Delivery] = []
        at, size_max = 0, len(data)
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
                    whole = _whole(data, start, at, channel) if channel == self.channel else None
                    if whole is not None:
                        delivery, at = whole
                        deliveries.append(delivery)
                    else:
                        self._method = (channel, data[start:end])
                    continue
                self._keep(channel, data[start - 7 : at])
                continue
            else:
                continue
            if self._lacking <= 0:
                self._end(deliveries)
        self._rest = data[at:]
        if self._rest and self._rest[0] not in KINDS:
            raise BrokerError(f"instead of an AMQP frame came {self._rest[:8]!r}")
        return deliveries

    def _end(self, deliveries: list[Delivery]) -> None:
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
            deliveries.append(_delivery(method, 0, len(method), self._header, body))

    def _keep(self, channel: int, frame: bytes) -> None:
        try:
            method = pika.frame.decode_frame(frame)[1].method
        except (pika.exceptions.AMQPError, KeyError, ValueError, IndexError) as error:
            raise BrokerError(f"the broker sent an invalid method: {error!r}") from None
        if isinstance(method, pika.spec.Basic.Return):
            self._method = (channel, method)
        else:
            self.methods.append((channel, method))


def _whole(data: bytes, method_at: int, at: int, channel: int) -> tuple[Delivery, int] | None:
    """Return the delivery of this method and its end, if the next two frames are its content; else None."""
    if len(data) - at < _HEADER_START.size:
        return None
    kind, header_channel, header_size, size = _HEADER_START.unpack_from(data, at)
    header_end = at + 7 + header_size
    body_at = header_end + 8
    body_end = body_at + size
    if (
        kind != HEADER
        or header_channel != channel
        or body_end >= len(data)
        or data[body_end] != FRAME_END
        or _BODY_START.unpack_from(data, header_end) != (FRAME_END, BODY, channel, size)
    ):
        return None
    return _delivery(data, method_at, at - 1, data[at + 7 : header_end], data[body_at:body_end]), body_end + 1


def _delivery(data: bytes, start: int, end: int, header: bytes, body: bytes) -> Delivery:
    # After the two numbers of the method and the consumer tag.
    at = start + 5 + data[start + 4]
    tag, redelivered, size = _TAG.unpack_from(data, at)
    at += 10
    key_at = at + size + 1
    return Delivery(tag, redelivered == 1, data[at : key_at - 1], data[key_at:end], header, body)
