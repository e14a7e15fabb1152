"""Chunks of streams as records of the store:

    format     1 octet     2
    flags      1 octet     the filter values are known; some messages have none; the messages are lost
    count      4 octets    number of messages
    time       8 octets    time of the last message, in ms since the epoch
    bytes      8 octets    octets of the contents of all messages
    filters    if known, a field table's array of long strings, with its size
    checksum   8 octets    of all before, so that a head can be read without its messages (store/seal.py)
    messages   for each, 1 octet flags (persistent), 2 octets channel number, 4 octets size of the content,
               exchange and routing key as short strings, and the content

Numbers are big-endian.
"""

from __future__ import annotations

import struct
from typing import Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message
from amqp_broker.broker.durability.chunk import Chunk, ChunkHead, OffsetHeader
from amqp_broker.store.codec import MalformedRecord
from amqp_broker.store.seal import SEAL_BYTES, seal, unseal

FORMAT: Final = 2
KNOWS_FILTERS: Final = 1
HAS_UNFILTERED: Final = 2
IS_LOST: Final = 4

HEAD: Final = struct.Struct(">BBIQQ")
ENTRY: Final = struct.Struct(">BHI")
NUMBER: Final = struct.Struct(">Q")
_TABLE_SIZE: Final = struct.Struct(">I")


def encode(chunk: Chunk) -> bytes:
    """Return the record of a chunk; its first offset is in the key."""
    head = chunk.head
    flags = HAS_UNFILTERED if head.has_unfiltered else 0
    filters = b""
    if head.filters is not None:
        flags |= KNOWS_FILTERS
        filters = fields.encode_table({"": sorted(head.filters)})
    start = HEAD.pack(FORMAT, flags, head.message_count, head.timestamp_ms, head.content_bytes) + filters
    pieces = [seal(NUMBER.pack(head.first), start)]
    # Consecutive messages mostly differ in their contents alone.
    entry, size, last = b"", -1, None
    for message in chunk.messages:
        content = message.content
        if (
            last is None
            or len(content) != size
            or message.address is not last.address
            or message.channel != last.channel
            or message.is_persistent is not last.is_persistent
        ):
            last, size = message, len(content)
            entry = ENTRY.pack(message.is_persistent, message.channel, size) + message.address.suffix[1:-1]
        pieces += (entry, content)
    return b"".join(pieces)


def decode_head(first: int, record: bytes | memoryview) -> tuple[ChunkHead, int]:
    """Return the head of a record's chunk, and the index of its messages. Raise DamagedRecord."""
    try:
        version, flags, count, timestamp_ms, content_bytes = HEAD.unpack_from(record)
        at, filters = HEAD.size, None
        if version != FORMAT:
            raise MalformedRecord(f"a chunk has format {version}, not {FORMAT}")
        if flags & KNOWS_FILTERS:
            end = at + _TABLE_SIZE.size + _TABLE_SIZE.unpack_from(record, at)[0]
            table, _ = fields.decode_table(bytes(record[at:end]))
            values = table.get("")
            # The checksum, which is behind them, is not checked yet.
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise MalformedRecord("a chunk has malformed filters")
            at, filters = end, frozenset(values)
        unseal(NUMBER.pack(first), record[: at + SEAL_BYTES])
    except (struct.error, fields.MalformedTable):
        raise MalformedRecord("a chunk is cut short") from None
    return ChunkHead(first, count, timestamp_ms, content_bytes, filters, bool(flags & HAS_UNFILTERED)), at + SEAL_BYTES


def lost(first: int, count: int, timestamp_ms: int) -> bytes:
    """Return a record that takes the offsets of a chunk whose messages are lost."""
    return seal(NUMBER.pack(first), HEAD.pack(FORMAT, HAS_UNFILTERED | IS_LOST, count, timestamp_ms, 0))


def renew(first: int, record: bytes) -> bytes:
    """Return the record of a chunk of format 1 in format 2, which has a checksum for the head."""
    at = HEAD.size
    if record[1] & KNOWS_FILTERS:
        at += _TABLE_SIZE.size + _TABLE_SIZE.unpack_from(record, at)[0]
    return seal(NUMBER.pack(first), bytes([FORMAT]) + record[1:at]) + record[at:]


def decode(first: int, record: bytes | memoryview, *, as_delivered: bool = False) -> Chunk:
    """Return the chunk of a record, or (`as_delivered`) with its messages as readers get them. Raise DamagedRecord."""
    head, at = decode_head(first, record)
    data, unpack = bytes(record), ENTRY.unpack_from
    if data[1] & IS_LOST:
        return Chunk(head, [])
    messages: list[Message] = []
    header = OffsetHeader() if as_delivered else None
    # Consecutive messages mostly have the same exchange and routing key, and often the same size, so the same entry.
    entry, names, address = b"", b"", Address("", "")
    is_persistent, channel, size = False, 0, 0
    try:
        for offset in range(head.first, head.end):
            start = at + len(entry)
            if not entry or data[at:start] != entry:
                persistent, channel, size = unpack(data, at)
                is_persistent = persistent == 1
                names_at = at + ENTRY.size
                key_at = names_at + 1 + data[names_at]
                start = key_at + 1 + data[key_at]
                if data[names_at:start] != names:
                    names, address = data[names_at:start], _address(data, names_at, key_at, start)
                entry = data[at:start]
            at = start + size
            content = data[start:at] if header is None else header.insert(data, start, at, offset)
            messages.append(Message(address, content, channel, is_persistent))
    except (struct.error, IndexError):
        raise MalformedRecord("a chunk is cut short") from None
    if at != len(data):
        raise MalformedRecord("a chunk has another size than its messages")
    return Chunk(head, messages)


def _address(data: bytes, at: int, key_at: int, end: int) -> Address:
    exchange = data[at + 1 : key_at].decode("utf-8", "surrogateescape")
    return Address(exchange, data[key_at + 1 : end].decode("utf-8", "surrogateescape"))
