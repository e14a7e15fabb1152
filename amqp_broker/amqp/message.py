"""A message as the broker keeps it: the frames of its content, as they arrived on the wire.

Properties are not decoded between publisher and consumer. Headers exchanges, dead-lettering and management call
`Message.properties()`. Publishing needs the `Traits` of a property list (`property_list.py`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Self

from amqp_broker.amqp import fields

FRAME_METHOD: Final = 1
FRAME_HEADER: Final = 2
FRAME_BODY: Final = 3
FRAME_HEARTBEAT: Final = 8
FRAME_END: Final = 0xCE
FRAME_END_BYTE: Final = b"\xce"
# Start of every frame: type, channel, size.
FRAME: Final = struct.Struct(">BHI")
# Start of every content header's payload: class, weight, body size.
CONTENT: Final = struct.Struct(">HHQ")
_unpack_content: Final[Callable[[bytes, int], tuple[int, int, int]]] = CONTENT.unpack_from
# Size of a header frame up to its property flags.
HEADER_START_BYTES: Final = 19

_SHORT: Final = struct.Struct(">H")
_TIMESTAMP: Final = struct.Struct(">Q")

# The properties of class basic in the order of their flags, bit 15 first (spec 1.8.1).
PROPERTIES: Final[tuple[tuple[str, int, str], ...]] = (
    ("content_type", 1 << 15, "shortstr"),
    ("content_encoding", 1 << 14, "shortstr"),
    ("headers", 1 << 13, "table"),
    ("delivery_mode", 1 << 12, "octet"),
    ("priority", 1 << 11, "octet"),
    ("correlation_id", 1 << 10, "shortstr"),
    ("reply_to", 1 << 9, "shortstr"),
    ("expiration", 1 << 8, "shortstr"),
    ("message_id", 1 << 7, "shortstr"),
    ("timestamp", 1 << 6, "timestamp"),
    ("type", 1 << 5, "shortstr"),
    ("user_id", 1 << 4, "shortstr"),
    ("app_id", 1 << 3, "shortstr"),
    ("cluster_id", 1 << 2, "shortstr"),
)
# Estimated memory of a message in addition to its content.
ENTRY_BYTES: Final = 256
# Ten years, as in RabbitMQ.
EXPIRATION_MAX_MS: Final = 315_360_000_000
_EXPIRATION: Final = re.compile("[+-]?[0-9]+")


class MalformedProperties(ValueError):
    """The octets are not a property list of class basic."""


class Properties:
    """The decoded properties of a message; None where one is absent."""

    __slots__ = tuple(name for name, _, _ in PROPERTIES)

    content_type: str | None
    content_encoding: str | None
    headers: fields.Table | None
    delivery_mode: int | None
    priority: int | None
    correlation_id: str | None
    reply_to: str | None
    expiration: str | None
    message_id: str | None
    timestamp: int | None
    type: str | None
    user_id: str | None
    app_id: str | None
    cluster_id: str | None

    def __init__(self, **values: Any) -> None:
        for name, _, _ in PROPERTIES:
            setattr(self, name, values.get(name))

    @classmethod
    def decode(cls, data: bytes, offset: int = 0) -> Properties:
        """Decode property flags and list from `data[offset:]`. Raise MalformedProperties."""
        try:
            properties, end = cls._decode(data, offset)
        except (struct.error, IndexError, fields.MalformedTable):
            raise MalformedProperties("malformed property list") from None
        if end != len(data):
            raise MalformedProperties("octets are left behind the property list")
        return properties

    @classmethod
    def _decode(cls, data: bytes, offset: int) -> tuple[Properties, int]:
        (flags,) = _SHORT.unpack_from(data, offset)
        offset += 2
        properties = cls()
        for name, flag, kind in PROPERTIES:
            if flags & flag:
                value: Any
                if kind == "shortstr":
                    end = offset + 1 + data[offset]
                    if end > len(data):
                        raise MalformedProperties("a string reaches beyond the property list")
                    value, offset = data[offset + 1 : end].decode("utf-8", "surrogateescape"), end
                elif kind == "octet":
                    value, offset = data[offset], offset + 1
                elif kind == "timestamp":
                    (value,), offset = _TIMESTAMP.unpack_from(data, offset), offset + 8
                else:
                    value, offset = fields.decode_table(data, offset)
                setattr(properties, name, value)
        return properties, offset

    def encode(self) -> bytes:
        """Return property flags and list, as they follow the body size in a content header."""
        flags, pieces = 0, []
        for name, flag, kind in PROPERTIES:
            value = getattr(self, name)
            if value is None:
                continue
            flags |= flag
            if kind == "shortstr":
                encoded = value.encode("utf-8", "surrogateescape")
                pieces.append(bytes([len(encoded)]) + encoded)
            elif kind == "octet":
                pieces.append(bytes([value]))
            elif kind == "timestamp":
                pieces.append(_TIMESTAMP.pack(value))
            else:
                pieces.append(fields.encode_table(value))
        return _SHORT.pack(flags) + b"".join(pieces)

    def as_dict(self) -> dict[str, Any]:
        """Return the properties that are present, by name."""
        return {name: value for name, _, _ in PROPERTIES if (value := getattr(self, name)) is not None}


def normal_list(properties: Properties, expiration_ms: int | None) -> bytes | None:
    """Return the property list with sorted headers, each key once, and a plain expiration; None if it is so already."""
    headers, expiration = properties.headers, properties.expiration
    keys = sorted(headers) if headers else []
    is_sorted = not headers or (list(headers) == keys and not isinstance(headers, fields.RepeatedKeys))
    is_plain = expiration_ms is None or expiration == str(expiration_ms)
    if is_sorted and is_plain:
        return None
    normal = Properties(**properties.as_dict())
    if headers:
        normal.headers = {key: headers[key] for key in keys}
    if not is_plain:
        normal.expiration = str(expiration_ms)
    return normal.encode()


def parse_expiration(expiration: str | None) -> int | None:
    """Return the milliseconds to live, from 0 to `EXPIRATION_MAX_MS`, or None for an invalid expiration."""
    if expiration is None or _EXPIRATION.fullmatch(expiration) is None:
        return None
    milliseconds = int(expiration)
    return milliseconds if 0 <= milliseconds <= EXPIRATION_MAX_MS else None


class Address:
    """The exchange and routing key that a message was published with, and their bytes in a delivery."""

    __slots__ = ("exchange", "routing_key", "suffix", "suffix_redelivered")

    def __init__(self, exchange: str, routing_key: str, *, names: bytes = b"") -> None:
        """Make an address; `names` are both names as short strings, if the caller has them."""
        self.exchange = exchange
        self.routing_key = routing_key
        names = names or shortstr(exchange) + shortstr(routing_key)
        # The arguments of basic.deliver behind the delivery tag, and the frame's end.
        self.suffix: bytes = b"\0" + names + FRAME_END_BYTE
        self.suffix_redelivered: bytes = b"\1" + names + FRAME_END_BYTE


class Message:
    """A published message, shared by all queues that it was routed to, and never changed.

    `content` is the header frame and the body frames as they stood on channel number `channel`.
    """

    __slots__ = ("address", "channel", "content", "is_persistent")
    # True for the place of a message that the store cannot read.
    is_damaged: ClassVar[bool] = False

    def __init__(self, address: Address, content: bytes, channel: int, is_persistent: bool) -> None:
        self.address = address
        self.content = content
        self.channel = channel
        self.is_persistent = is_persistent

    @classmethod
    def build(cls, address: Address, properties: Properties, body: bytes, frame_max: int = 131072) -> Message:
        """Return a message made by the broker itself or published over HTTP."""
        property_list = properties.encode()
        content = content_frames(1, CONTENT.pack(60, 0, len(body)) + property_list, body, frame_max)
        return cls(address, content, 1, properties.delivery_mode == 2)

    @property
    def exchange(self) -> str:
        return self.address.exchange

    @property
    def routing_key(self) -> str:
        return self.address.routing_key

    @property
    def header(self) -> bytes:
        """Payload of the content header: class, weight, body size, property flags and list."""
        size = FRAME.unpack_from(self.content)[2]
        return self.content[FRAME.size : FRAME.size + size]

    @property
    def property_list(self) -> bytes:
        """Property flags and list of the content header."""
        content = self.content
        return content[HEADER_START_BYTES : FRAME.size + FRAME.unpack_from(content)[2]]

    @property
    def body_bytes(self) -> int:
        """Size of the body."""
        return _unpack_content(self.content, FRAME.size)[2]

    @property
    def body(self) -> bytes:
        return b"".join(self.body_pieces())

    def body_pieces(self) -> list[bytes]:
        """Return the payloads of the body frames."""
        content, pieces = self.content, []
        offset = FRAME.size + FRAME.unpack_from(content)[2] + 1
        while offset < len(content):
            start = offset + FRAME.size
            offset = start + FRAME.unpack_from(content, offset)[2] + 1
            pieces.append(content[start : offset - 1])
        return pieces

    def properties(self) -> Properties:
        """Return a new copy of the decoded properties."""
        return Properties.decode(self.header, CONTENT.size)

    @property
    def timestamp(self) -> int | None:
        """The property timestamp, in seconds; None, without decoding, where it is absent."""
        return self.properties().timestamp if self.content[HEADER_START_BYTES + 1] & 0x40 else None

    @property
    def priority(self) -> int | None:
        """The property priority, read without decoding the others; None where it is absent."""
        flags = self.content[HEADER_START_BYTES]
        if not flags & 0x08:
            return None
        at = self._delivery_mode_at()
        return self.content[at + 1] if flags & 0x10 else self.content[at]

    def _delivery_mode_at(self) -> int:
        """Return where in the content the property delivery-mode is, or would be."""
        content = self.content
        flags = content[HEADER_START_BYTES]
        at = HEADER_START_BYTES + 2
        if flags & 0x80:
            at += 1 + content[at]  # content-type
        if flags & 0x40:
            at += 1 + content[at]  # content-encoding
        if flags & 0x20:
            at += 4 + int.from_bytes(content[at : at + 4], "big")  # headers
        return at

    def with_delivery_mode(self) -> Message:
        """Return the same message with delivery mode 1 if it has none."""
        content = self.content
        flags = content[HEADER_START_BYTES]
        if flags & 0x10:
            return self
        start, at = HEADER_START_BYTES, self._delivery_mode_at()
        end = FRAME.size + FRAME.unpack_from(content)[2]
        property_list = b"".join((bytes([flags | 0x10]), content[start + 1 : at], b"\1", content[at:end]))
        return Message(self.address, with_property_list(content, property_list), self.channel, self.is_persistent)

    def with_properties(self, properties: Properties) -> Message:
        """The same message with other properties."""
        content = with_property_list(self.content, properties.encode())
        return Message(self.address, content, self.channel, properties.delivery_mode == 2)

    def content_for(self, channel: int, frame_max: int) -> bytes:
        """The content's frames for another channel, re-cut where the peer's frames must be smaller."""
        pieces = self.body_pieces()
        if any(len(piece) > frame_max - 8 for piece in pieces):
            return content_frames(channel, self.header, b"".join(pieces), frame_max)
        if self.channel == channel:
            return self.content
        header = self.header
        frames = [FRAME.pack(FRAME_HEADER, channel, len(header)), header, FRAME_END_BYTE]
        for piece in pieces:
            frames += (FRAME.pack(FRAME_BODY, channel, len(piece)), piece, FRAME_END_BYTE)
        return b"".join(frames)


class NumberedMessage(Message):
    """A message with a number in the trace.

    `is_recorded` says that a recorder has selected it, `row` is the index of the last row with one of its events.
    """

    __slots__ = ("is_recorded", "number", "row")

    def __init__(self, address: Address, content: bytes, channel: int, is_persistent: bool, number: int) -> None:
        # Without super(): one is made for each traced publish.
        self.address = address
        self.content = content
        self.channel = channel
        self.is_persistent = is_persistent
        self.number = number
        self.is_recorded = False
        self.row = 0

    def with_properties(self, properties: Properties) -> Message:
        return self._carried_to(super().with_properties(properties))

    def with_delivery_mode(self) -> Message:
        return self._carried_to(super().with_delivery_mode())

    def _carried_to(self, message: Message) -> Message:
        """Return a message that carries what this one does."""
        special = SpecialMessage.of(message)
        special.carry(self)
        return special


class SpecialMessage(NumberedMessage):
    """A message that carries more than its content.

    It has an expiration, the keys of a removed BCC header, and a number in the trace (0: not traced). `has_died` says
    that the broker wrote its x-death header, `had_empty_table` that its headers were empty before, `failures` how many
    deliveries failed. `is_rerouted`: a dead-letter routing key has replaced its keys and those of its header CC.
    """

    __slots__ = ("blind_keys", "expiration_ms", "failures", "had_empty_table", "has_died", "is_rerouted")

    def __init__(
        self,
        address: Address,
        content: bytes,
        channel: int,
        is_persistent: bool,
        *,
        expiration_ms: int | None = None,
        blind_keys: Sequence[str] = (),
        has_died: bool = False,
        failures: int = 0,
        is_rerouted: bool = False,
        had_empty_table: bool = False,
    ) -> None:
        # Without super(): one is made for each message that expires, and for each that is dead-lettered.
        self.address = address
        self.content = content
        self.channel = channel
        self.is_persistent = is_persistent
        self.expiration_ms = expiration_ms
        self.blind_keys = blind_keys
        self.has_died = has_died
        self.failures = failures
        self.is_rerouted = is_rerouted
        self.had_empty_table = had_empty_table
        self.number = 0
        self.is_recorded = False
        self.row = 0

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return a copy of a message that can carry more; what the message carries is copied."""
        special = cls(message.address, message.content, message.channel, message.is_persistent)
        if isinstance(message, NumberedMessage):
            special.carry(message)
        return special

    @classmethod
    def rebuilt(cls, message: Message, properties: Properties) -> SpecialMessage:
        """Return a copy to publish again, whose expiration is read from `properties`, its own.

        A queue or a journal keeps the deadline of a message there, but not its time to live elsewhere.
        """
        special = cls.of(message)
        special.expiration_ms = parse_expiration(properties.expiration)
        return special

    def carry(self, other: NumberedMessage) -> None:
        """Take over what another message carries."""
        self.number = other.number
        self.is_recorded = other.is_recorded
        if isinstance(other, SpecialMessage):
            self.expiration_ms = other.expiration_ms
            self.blind_keys = other.blind_keys
            self.has_died = other.has_died
            self.failures = other.failures
            self.is_rerouted = other.is_rerouted
            self.had_empty_table = other.had_empty_table


