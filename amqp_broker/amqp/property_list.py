"""Property lists without objects: one scan of the octets finds all that publishing depends on.

A list is the property flags and properties of a content header (spec 4.2.6.1). `scan` agrees with `Properties.decode`
on every list, which a property test shows, but makes no values.
"""

from __future__ import annotations

import struct
from typing import Final

from amqp_broker.amqp.header_sorter import Sorter
from amqp_broker.amqp.message import Properties, parse_expiration

DIRECT_REPLY_TO: Final = b"amq.rabbitmq.reply-to"
# Header keys whose values are further routing keys.
_COPIES: Final = (b"CC", b"BCC")

# Content type and content encoding.
_BEFORE_HEADERS: Final = (1 << 15, 1 << 14)
_HEADERS: Final = 1 << 13
_DELIVERY_MODE: Final = 1 << 12
_PRIORITY: Final = 1 << 11
_REPLY_TO: Final = 1 << 9
_EXPIRATION: Final = 1 << 8
_TIMESTAMP: Final = 1 << 6
_USER_ID: Final = 1 << 4
# The flags of class basic, bit 15 first.
_FLAGS: Final = tuple(1 << bit for bit in range(15, 1, -1))

_STRING: Final = ord("S")
_BINARY: Final = ord("x")
_BOOLEAN: Final = ord("t")
_TABLE: Final = ord("F")
_ARRAY: Final = ord("A")
_LONG_LONG: Final = ord("L")
_FLOATS: Final = (ord("d"), ord("f"))
# Sizes of the values whose type says their size, by type; -1 for all others.
_SIZES: Final = [-1] * 256
for _letter, _size in zip(b"tbBsuIiflLdTDV", (1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 5, 0), strict=True):
    _SIZES[_letter] = _size


class Traits:
    """The part of a property list that publishing depends on; equal for all lists of one shape.

    `is_plain` says that the message needs no more than a push with its expiration, unless headers decide its route.
    `is_direct` says the same of a message whose reply-to is first replaced by the name for direct replies.
    `expiration_ms` is a valid expiration. `sorter` sorts the header keys where RabbitMQ 4 delivers them in another
    order. Where it would change more than the order, the list is not plain.
    """

    __slots__ = ("expiration_ms", "has_headers", "is_direct", "is_persistent", "is_plain", "sorter")

    def __init__(self) -> None:
        self.is_persistent = False
        self.is_plain = True
        self.is_direct = False
        self.has_headers = False
        self.expiration_ms: int | None = None
        self.sorter: Sorter | None = None


# Traits of each list with a number that is NaN or infinite: Erlang has no such numbers, and cannot read the list.
UNREADABLE: Final = Traits()
UNREADABLE.is_plain = False


class Layout:
    """The layout of a property list: where its values and its header fields are.

    `values` are the spans of octets that may have any value in a list of this layout, `booleans` the places of octets
    that may be 0 or 1, `floats` the spans of floating-point numbers. `strings` are those values that have a length: its
    place, its size of 1 or 4 octets, and the end of the string. `entries` are key, start and end of each header, behind
    the table's size at `table_at`. The string `expiration` has its length at `expiration_at`.
    """

    __slots__ = (
        "booleans",
        "entries",
        "expiration",
        "expiration_at",
        "floats",
        "has_user_id",
        "is_direct",
        "is_exact",
        "persistent_mode",
        "strings",
        "table_at",
        "values",
    )

    def __init__(self) -> None:
        self.values: list[tuple[int, int]] = []
        self.strings: list[tuple[int, int, int]] = []
        self.table_at = 0
        self.booleans: list[int] = []
        self.floats: list[tuple[int, int]] = []
        self.entries: list[tuple[bytes, int, int]] | None = None
        self.persistent_mode = 0
        self.expiration: bytes | None = None
        self.expiration_at = 0
        # The reply-to is the pseudo-queue of direct replies.
        self.is_direct = False
        self.has_user_id = False
        # To decode and encode the list gives the same octets; but a signalling NaN of 32 bits becomes a quiet one.
        self.is_exact = True


