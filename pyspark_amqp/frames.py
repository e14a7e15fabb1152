"""Frames from octets: deliveries read by hand, since they are all that a reader gets; other methods by pika.

A consumer of pika's takes five times as long, and what it cannot decode ends it; here it is handed on to the row.
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
FRAME_END: Final = 0xCE
FRAME_END_OCTET: Final = bytes((FRAME_END,))
HEARTBEAT_FRAME: Final = FRAME.pack(HEARTBEAT, 0, 0) + FRAME_END_OCTET
DELIVER: Final = b"\x00\x3c\x00\x3c"
_TAG: Final = Struct(">QB")
_SIZE: Final = Struct(">Q")


class Delivery(NamedTuple):
    """A message as it came: `header` is the payload of the content header's frame."""

    tag: int
    redelivered: bool
    exchange: bytes
    routing_key: bytes
    header: bytes
    body: bytes


class Frames:
    """Takes octets as the socket gives them, and has the whole deliveries of one channel and the methods of all."""

    def __init__(self) -> None:
        self.channel = 1
        self.methods: list[tuple[int, Any]] = []
        self._rest = b""
        # The content that is coming: what it is for, its header, and what there is of its body.
        self._method: Any = None
        self._header = b""
        self._parts: list[bytes] = []
        self._lacking = 0

    def feed(self, octets: bytes) -> list[Delivery]:
        """The deliveries that these octets end; methods go to `methods`. Raises BrokerError for what is no frame."""
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
                raise BrokerError("the broker sent something that is no AMQP frame")
            at = end + 1
            if kind == BODY:
                self._lacking -= size
                self._parts.append(data[start:end])
            elif kind == HEADER:
                self._header = data[start:end]
                (self._lacking,) = _SIZE.unpack_from(data, start + 4)
            elif kind == METHOD:
                if data.startswith(DELIVER, start):
                    self._method = (channel, data[start:end])
                    continue
                self._keep(channel, data[start - 7 : at])
                continue
            else:
                continue
            if self._lacking <= 0:
                self._end(deliveries)
        self._rest = data[at:]
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
            # Behind the two numbers of the method and the consumer's tag.
            at = 5 + method[4]
            tag, redelivered = _TAG.unpack_from(method, at)
            at += 10
            key_at = at + method[at - 1]
            deliveries.append(
                Delivery(tag, redelivered == 1, method[at:key_at], method[key_at + 1 :], self._header, body)
            )

    def _keep(self, channel: int, frame: bytes) -> None:
        try:
            method = pika.frame.decode_frame(frame)[1].method
        except (pika.exceptions.AMQPError, KeyError, ValueError, IndexError) as error:
            raise BrokerError(f"the broker sent a method that cannot be read: {error!r}") from None
        if isinstance(method, pika.spec.Basic.Return):
            self._method = (channel, method)
        else:
            self.methods.append((channel, method))
