"""Chunks: runs of messages that a stream stores and reads at once.

A reader gets each message with its offset in the header `x-stream-offset`, which is inserted into the encoded frames.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Collection
from typing import Final, NamedTuple

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import (
    ENTRY_BYTES,
    FRAME,
    FRAME_HEADER,
    HEADER_START_BYTES,
    Message,
    NumberedMessage,
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
# The entry of a field table: a short string, the type `l`, and its value.
_ENTRY: Final = struct.Struct(f">{len(_OFFSET_KEY)}scq")
_TABLE_SIZE: Final = struct.Struct(">I")
# A header frame without content type, encoding and headers, with what makes it one with headers:
# the frame's start, class to body size, property flags, the table's size and its one entry.
_HEADER_FRAME: Final = struct.Struct(f">BHI12sHI{len(_OFFSET_KEY)}scq")
_FLAGS: Final = struct.Struct(">H")
_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS = 1 << 15, 1 << 14, 1 << 13


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


def filter_value(message: Message) -> str | None:
    """Return the header x-stream-filter-value; None if it is missing or not a string."""
    content = message.content
    if not content[HEADER_START_BYTES] & 0x20 or _FILTER_KEY not in message.property_list:
        return None
    value = (message.properties().headers or {}).get(FILTER_HEADER)
    return value if isinstance(value, str) else None


def as_delivered(chunk: Chunk, start: int = 0) -> list[Message]:
    """Return the messages of a chunk as readers get them, from index `start` on."""
    first = chunk.head.first
    messages = chunk.messages[start:] if start else chunk.messages
    return [with_offset(message, offset) for offset, message in enumerate(messages, first + start)]


def with_offset(message: Message, offset: int) -> Message:
    """Return the message with its offset in the headers, which replaces a value that it had."""
    content = message.content
    (flags,) = _FLAGS.unpack_from(content, HEADER_START_BYTES)
    if flags < _HEADERS:
        _, channel, size = FRAME.unpack_from(content)
        start = _HEADER_FRAME.pack(
            FRAME_HEADER,
            channel,
            size + _TABLE_SIZE.size + _ENTRY.size,
            content[FRAME.size : HEADER_START_BYTES],
            flags | _HEADERS,
            _ENTRY.size,
            _OFFSET_KEY,
            b"l",
            offset,
        )
        content = start + content[HEADER_START_BYTES + _FLAGS.size :]
    else:
        content = with_property_list(content, _with_entry(message, flags, offset))
    if isinstance(message, NumberedMessage) and message.number:
        numbered = NumberedMessage(message.address, content, message.channel, message.is_persistent, message.number)
        numbered.is_recorded = message.is_recorded
        return numbered
    return Message(message.address, content, message.channel, message.is_persistent)


def _with_entry(message: Message, flags: int, offset: int) -> bytes:
    """Return the property list with the offset after the other headers."""
    properties = message.property_list
    if flags & _HEADERS and _OFFSET_KEY in properties:
        decoded = message.properties()
        decoded.headers = {**(decoded.headers or {}), OFFSET_HEADER: fields.Long(offset)}
        return decoded.encode()
    at = _FLAGS.size
    for flag in (_CONTENT_TYPE, _CONTENT_ENCODING):
        if flags & flag:
            at += 1 + properties[at]
    size, end, entries = 0, at, b""
    if flags & _HEADERS:
        (size,) = _TABLE_SIZE.unpack_from(properties, at)
        end = at + _TABLE_SIZE.size + size
        entries = properties[at + _TABLE_SIZE.size : end]
    pieces = (
        _FLAGS.pack(flags | _HEADERS),
        properties[_FLAGS.size : at],
        _TABLE_SIZE.pack(size + _ENTRY.size),
        entries,
        _ENTRY.pack(_OFFSET_KEY, b"l", offset),
        properties[end:],
    )
    return b"".join(pieces)


class ChunkCache:
    """The chunks that were read last, as readers get them, by stream and first offset."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._entries: OrderedDict[tuple[int, int], tuple[list[Message], int]] = OrderedDict()
        self.bytes = 0

    def get(self, stream: int, first: int) -> list[Message] | None:
        entry = self._entries.get((stream, first))
        if entry is None:
            return None
        self._entries.move_to_end((stream, first))
        return entry[0]

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
