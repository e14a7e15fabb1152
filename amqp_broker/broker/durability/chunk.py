"""Chunks: runs of messages that a stream stores and reads at once.

A reader gets each message with its offset in the header `x-stream-offset`, which is inserted into the encoded frames.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import (
    ENTRY_BYTES,
    FRAME,
    HEADER_START_BYTES,
    Message,
    NumberedMessage,
    Properties,
    with_property_list,
)

OFFSET_HEADER: Final = "x-stream-offset"
FILTER_HEADER: Final = "x-stream-filter-value"
# Octets of chunks that are kept for the next reader, of all streams together.
CACHE_BYTES_MAX: Final = 32 * 1024 * 1024
# A chunk with more filter values than these counts as having any.
FILTERS_MAX: Final = 256

_FILTER_KEY: Final = FILTER_HEADER.encode()
_OFFSET_KEY: Final = bytes([len(OFFSET_HEADER)]) + OFFSET_HEADER.encode()
_TABLE_SIZE: Final = struct.Struct(">I")
_FLAGS: Final = struct.Struct(">H")
# The offset's entry in a field table: its name and type, the size of all, and the start of a table with no other entry.
_ENTRY_START: Final = _OFFSET_KEY + b"l"
_ENTRY_BYTES: Final = len(_ENTRY_START) + 8
_TABLE_START: Final = _TABLE_SIZE.pack(_ENTRY_BYTES) + _ENTRY_START
_pack_offset: Final[Callable[[int], bytes]] = struct.Struct(">q").pack
# A header frame up to the size of the body: type and channel, size, class and weight; and up to the property flags.
_FRAME_START: Final = struct.Struct(">3sI4s")
_HEADER_START: Final = struct.Struct(">3sI4s8sH")
_BODY_SIZE_AT: Final = _FRAME_START.size
# The first octet of the size of a table or an array is 0 below this size.
_NESTED_BYTES_MAX: Final = 1 << 24
# Property flags.
_CONTENT_TYPE: Final = 1 << 15
_CONTENT_ENCODING: Final = 1 << 14
_HEADERS: Final = 1 << 13
# The same in the first octet of the flags.
HEADERS_FLAG: Final = _HEADERS >> 8


class ChunkHead(NamedTuple):
    """The properties of a chunk.

    `timestamp_ms` is the time of its last message. `filters` are the filter values of its messages; None if they are
    not known. `has_unfiltered` is set if a message has none.
    """

    first: int
    message_count: int
    timestamp_ms: int
    content_bytes: int
    filters: frozenset[str] | None
    has_unfiltered: bool

    @property
    def end(self) -> int:
        """The offset after its last message."""
        return self.first + self.message_count


class Chunk(NamedTuple):
    head: ChunkHead
    messages: list[Message]


class Filter(NamedTuple):
    """The filter of a reader: it gets messages with one of these values, and perhaps those without any."""

    values: Collection[str]
    matches_unfiltered: bool

    def may_match(self, head: ChunkHead) -> bool:
        """Return whether a message of the chunk may match."""
        if head.filters is None or (self.matches_unfiltered and head.has_unfiltered):
            return True
        return not head.filters.isdisjoint(self.values)

    def matches(self, message: Message) -> bool:
        value = filter_value(message)
        return self.matches_unfiltered if value is None else value in self.values


def without_nested_headers(message: Message) -> Message:
    """Return the message without headers that are tables or arrays. CC and those that begin with x- stay.

    The properties of an application in AMQP 1.0 are simple (mc_amqpl.erl, supported_header_value_type).
    """
    content = message.content
    end = _list_end(content)
    if (
        content.find(b"F\0", HEADER_START_BYTES, end) < 0
        and content.find(b"A\0", HEADER_START_BYTES, end) < 0
        and end < _NESTED_BYTES_MAX
    ):
        return message
    properties = message.properties()
    headers = properties.headers or {}
    kept = {
        key: value
        for key, value in headers.items()
        if not isinstance(value, (dict, list)) or key.startswith("x-") or (key == "CC" and isinstance(value, list))
    }
    if len(kept) == len(headers):
        return message
    properties.headers = kept
    return message.with_properties(properties)


def _list_end(content: bytes) -> int:
    """Return the end of the property list in a content."""
    size: int = FRAME.unpack_from(content)[2]
    return FRAME.size + size


def filter_value(message: Message) -> str | None:
    """Return the header x-stream-filter-value; None if it is missing or not a string."""
    content = message.content
    if not content[HEADER_START_BYTES] & HEADERS_FLAG:
        return None
    if content.find(_FILTER_KEY, HEADER_START_BYTES, _list_end(content)) < 0:
        return None
    value = (message.properties().headers or {}).get(FILTER_HEADER)
    return value if isinstance(value, str) else None


class OffsetHeader:
    """Inserts the header with the offset into contents.

    Successive messages mostly differ in their bodies, but not in what stands before the offset, except the body's size.
    """

    __slots__ = ("_frame", "_new_frame", "_new_properties", "_properties")

    def __init__(self) -> None:
        # The start of the last content: up to the body's size, and from the property flags to the place of the offset.
        self._frame = self._properties = b""
        # The same as readers get it.
        self._new_frame = self._new_properties = b""

    def insert(self, data: bytes, start: int, end: int, offset: int) -> bytes:
        """Return the content at `data[start:end]` with its offset in the headers, in place of a value that it had."""
        size_at, flags_at = start + _BODY_SIZE_AT, start + HEADER_START_BYTES
        at = flags_at + len(self._properties)
        if at > end or data[start:size_at] != self._frame or data[flags_at:at] != self._properties:
            content = data[start:end]
            if not self._learn(content):
                return _with_other_value(content, offset)
            at = flags_at + len(self._properties)
        return b"".join(
            (self._new_frame, data[size_at:flags_at], self._new_properties, _pack_offset(offset), data[at:end])
        )

    def _learn(self, content: bytes) -> bool:
        """Find out how a content begins; return False if it has the header already."""
        kind, size, class_id, _, flags = _HEADER_START.unpack_from(content)
        at = HEADER_START_BYTES + _FLAGS.size
        if flags & _CONTENT_TYPE:
            at += 1 + content[at]
        if flags & _CONTENT_ENCODING:
            at += 1 + content[at]
        types = _FLAGS.pack(flags | _HEADERS) + content[HEADER_START_BYTES + _FLAGS.size : at]
        if flags & _HEADERS:
            entries_at = at + _TABLE_SIZE.size
            at = entries_at + _TABLE_SIZE.unpack_from(content, at)[0]
            entries = content[entries_at:at]
            if _OFFSET_KEY in entries:
                return False
            added = _ENTRY_BYTES
            self._new_properties = types + _TABLE_SIZE.pack(len(entries) + added) + entries + _ENTRY_START
        else:
            added = _TABLE_SIZE.size + _ENTRY_BYTES
            self._new_properties = types + _TABLE_START
        self._frame, self._new_frame = content[:_BODY_SIZE_AT], _FRAME_START.pack(kind, size + added, class_id)
        self._properties = content[HEADER_START_BYTES:at]
        return True


def _with_other_value(content: bytes, offset: int) -> bytes:
    """Return a content whose headers have an offset, with another one in its place."""
    end = FRAME.size + FRAME.unpack_from(content)[2]
    properties = Properties.decode(content[HEADER_START_BYTES:end])
    properties.headers = {**(properties.headers or {}), OFFSET_HEADER: fields.Long(offset)}
    return with_property_list(content, properties.encode())


def as_delivered(chunk: Chunk, start: int = 0) -> list[Message]:
    """Return the messages of a chunk as readers get them, from index `start` on."""
    first, header = chunk.head.first, OffsetHeader()
    messages = chunk.messages[start:] if start else chunk.messages
    return [_with_offset(message, header, offset) for offset, message in enumerate(messages, first + start)]


def _with_offset(message: Message, header: OffsetHeader, offset: int) -> Message:
    content = header.insert(message.content, 0, len(message.content), offset)
    if isinstance(message, NumberedMessage) and message.number:
        numbered = NumberedMessage(message.address, content, message.channel, message.is_persistent, message.number)
        numbered.is_recorded = message.is_recorded
        return numbered
    return Message(message.address, content, message.channel, message.is_persistent)


class ChunkCache:
    """The chunks that were read last, as readers get them, by stream and first offset."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._entries: OrderedDict[tuple[int, int], tuple[list[Message], int]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, stream: int, first: int) -> list[Message] | None:
        entry = self._entries.get((stream, first))
        if entry is None:
            return None
        self._entries.move_to_end((stream, first))
        return entry[0]

    def take(self, stream: int, first: int) -> list[Message] | None:
        """Return a chunk and forget it."""
        messages, size = self._entries.pop((stream, first), (None, 0))
        self.bytes -= size
        return messages

    def put(self, stream: int, head: ChunkHead, messages: list[Message]) -> None:
        size = head.content_bytes + head.message_count * ENTRY_BYTES
        _, former_size = self._entries.pop((stream, head.first), (None, 0))
        self._entries[stream, head.first] = messages, size
        self.bytes += size - former_size
        while self.bytes > self._bytes_max and len(self._entries) > 1:
            _, (_, size) = self._entries.popitem(last=False)
            self.bytes -= size

    def forget(self, stream: int) -> None:
        """Drop the chunks of a deleted stream."""
        for key in [key for key in self._entries if key[0] == stream]:
            self.bytes -= self._entries.pop(key)[1]
