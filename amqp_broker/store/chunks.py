"""Chunks of streams as octets of the store.

format     1 octet     1
flags      1 octet     filters are known, some messages have none
count      4 octets    messages
time       8 octets    when the last message came, ms since the epoch
bytes      8 octets    of the contents of all messages
filters    if they are known: a field table's array of long strings, with its size
messages   each: 1 octet flags (persistent), 2 octets channel number, 4 octets size of the content, exchange and routing
           key as short strings, and the content
"""

from __future__ import annotations

import struct
from typing import Final

from amqp_broker import fields
from amqp_broker.broker.chunk import Chunk, ChunkHead
from amqp_broker.message import Address, Message
from amqp_broker.store.codec import MalformedRecord

FORMAT: Final = 1
KNOWS_FILTERS: Final = 1
HAS_UNFILTERED: Final = 2

HEAD: Final = struct.Struct(">BBIQQ")
ENTRY: Final = struct.Struct(">BHI")
_TABLE_SIZE: Final = struct.Struct(">I")


def encode(chunk: Chunk) -> bytes:
    """A chunk as the store keeps it; its first offset is in the key."""
    head = chunk.head
    flags = HAS_UNFILTERED if head.has_unfiltered else 0
    filters = b""
    if head.filters is not None:
        flags |= KNOWS_FILTERS
        filters = fields.encode_table({"": sorted(head.filters)})
    pieces = [HEAD.pack(FORMAT, flags, head.message_count, head.timestamp_ms, head.content_bytes), filters]
    pack = ENTRY.pack
    for message in chunk.messages:
        content = message.content
        pieces += (
            pack(message.is_persistent, message.channel, len(content)),
            message.address.suffix[1:-1],
            content,
        )
    return b"".join(pieces)


def decode_head(first: int, record: bytes | memoryview) -> tuple[ChunkHead, int]:
    """What a record says of its chunk, and where its messages begin. Raises MalformedRecord."""
    try:
        version, flags, count, timestamp_ms, content_bytes = HEAD.unpack_from(record)
        at, filters = HEAD.size, None
        if version != FORMAT:
            raise MalformedRecord(f"a chunk has format {version}, not {FORMAT}")
        if flags & KNOWS_FILTERS:
            end = at + _TABLE_SIZE.size + _TABLE_SIZE.unpack_from(record, at)[0]
            table, _ = fields.decode_table(bytes(record[at:end]))
            at, filters = end, frozenset(table[""])
    except (struct.error, fields.MalformedTable):
        raise MalformedRecord("a chunk is cut short") from None
    return ChunkHead(first, count, timestamp_ms, content_bytes, filters, bool(flags & HAS_UNFILTERED)), at


def decode(first: int, record: bytes | memoryview) -> Chunk:
    """The chunk in a record. Raises MalformedRecord."""
    head, at = decode_head(first, record)
    data, unpack = bytes(record), ENTRY.unpack_from
    messages: list[Message] = []
    # Messages that follow each other mostly have the same names.
    names, address = b"", Address("", "")
    try:
        for _ in range(head.message_count):
            is_persistent, channel, size = unpack(data, at)
            at += ENTRY.size
            key_at = at + 1 + data[at]
            start = key_at + 1 + data[key_at]
            if data[at:start] != names:
                names, address = data[at:start], _address(data, at, key_at, start)
            at = start + size
            messages.append(Message(address, data[start:at], channel, is_persistent == 1))
    except (struct.error, IndexError):
        raise MalformedRecord("a chunk is cut short") from None
    if at != len(data):
        raise MalformedRecord("a chunk is cut short, or more than that")
    return Chunk(head, messages)


def _address(data: bytes, at: int, key_at: int, end: int) -> Address:
    exchange = data[at + 1 : key_at].decode("utf-8", "surrogateescape")
    return Address(exchange, data[key_at + 1 : end].decode("utf-8", "surrogateescape"))