def scan(data: bytes) -> Layout:
    """Return the layout of a property list. Raise MalformedProperties."""
    try:
        layout = _scan(data)
    except (struct.error, IndexError):
        layout = None
    if layout is None:
        Properties.decode(data)
        raise AssertionError("a property list that is decoded has a layout")
    return layout


def _scan(data: bytes) -> Layout | None:
    layout = Layout()
    flags = data[0] << 8 | data[1]
    size = len(data)
    # These flags belong to no property.
    layout.is_exact = not flags & 3
    at = 2
    for flag in _FLAGS:
        if not flags & flag:
            continue
        if flag == _HEADERS:
            at = _scan_headers(data, at, layout)
            if at < 0:
                return None
        elif flag == _DELIVERY_MODE:
            layout.persistent_mode = data[at]
            at += 1
        elif flag == _PRIORITY:
            layout.values.append((at, at + 1))
            at += 1
        elif flag == _TIMESTAMP:
            layout.values.append((at, at + 8))
            at += 8
        else:
            start = at + 1
            at = start + data[at]
            if flag == _EXPIRATION:
                layout.expiration = data[start:at]
                layout.expiration_at = start - 1
            elif flag == _USER_ID:
                layout.has_user_id = True
            elif flag == _REPLY_TO and data[start:at] == DIRECT_REPLY_TO:
                layout.is_direct = True
            elif flag != _REPLY_TO:
                layout.values.append((start, at))
                layout.strings.append((start - 1, 1, at))
            elif at - start != len(DIRECT_REPLY_TO):
                layout.values.append((start, at))
        if at > size:
            return None
    return layout if at == size else None


def _scan_headers(data: bytes, at: int, layout: Layout) -> int:
    """Scan the table at this offset; return the offset behind it, or -1 if it is malformed."""
    entries: list[tuple[bytes, int, int]] = []
    layout.entries = entries
    layout.table_at = at
    values, strings, booleans = layout.values, layout.strings, layout.booleans
    size = len(data)
    end = at + 4 + int.from_bytes(data[at : at + 4], "big")
    at += 4
    if end > size:
        return -1
    while at < end:
        start = at
        at += 1 + data[at]
        key = data[start + 1 : at]
        kind = data[at]
        at += 1
        if kind in (_STRING, _BINARY):
            first = at + 4
            at = first + int.from_bytes(data[at:first], "big")
            values.append((first, at))
            strings.append((first - 4, 4, at))
        elif kind == _BOOLEAN:
            booleans.append(at)
            if data[at] > 1:
                layout.is_exact = False
            at += 1
        elif kind in (_TABLE, _ARRAY):
            at = _scan_block(data, at, kind == _TABLE, layout)
            if at < 0:
                return -1
        else:
            width = _SIZES[kind]
            if width < 0:
                return -1
            if kind == _LONG_LONG:
                layout.is_exact = False
            elif kind in _FLOATS:
                layout.floats.append((at, at + width))
            values.append((at, at + width))
            at += width
        if at > size:
            return -1
        entries.append((key, start, at))
    return at if at == end else -1


def _scan_block(data: bytes, at: int, is_table: bool, layout: Layout) -> int:
    """Scan the table or array whose length prefix is at this offset; return the offset behind it, or -1."""
    size = len(data)
    end = at + 4 + int.from_bytes(data[at : at + 4], "big")
    at += 4
    if end > size:
        return -1
    keys: set[bytes] = set()
    # The blocks around the one that is being read: the end of each, whether it is a table, and its keys.
    stack: list[tuple[int, bool, set[bytes]]] = []
    while True:
        while at < end:
            if is_table:
                start = at + 1
                at = start + data[at]
                key = data[start:at]
                if key in keys:
                    layout.is_exact = False
                keys.add(key)
            kind = data[at]
            at += 1
            if kind in (_STRING, _BINARY):
                start = at + 4
                at = start + int.from_bytes(data[at:start], "big")
                layout.values.append((start, at))
            elif kind in (_TABLE, _ARRAY):
                stack.append((end, is_table, keys))
                end = at + 4 + int.from_bytes(data[at : at + 4], "big")
                at += 4
                is_table = kind == _TABLE
                keys = set()
            else:
                width = _SIZES[kind]
                if width < 0:
                    return -1
                if kind == _BOOLEAN:
                    layout.booleans.append(at)
                    if data[at] > 1:
                        layout.is_exact = False
                else:
                    if kind == _LONG_LONG:
                        layout.is_exact = False
                    elif kind in _FLOATS:
                        layout.floats.append((at, at + width))
                    layout.values.append((at, at + width))
                at += width
            if at > size or end > size:
                return -1
        if at != end:
            return -1
        if not stack:
            return at
        end, is_table, keys = stack.pop()