def failures_of(message: Message) -> int:
    """Return the number of failed deliveries that a dead letter has brought along from other queues."""
    return message.failures if isinstance(message, SpecialMessage) else 0


def with_failures(message: Message, failures: int) -> Message:
    """Return the message with this number of failed deliveries."""
    if failures == failures_of(message):
        return message
    special = SpecialMessage.of(message)
    special.failures = failures
    return special


def with_property_list(content: bytes, property_list: bytes) -> bytes:
    """Return the frames of a content with another property list; the body frames stay as they are."""
    kind, channel, size = FRAME.unpack_from(content)
    start = FRAME.pack(kind, channel, CONTENT.size + len(property_list))
    return b"".join((start, content[FRAME.size : HEADER_START_BYTES], property_list, content[FRAME.size + size :]))


def routing_keys(message: Message, properties: Properties) -> list[str]:
    """Return all keys that a message was routed by: its own, then those of its CC and BCC headers."""
    copies = (properties.headers or {}).get("CC", [])
    keys = [message.routing_key]
    if isinstance(copies, list):
        keys += [key for key in copies if isinstance(key, str)]
    if isinstance(message, SpecialMessage) and not message.is_rerouted:
        keys += message.blind_keys
    return keys


def content_frames(channel: int, header: bytes, body: bytes, frame_max: int) -> bytes:
    """Return a header frame and body frames of at most `frame_max` octets each, envelopes included."""
    frames = [FRAME.pack(FRAME_HEADER, channel, len(header)), header, FRAME_END_BYTE]
    step = frame_max - 8
    for start in range(0, len(body), step):
        piece = body[start : start + step]
        frames += (FRAME.pack(FRAME_BODY, channel, len(piece)), piece, FRAME_END_BYTE)
    return b"".join(frames)


def shortstr(text: str) -> bytes:
    """Return a short string on the wire: one octet of length, then UTF-8."""
    encoded = text.encode("utf-8", "surrogateescape")
    return bytes([len(encoded)]) + encoded