def are_finite(data: bytes, floats: list[tuple[int, int]]) -> bool:
    """Return whether the floating-point numbers at these spans are neither NaN nor infinite."""
    for start, end in floats:
        # The octets of the exponent: 11 bits of 64, 8 bits of 32.
        if data[start] & 0x7F == 0x7F and data[start + 1] >= (0xF0 if end - start == 8 else 0x80):
            return False
    return True


def traits_of(layout: Layout, sorts: bool) -> Traits:
    """Return the traits of a list with this layout; `sorts` for a broker that delivers sorted header keys."""
    traits = Traits()
    traits.is_persistent = layout.persistent_mode == 2
    if layout.has_user_id:
        traits.is_plain = False
    if layout.expiration is not None:
        text = layout.expiration.decode("utf-8", "surrogateescape")
        milliseconds = parse_expiration(text)
        traits.expiration_ms = milliseconds
        if milliseconds is None or (sorts and text != str(milliseconds)):
            traits.is_plain = False
    entries = layout.entries
    if entries is not None:
        traits.has_headers = True
        keys = [key for key, _, _ in entries]
        is_simple = _have_order(keys)
        if any(key in keys for key in _COPIES):
            traits.is_plain = False
        elif sorts and not (is_simple and keys == sorted(keys)):
            if layout.is_exact and is_simple:
                traits.sorter = Sorter(entries, [])
            else:
                traits.is_plain = False
    if layout.is_direct:
        traits.is_direct = traits.is_plain
        traits.is_plain = False
    return traits


def _have_order(keys: list[bytes]) -> bool:
    """Return whether keys differ and have one order: surrogate escapes have another than their octets."""
    return len(set(keys)) == len(keys) and b"".join(keys).isascii()


def with_fields(data: bytes, layout: Layout, added: list[tuple[bytes, bytes]]) -> bytes | None:
    """Return a property list with further headers, all of them sorted, and without an expiration.

    `added` are keys and encoded fields. Return None if the list has a header of these keys, CC or BCC, or if decoding
    and encoding would change more than the order.
    """
    entries = layout.entries or []
    keys = [key for key, _, _ in entries]
    if not layout.is_exact or not _have_order(keys) or any(key in keys for key in _COPIES):
        return None
    if any(key in keys for key, _ in added):
        return None
    ordered = sorted([*((key, data[start:end]) for key, start, end in entries), *added])
    table = b"".join([field for _, field in ordered])
    flags = data[0] << 8 | data[1]
    if layout.entries is None:
        table_at = 2
        for flag in _BEFORE_HEADERS:
            if flags & flag:
                table_at += 1 + data[table_at]
        table_end = table_at
    else:
        table_at = layout.table_at
        table_end = table_at + 4 + int.from_bytes(data[table_at : table_at + 4], "big")
    rest = data[table_end:]
    if layout.expiration is not None:
        end = layout.expiration_at + 1 + len(layout.expiration)
        rest = data[table_end : layout.expiration_at] + data[end:]
    new_flags = (flags | _HEADERS) & ~_EXPIRATION
    return b"".join((new_flags.to_bytes(2, "big"), data[2:table_at], len(table).to_bytes(4, "big"), table, rest))
